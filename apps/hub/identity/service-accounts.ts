// Service accounts of collectors and matchers: what they may do, from where their tokens work, and how these are
// replaced.
import { randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { collectors } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import { createToken, endTokens } from './accounts.ts'
import { newAdminToken } from './token-forms.ts'

type ServiceAccount = {
  readonly id: string
  readonly userId: string
  readonly token: string
  readonly adminToken: string | null
}

async function createServiceUser(tx: Tx, kind: 'collector' | 'matcher', name: string, id: string): Promise<string> {
  const userId = randomUUID()
  await tx.db.insert(users).values({
    id: userId,
    companyId: null,
    kind,
    email: `${kind}-${id}@service.invalid`,
    name,
    permissions: [kind === 'collector' ? 'monitoring.collector' : 'security.matcher'],
  })
  return userId
}

type NewCollector = {
  readonly name: string
  readonly baseUrl?: string | null
  readonly adminUrl?: string | null
  readonly adminToken?: string | null
  readonly ipRanges?: readonly string[] | null
}

/** The collector's row, its service user with monitoring.collector only, a token without expiry, an admin token. */
export async function createCollector(hub: Hub, tx: Tx, collector: NewCollector): Promise<ServiceAccount> {
  const id = randomUUID()
  const userId = await createServiceUser(tx, 'collector', collector.name, id)
  const adminToken = collector.adminToken ?? newAdminToken()
  await tx.db.insert(collectors).values({
    id,
    name: collector.name,
    baseUrl: collector.baseUrl ?? null,
    adminUrl: collector.adminUrl ?? null,
    adminTokenSealed: hub.sealer.seal(adminToken),
    serviceUserId: userId,
  })
  const { token } = await createToken(tx, {
    userId,
    name: collector.name,
    ipRanges: collector.ipRanges ?? null,
    expiresAt: null,
  })
  return { id, userId, token, adminToken }
}

/** The matcher's service user with security.matcher only; its token needs an IP range. */
export async function createMatcher(tx: Tx, name: string, ipRanges: readonly string[]): Promise<ServiceAccount> {
  if (ipRanges.length === 0) throw invalidField('ip_range', 'required')
  const id = randomUUID()
  const userId = await createServiceUser(tx, 'matcher', name, id)
  const { token } = await createToken(tx, { userId, name, ipRanges, expiresAt: null })
  return { id: userId, userId, token, adminToken: null }
}

/** Replaces the token of a service account, given by collector id or service user id; the old one stops working. */
export async function rotateService(tx: Tx, id: string): Promise<{ id: string; token: string }> {
  const unknown = `there is no collector or matcher ${id}`
  if (!isUuid(id)) throw new Error(unknown)
  const [row] = await tx.db.execute<{ user_id: string; name: string }>(sql`
    select u.id as user_id, u.name from users u left join monitoring_collectors c on c.service_user_id = u.id
    where u.kind <> 'person' and (u.id = ${id} or c.id = ${id})`)
  if (!row) throw new Error(unknown)
  const [old] = await tx.db.execute<{ ip_ranges: string[] | null }>(
    sql`select ip_ranges from api_tokens where user_id = ${row.user_id} and revoked_at is null order by created_at desc limit 1`,
  )
  await endTokens(tx, sql`t.user_id = ${row.user_id}`)
  const { token } = await createToken(tx, {
    userId: row.user_id,
    name: row.name,
    ipRanges: old?.ip_ranges ?? null,
    expiresAt: null,
  })
  return { id, token }
}

/**
 * Another admin token for a collector: a fresh one, or one that its workers have been given already, so that there is
 * no moment at which they refuse what the hub shows.
 */
export async function rotateAdminToken(
  hub: Hub,
  tx: Tx,
  collectorId: string,
  given: string | null,
): Promise<{ id: string; adminToken: string }> {
  const unknown = `there is no collector ${collectorId}`
  if (!isUuid(collectorId)) throw new Error(unknown)
  const adminToken = given ?? newAdminToken()
  const rows = await tx.db
    .update(collectors)
    .set({ adminTokenSealed: hub.sealer.seal(adminToken) })
    .where(eq(collectors.id, collectorId))
    .returning({ id: collectors.id })
  if (!rows[0]) throw new Error(unknown)
  return { id: collectorId, adminToken }
}
