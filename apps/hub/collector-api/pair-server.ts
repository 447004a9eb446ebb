// With which server an agent that enrolls is paired, and when a draft is made for it.
import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { plainAddress } from '../../../core/network/ip-address.ts'
import type { Hub } from '../hub-context.ts'
import { checkCompanyLimit } from '../plans/company-limits.ts'
import { type ServerStatus, servers } from '../platform/db/schema.ts'
import type { Tx } from '../platform/db/transaction.ts'
import { ApiError } from '../platform/http/api-error.ts'
import { refreshScopes } from '../scopes/scope.ts'
import { refused } from './enroll-refusal.ts'

export type Pairing = { readonly serverId: string; readonly status: ServerStatus; readonly isNew: boolean }

/** What of an enrollment names its server. */
type NamedServer = {
  /** Null instead of a name that identifies no server. */
  readonly hostname: string | null
  readonly ip_addresses?: readonly string[] | null | undefined
  readonly os?: { readonly name?: string | null | undefined } | null | undefined
}

/** The server to pair with: the licence's, else one found by address, else by hostname, inside the company only. */
async function findServer(
  tx: Tx,
  companyId: string,
  pinnedId: string | null,
  body: NamedServer,
): Promise<{ id: string; status: ServerStatus } | null> {
  const alive = and(eq(servers.companyId, companyId), sql`${servers.deletedAt} is null`)
  const columns = { id: servers.id, status: servers.status }
  if (pinnedId !== null) {
    const [pinned] = await tx.db
      .select(columns)
      .from(servers)
      .where(and(alive, eq(servers.id, pinnedId)))
    return pinned ?? null
  }
  const addresses = (body.ip_addresses ?? []).map(plainAddress)
  const [byAddress] = await tx.db
    .select(columns)
    .from(servers)
    .where(
      and(alive, sql`${servers.ipAddress} in (select jsonb_array_elements_text(${JSON.stringify(addresses)}::jsonb))`),
    )
    .orderBy(servers.createdAt)
    .limit(1)
  if (byAddress || body.hostname === null) return byAddress ?? null
  const [byHostname] = await tx.db
    .select(columns)
    .from(servers)
    .where(and(alive, sql`lower(${servers.hostname}) = lower(${body.hostname})`))
    .orderBy(servers.createdAt)
    .limit(1)
  return byHostname ?? null
}

/** Reports that the company has no room for another server, with the error code that agents know. */
async function refuseOverLimit(check: Promise<void>): Promise<void> {
  try {
    await check
  } catch (error) {
    throw error instanceof ApiError ? error.withCode('binding_failed') : error
  }
}

/** Creates a server that waits for approval, from the facts that it sent. */
async function createDraft(hub: Hub, tx: Tx, companyId: string, hostname: string, body: NamedServer): Promise<Pairing> {
  const id = randomUUID()
  const taken = await tx.db.execute(sql`select 1 from servers
    where company_id = ${companyId} and lower(name) = lower(${hostname}) and deleted_at is null`)
  await tx.db.insert(servers).values({
    id,
    companyId,
    name: taken.length === 0 ? hostname : `${hostname} ${id.slice(0, 8)}`,
    hostname,
    ipAddress: body.ip_addresses?.[0] ?? null,
    operatingSystem: body.os?.name ?? null,
    status: 'draft',
    origin: 'agent',
  })
  await refuseOverLimit(checkCompanyLimit(hub, tx, companyId, 'servers'))
  tx.touch('servers', [id])
  await refreshScopes(hub, tx, companyId, [id])
  return { serverId: id, status: 'draft', isNew: true }
}

export async function pair(
  hub: Hub,
  tx: Tx,
  companyId: string,
  pinnedId: string | null,
  body: NamedServer,
): Promise<Pairing> {
  const found = await findServer(tx, companyId, pinnedId, body)
  if (found) return { serverId: found.id, status: found.status, isNew: false }
  const [setting] = await tx.db.execute<{ auto_create_server: boolean }>(
    sql`select auto_create_server from monitoring_settings where company_id = ${companyId}`,
  )
  if (pinnedId !== null || !setting?.auto_create_server || body.hostname === null) throw refused(422, 'binding_failed')
  return createDraft(hub, tx, companyId, body.hostname, body)
}
