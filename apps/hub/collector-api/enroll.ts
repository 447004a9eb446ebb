// POST /enroll: a collector exchanges a licence for an agent token (document 1 "Collector-facing endpoints", document 3
// "Agent to collector"; decisions G-24 to G-30). Order of checks: hash, revocation, expiry, use count, collector pin,
// quota, server and pairing; a refusal consumes no use of the licence.
import { randomUUID } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { eq, sql } from 'drizzle-orm'
import { stateAtEnrollment } from '../../../core/lifecycle/agent.ts'
import { enrollRefusal } from '../../../core/lifecycle/license.ts'
import { plainAddress } from '../../../core/network/ip-address.ts'
import { rateKeyOf } from '../../../core/network/rate-key.ts'
import { type AuditEntry, writeAudit } from '../audit/audit.ts'
import { newAgentToken, tokenHash } from '../identity/token-forms.ts'
import { noteRefusal, refusalReasons } from '../licenses/refusals.ts'
import { type AgentQuota, countedAgents, lockAgentQuota } from '../plans/agent-quota.ts'
import { agents, licenses } from '../platform/db/schema.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { ApiError, tooManyRequests } from '../platform/http/api-error.ts'
import { listOf, optional, text, uuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { refused } from './enroll-refusal.ts'
import { type Pairing, pair } from './pair-server.ts'

const osField = optional(text(128))

export const enrollBody = Type.Object({
  license: text(256),
  /**
   * May be empty: the licence is checked first, and a server without a name is paired by another field, or not at all.
   */
  hostname: text(253, 0),
  ip_addresses: optional(listOf(text(64), 256)),
  machine_id: optional(text(128)),
  os: optional(Type.Object({ family: osField, name: osField, version: osField, kernel: osField, arch: osField })),
  agent_version: optional(text(64)),
  proto_version: optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
  collector_id: optional(uuid()),
})
/** The server's facts as the server sent them; null instead of a name that identifies no server. */
type EnrollBody = Omit<Static<typeof enrollBody>, 'hostname'> & { readonly hostname: string | null }

async function checkQuota(tx: Tx, quota: AgentQuota): Promise<void> {
  if (quota.max !== null && (await countedAgents(tx.db, quota)) >= quota.max) throw refused(422, 'quota_exceeded')
}

/**
 * When the machine_id is already enrolled under another hostname, the server is a clone: returns that hostname. Throws
 * for the same server.
 */
async function checkServer(tx: Tx, companyId: string, body: EnrollBody): Promise<string | null> {
  if (!body.machine_id) return null
  const same = await tx.db.execute<{ hostname: string | null }>(sql`
    select hostname from monitoring_agents
    where company_id = ${companyId} and machine_id = ${body.machine_id} and state <> 'revoked'`)
  const nameOf = (hostname: string | null): string => hostname?.toLowerCase() ?? ''
  if (same.some(agent => nameOf(agent.hostname) === nameOf(body.hostname))) throw refused(409, 'already_enrolled')
  return same[0]?.hostname ?? null
}

type Forwarder = {
  /** The collector that forwards the enrollment; null when it is not known, or token and body disagree. */
  readonly through: string | null
  /** The collector that the body names, if there is one with that id. */
  readonly named: string | null
}

/**
 * The token identifies the forwarding collector, since a body can name any. The body's counts only when the token
 * belongs to no collector.
 */
async function forwarderOf(tx: Tx, context: RouteContext, asked: string | null): Promise<Forwarder> {
  const rows = await tx.db.execute<{ id: string; is_own: boolean }>(sql`
    select id, coalesce(service_user_id = ${context.caller.user.id}, false) as is_own from monitoring_collectors
    where service_user_id = ${context.caller.user.id} or id = ${asked}`)
  const own = rows.find(row => row.is_own)?.id ?? null
  const named = rows.find(row => row.id === asked?.toLowerCase())?.id ?? null
  if (asked === null || own === null) return { through: own ?? named, named }
  return { through: own === named ? own : null, named }
}

type Enrolled = {
  readonly agent_id: string
  readonly company_id: string
  readonly server_id: string
  readonly agent_token: string
  readonly config: { readonly interval_seconds: number }
}

async function enrollLocked(context: RouteContext, tx: Tx, companyId: string, body: EnrollBody): Promise<Enrolled> {
  const { hub } = context
  const quota = await lockAgentQuota(tx, companyId)
  const [license] = await tx.db
    .select()
    .from(licenses)
    .where(eq(licenses.tokenHash, tokenHash(body.license)))
    .for('update')
  if (!license) throw refused(401, 'invalid_token')
  const { through, named } = await forwarderOf(tx, context, body.collector_id ?? null)
  const refusal = enrollRefusal(
    {
      revokedAtMs: license.revokedAt?.getTime() ?? null,
      supersededAtMs: license.supersededAt?.getTime() ?? null,
      expiresAtMs: license.expiresAt?.getTime() ?? null,
      usedCount: license.usedCount,
      maxUses: license.maxUses,
      collectorId: license.collectorId,
    },
    through,
    hub.now(),
  )
  if (refusal) throw refused(refusal.status, refusal.code)
  await checkQuota(tx, quota)
  const cloneOf = await checkServer(tx, companyId, body)
  const pairing = await pair(hub, tx, companyId, license.serverId, body)
  const occupied = await tx.db.execute(sql`select 1 from monitoring_agents
    where server_id = ${pairing.serverId} and state <> 'revoked' limit 1`)
  if (occupied.length > 0) throw refused(409, 'already_enrolled')

  const token = newAgentToken()
  const agentId = randomUUID()
  await tx.db.insert(agents).values({
    id: agentId,
    companyId,
    serverId: pairing.serverId,
    // An agent belongs to the collector that the body names; without one, the first report to /agents/seen attaches it.
    collectorId: named,
    licenseId: license.id,
    tokenHash: tokenHash(token),
    machineId: body.machine_id ?? null,
    hostname: body.hostname,
    osFamily: body.os?.family ?? null,
    osVersion: body.os?.version ?? null,
    arch: body.os?.arch ?? null,
    agentVersion: body.agent_version ?? null,
    protoVersion: body.proto_version ?? null,
    state: stateAtEnrollment(pairing.status),
    enrolledAt: new Date(hub.now()),
  })
  tx.touch('agents', [agentId])
  await tx.db
    .update(licenses)
    .set({ usedCount: license.usedCount + 1, lastUsedAt: new Date(hub.now()) })
    .where(eq(licenses.id, license.id))
  await auditEnrollment(context, tx, { companyId, agentId, license, pairing, body, cloneOf })
  const [setting] = await tx.db.execute<{ default_interval: number }>(
    sql`select default_interval from monitoring_settings where company_id = ${companyId}`,
  )
  return {
    agent_id: agentId,
    company_id: companyId,
    server_id: pairing.serverId,
    agent_token: token,
    config: { interval_seconds: setting?.default_interval ?? 0 },
  }
}

type EnrollmentInput = {
  companyId: string
  agentId: string
  license: { id: string }
  pairing: Pairing
  body: EnrollBody
  cloneOf: string | null
}

async function auditEnrollment(context: RouteContext, tx: Tx, facts: EnrollmentInput): Promise<void> {
  const entry: Omit<AuditEntry, 'action'> = {
    companyId: facts.companyId,
    actor: { type: 'collector', id: context.caller.user.id, name: context.caller.user.name },
    subject: { type: 'agent', id: facts.agentId, name: facts.body.hostname },
    ip: sourceAddress(context),
    userAgent: context.userAgent,
    changes: {
      server_id: { old: null, new: facts.pairing.serverId },
      license_id: { old: null, new: facts.license.id },
      draft_server: { old: null, new: facts.pairing.isNew },
    },
  }
  await writeAudit(tx, { ...entry, action: 'agent.enroll' })
  if (facts.cloneOf === null) return
  const changes = {
    hostname: { old: facts.cloneOf, new: facts.body.hostname },
    machine_id: { old: facts.body.machine_id, new: facts.body.machine_id },
  }
  await writeAudit(tx, { ...entry, action: 'agent.clone_detected', changes })
}

/** The agent's address: the first of X-Forwarded-For, trusted because the token is a collector's. */
const sourceAddress = (context: RouteContext): string =>
  plainAddress(context.forwardedFor?.split(',')[0]?.trim() || context.ip)

type LicenseOfCompany = { readonly id: string; readonly company_id: string }

/** Enrolls with a licence of that company; a refusal is kept for the company to see (decision G-180). */
async function enrollKnown(context: RouteContext, license: LicenseOfCompany, body: EnrollBody): Promise<Enrolled> {
  const { hub } = context
  const companyId = license.company_id
  try {
    return await inTransaction(hub.database.db, tx => enrollLocked(context, tx, companyId, body))
  } catch (error) {
    const reason = error instanceof ApiError ? refusalReasons.find(code => code === error.code) : undefined
    if (reason !== undefined) {
      const ipAddresses = (body.ip_addresses ?? []).map(plainAddress)
      const refusal = { companyId, licenseId: license.id, reason, hostname: body.hostname, ipAddresses }
      await noteRefusal(hub.database.db, refusal, hub.now())
    }
    throw error
  }
}

/** Enrolls a server. Attempts are limited by the address of the server. */
export async function enroll(context: RouteContext, given: Static<typeof enrollBody>): Promise<Enrolled> {
  const { hub } = context
  const body: EnrollBody = { ...given, hostname: given.hostname.trim() || null }
  const address = sourceAddress(context)
  const rateKey = `enroll ${rateKeyOf(address)}`
  const failures = hub.failureWindows.peek(rateKey, hub.config['rate.enroll_failures'])
  if (!failures.allowed) throw tooManyRequests(failures.retryAfterSeconds)
  const attempts = hub.requestWindows.take(rateKey, hub.config['rate.enroll_per_minute'])
  if (!attempts.allowed) throw tooManyRequests(attempts.retryAfterSeconds)
  try {
    const [license] = await hub.database.db.execute<LicenseOfCompany>(sql`
      select l.id, l.company_id from monitoring_licenses l join companies c on c.id = l.company_id
      where l.token_hash = ${tokenHash(body.license)} and c.deleted_at is null`)
    if (!license) throw refused(401, 'invalid_token')
    return await enrollKnown(context, license, body)
  } catch (error) {
    if (error instanceof ApiError && error.status < 500)
      hub.failureWindows.take(rateKey, hub.config['rate.enroll_failures'])
    throw error
  }
}
