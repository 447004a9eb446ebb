// Licences: the keys by which servers enroll (document 1 "Licenses"; decisions G-17 to G-23).
import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { isEditable } from '../../../core/lifecycle/license.ts'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { newLicenseToken, tokenHash, tokenHint } from '../identity/token-forms.ts'
import { type AgentQuota, agentQuota, countedAgents, licensedUses, lockAgentQuota } from '../plans/agent-quota.ts'
import type { Executor } from '../platform/db/connect.ts'
import { collectors, licenses, servers } from '../platform/db/schema.ts'
import { companies } from '../platform/db/schema-identity.ts'
import { inTransaction, lockCompany, type Tx } from '../platform/db/transaction.ts'
import { invalid, invalidField } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { findLicense, type LicenseRow, statusOf } from './license-list.ts'
import { MIGRATE_MS } from './license-migrations.ts'

async function lockLicense(tx: Tx, companyId: string, id: string): Promise<LicenseRow> {
  await lockCompany(tx, companyId)
  await tx.db.execute(sql`select id from monitoring_licenses where company_id = ${companyId} and id = ${id} for update`)
  return findLicense(tx.db, companyId, id)
}

async function checkQuota(tx: Tx, quota: AgentQuota, maxUses: number, exceptId: string | null): Promise<void> {
  if (quota.max === null) return
  const sum = (await licensedUses(tx.db, quota, exceptId)) + maxUses
  if (sum > quota.max) throw invalidField('max_uses', 'over_quota', { sum, quota: quota.max })
}

type LicenseInput = {
  readonly name: string
  readonly server_id?: string | null | undefined
  readonly collector_id?: string | null | undefined
  readonly expires_at?: string | null | undefined
  readonly max_uses?: number | null | undefined
}

async function checkReferences(tx: Tx, companyId: string, input: LicenseInput): Promise<void> {
  const faults: Record<string, ReturnType<typeof words>> = {}
  if (input.server_id) {
    const found = await tx.db
      .select({ id: servers.id })
      .from(servers)
      .where(and(eq(servers.companyId, companyId), eq(servers.id, input.server_id), sql`${servers.deletedAt} is null`))
    if (found.length === 0) faults.server_id = words('unknown_reference')
  }
  if (input.collector_id) {
    const found = await tx.db
      .select({ id: collectors.id })
      .from(collectors)
      .where(eq(collectors.id, input.collector_id))
    if (found.length === 0) faults.collector_id = words('unknown_reference')
  }
  if (Object.keys(faults).length > 0) throw invalid(faults)
}

function futureInstant(value: string | null | undefined, nowMs: number): Date | null {
  if (value == null) return null
  const date = new Date(value)
  if (date.getTime() <= nowMs) throw invalidField('expires_at', 'future')
  return date
}

/** Creates a licence. The clear token is in the answer and nowhere else. */
export async function createLicense(
  context: RouteContext,
  input: LicenseInput,
): Promise<{ row: LicenseRow; beside: { token: string } }> {
  const { hub, companyId } = context
  const expiresAt = futureInstant(input.expires_at, hub.now())
  return inTransaction(hub.database.db, async tx => {
    const quota = await lockAgentQuota(tx, companyId)
    await checkReferences(tx, companyId, input)
    const [company] = await tx.db
      .select({ personal: companies.personal })
      .from(companies)
      .where(eq(companies.id, companyId))
    if (company?.personal) {
      const alive = await tx.db.execute(sql`select 1 from monitoring_licenses
        where company_id = ${companyId} and revoked_at is null and superseded_at is null`)
      if (alive.length > 0) throw invalidField('license', 'personal_license')
    }
    const maxUses = input.max_uses ?? 1
    const isCounted = expiresAt === null || expiresAt.getTime() > hub.now()
    if (isCounted) await checkQuota(tx, quota, maxUses, null)
    const token = newLicenseToken()
    const id = randomUUID()
    await tx.db.insert(licenses).values({
      id,
      companyId,
      name: input.name,
      tokenHash: tokenHash(token),
      tokenHint: tokenHint(token),
      serverId: input.server_id ?? null,
      collectorId: input.collector_id ?? null,
      expiresAt,
      maxUses,
      createdBy: context.caller.user.id,
    })
    await auditRequest(tx, context, 'license.create', { type: 'license', id, name: input.name })
    return { row: await findLicense(tx.db, companyId, id), beside: { token } }
  })
}

function refuseFinal(row: LicenseRow, nowMs: number): void {
  const status = statusOf(row.license, nowMs)
  if (!isEditable(status)) throw invalidField('status', 'license_final', { status })
}

type LicensePatch = {
  readonly name?: string | undefined
  readonly expires_at?: string | null | undefined
  readonly max_uses?: number | undefined
}

/** Changes what is given. A final licence is refused; raising max_uses or the expiry makes a licence active again. */
export async function updateLicense(context: RouteContext, id: string, patch: LicensePatch): Promise<LicenseRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    const quota = await lockAgentQuota(tx, companyId)
    const before = await lockLicense(tx, companyId, id)
    refuseFinal(before, hub.now())
    const expiresAt = patch.expires_at === undefined ? undefined : futureInstant(patch.expires_at, hub.now())
    const { license } = before
    const maxUses = patch.max_uses ?? license.maxUses
    if (maxUses < license.usedCount) throw invalidField('max_uses', 'below_used', { used: license.usedCount })
    const wasCounted = statusOf(license, hub.now()) !== 'expired'
    if (maxUses > license.maxUses || (!wasCounted && expiresAt !== undefined))
      await checkQuota(tx, quota, maxUses, license.id)
    await tx.db
      .update(licenses)
      .set({ name: patch.name ?? license.name, maxUses, ...(expiresAt === undefined ? {} : { expiresAt }) })
      .where(eq(licenses.id, license.id))
    const after = await findLicense(tx.db, companyId, id)
    const changes = changesBetween(
      { name: license.name, max_uses: license.maxUses, expires_at: license.expiresAt },
      { name: after.license.name, max_uses: after.license.maxUses, expires_at: after.license.expiresAt },
    )
    await auditRequest(tx, context, 'license.update', { type: 'license', id, name: after.license.name }, changes)
    return after
  })
}

/**
 * Retires the key and issues a new one on a row of its own; agents move over at their next rotation (decision G-19).
 */
export async function regenerateLicense(
  context: RouteContext,
  id: string,
): Promise<{ row: LicenseRow; beside: { token: string } }> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    const before = await lockLicense(tx, companyId, id)
    refuseFinal(before, hub.now())
    const { license } = before
    const token = newLicenseToken()
    const newId = randomUUID()
    await tx.db.insert(licenses).values({
      id: newId,
      companyId: license.companyId,
      name: license.name,
      tokenHash: tokenHash(token),
      tokenHint: tokenHint(token),
      serverId: license.serverId,
      collectorId: license.collectorId,
      expiresAt: license.expiresAt,
      maxUses: license.maxUses,
      usedCount: license.usedCount,
      supersedes: license.id,
      createdBy: context.caller.user.id,
    })
    await tx.db
      .update(licenses)
      .set({ supersededAt: new Date(hub.now()), supersededBy: newId, migrateUntil: new Date(hub.now() + MIGRATE_MS) })
      .where(eq(licenses.id, license.id))
    await auditRequest(
      tx,
      context,
      'license.regenerate',
      { type: 'license', id, name: license.name },
      {
        superseded_by: { old: null, new: newId },
      },
    )
    return { row: await findLicense(tx.db, companyId, newId), beside: { token } }
  })
}

/** The key stops enrolling at once; agents that it enrolled keep working. Repeating changes nothing. */
export async function revokeLicense(context: RouteContext, id: string): Promise<LicenseRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    const before = await lockLicense(tx, companyId, id)
    const status = statusOf(before.license, hub.now())
    if (status === 'revoked') return before
    if (status === 'superseded') throw invalidField('status', 'license_final', { status })
    await tx.db
      .update(licenses)
      .set({ revokedAt: new Date(hub.now()) })
      .where(eq(licenses.id, id))
    await auditRequest(tx, context, 'license.revoke', { type: 'license', id, name: before.license.name })
    return findLicense(tx.db, companyId, id)
  })
}

/** The agent quota of a company's plan, and what all companies that share it use of it. */
export async function quotaOf(db: Executor, companyId: string) {
  const quota = await agentQuota(db, companyId)
  const [licensed, agents] = await Promise.all([licensedUses(db, quota), countedAgents(db, quota)])
  return {
    plan: quota.plan,
    agent_quota: quota.max,
    licensed_uses: licensed,
    remaining: quota.max === null ? null : Math.max(0, quota.max - licensed),
    agents,
  }
}
