// POST /security/matcher/scan-hosts/enroll: a code is exchanged for a scan host (document 3; decisions G-159, G-171,
// G-175, G-185, G-186, G-192). A refusal consumes no use of the code.
import { randomUUID } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { eq, sql } from 'drizzle-orm'
import { ENROLLED_OS_FIELDS, isPublicKey } from '../../../../core/matching/scan-protocol.ts'
import { auditRequest } from '../../audit/audit.ts'
import { tokenHash } from '../../identity/token-forms.ts'
import { scanEnrollmentCodes, scanHosts } from '../../platform/db/schema-security.ts'
import { inTransaction, type Tx } from '../../platform/db/transaction.ts'
import { ApiError, invalidField } from '../../platform/http/api-error.ts'
import { words } from '../../platform/http/api-texts.ts'
import { listOf, optional, text } from '../../platform/http/request-schema.ts'
import type { RouteContext } from '../../platform/http/route.ts'
import { CODE_VALID_MS } from './enrollment-codes.ts'
import { isTaken, revokeHosts } from './scan-hosts.ts'
import { countedHosts, lockScanQuota, markInactive } from './scan-quota.ts'

const osText = Type.Optional(text(128, 0))

export const enrollBody = Type.Object({
  code: text(256),
  public_key: text(64),
  hostname: text(253),
  ip_addresses: optional(listOf(text(64), 32)),
  machine_id_hash: text(64),
  os: Type.Object(
    Object.fromEntries(ENROLLED_OS_FIELDS.map(name => [name, osText])) as Record<
      (typeof ENROLLED_OS_FIELDS)[number],
      typeof osText
    >,
  ),
})
type EnrollBody = Static<typeof enrollBody>

const HEX_64 = /^[0-9a-f]{64}$/

/** Refuses a text that is not base64 of the 32 bytes of a key. */
export function checkPublicKey(key: string): void {
  if (!isPublicKey(key)) throw invalidField('public_key', 'public_key')
}

type Enrolled = { readonly host_id: string; readonly company_id: string; readonly server_id: string | null }

const invalidCode = (): ApiError => new ApiError(401, 'invalid_code', words('scan_code_invalid'))

/** The host that the same key was given for the same code within a day: an answer that was lost costs nothing. */
async function givenBefore(tx: Tx, codeId: string, publicKey: string, sinceMs: number): Promise<Enrolled | null> {
  const [row] = await tx.db.execute<Enrolled>(sql`
    select host_id, company_id, server_id from scan_hosts
    where code_id = ${codeId} and public_key = ${publicKey} and state = 'active'
      and enrolled_at > ${new Date(sinceMs).toISOString()}::timestamptz
    order by enrolled_at desc limit 1`)
  return row ?? null
}

/**
 * The server that the code names, while it is there. A code for one host is refused while another has that server, and
 * stays good; of a code for several only the first host is attached, and an agent that was handed one has nobody who
 * could choose: these get a host without a server.
 */
async function serverOf(
  tx: Tx,
  companyId: string,
  code: typeof scanEnrollmentCodes.$inferSelect,
): Promise<string | null> {
  const { serverId, agentId, maxUses } = code
  if (serverId === null) return null
  const known = await tx.db.execute(sql`
    select 1 from servers where company_id = ${companyId} and id = ${serverId} and deleted_at is null`)
  if (known.length === 0) return null
  if (!(await isTaken(tx, serverId, null))) return serverId
  if (agentId === null && maxUses === 1) throw invalidField('server_id', 'server_has_scan_host')
  return null
}

async function enrollLocked(context: RouteContext, tx: Tx, companyId: string, body: EnrollBody): Promise<Enrolled> {
  const { hub } = context
  const nowMs = hub.now()
  const quota = await lockScanQuota(tx, companyId)
  const [code] = await tx.db
    .select()
    .from(scanEnrollmentCodes)
    .where(eq(scanEnrollmentCodes.codeHash, tokenHash(body.code)))
    .for('update')
  if (!code) throw invalidCode()
  const before = await givenBefore(tx, code.id, body.public_key, nowMs - CODE_VALID_MS)
  if (before) return before
  if (code.expiresAt.getTime() <= nowMs || code.uses >= code.maxUses) throw invalidCode()
  const older = await tx.db.execute<{ host_id: string }>(sql`
    select host_id from scan_hosts
    where company_id = ${companyId} and machine_id_hash = ${body.machine_id_hash} and state = 'active' for update`)
  const resolved = await revokeHosts(
    hub,
    tx,
    older.map(host => host.host_id),
    'enrolled again',
  )
  if (quota.max !== null && (await countedHosts(tx.db, quota)) >= quota.max)
    throw new ApiError(422, 'quota_exceeded', words('scan_quota'))
  const hostId = randomUUID()
  const serverId = await serverOf(tx, companyId, code)
  await tx.db.insert(scanHosts).values({
    id: hostId,
    companyId,
    serverId,
    publicKey: body.public_key,
    machineIdHash: body.machine_id_hash,
    hostname: body.hostname.trim(),
    ipAddresses: body.ip_addresses ?? [],
    os: Object.fromEntries(ENROLLED_OS_FIELDS.flatMap(name => (body.os[name] ? [[name, body.os[name]]] : []))),
    codeId: code.id,
    enrolledAt: new Date(nowMs),
  })
  tx.touch('scan_hosts', [hostId])
  await tx.db
    .update(scanEnrollmentCodes)
    .set({ uses: code.uses + 1, lastUsedAt: new Date(nowMs) })
    .where(eq(scanEnrollmentCodes.id, code.id))
  // The agent that the code was made for needs it no longer.
  if (code.agentId !== null) tx.touch('agents', [code.agentId])
  await markInactive(hub, tx, quota)
  const subject = { type: 'scan_host', id: hostId, name: body.hostname.trim() }
  const changes = {
    server_id: { old: null, new: serverId },
    replaced: { old: null, new: older[0]?.host_id ?? null },
    resolved_findings: { old: null, new: resolved },
  }
  await auditRequest(tx, context, 'scan_host.enroll', subject, changes, companyId)
  return { host_id: hostId, company_id: companyId, server_id: serverId }
}

export async function enrollScanHost(context: RouteContext, body: EnrollBody): Promise<Enrolled> {
  checkPublicKey(body.public_key)
  if (!HEX_64.test(body.machine_id_hash)) throw invalidField('machine_id_hash', 'hash')
  const { db } = context.hub.database
  const [found] = await db.execute<{ company_id: string }>(sql`
    select k.company_id from scan_enrolment_codes k join companies c on c.id = k.company_id
    where k.code_hash = ${tokenHash(body.code)} and c.deleted_at is null`)
  if (!found) throw invalidCode()
  return inTransaction(db, tx => enrollLocked(context, tx, found.company_id, body))
}
