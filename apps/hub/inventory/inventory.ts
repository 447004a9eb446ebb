// Inventory facts of a server, and taking them over into its record (decision G-113). The hub never rewrites a server
// by itself.
import { and, eq, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import type { Executor } from '../platform/db/connect.ts'
import { inventoryFacts } from '../platform/db/schema.ts'
import { inTransaction, lockCompany } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { findServer, presentServer, type ServerRow } from '../servers/server-list.ts'
import { changeServer, type ServerInput } from '../servers/servers.ts'
import { differencesOf, type InventoryField, inventoryValues } from './differences.ts'

type Facts = typeof inventoryFacts.$inferSelect

/** The newest facts of a server and the hostname of its newest agent; null without facts. */
export async function newestFacts(
  db: Executor,
  companyId: string,
  serverId: string,
): Promise<{ facts: Facts; hostname: string | null } | null> {
  const [facts] = await db
    .select()
    .from(inventoryFacts)
    .where(and(eq(inventoryFacts.companyId, companyId), eq(inventoryFacts.serverId, serverId)))
  if (!facts) return null
  const [agent] = await db.execute<{ hostname: string | null }>(sql`
    select hostname from monitoring_agents where company_id = ${companyId} and server_id = ${serverId}
    order by (state <> 'revoked') desc, enrolled_at desc limit 1`)
  return { facts, hostname: agent?.hostname ?? null }
}

/** The same; 404 without facts. */
async function factsOf(db: Executor, companyId: string, serverId: string) {
  const found = await newestFacts(db, companyId, serverId)
  if (!found) throw notFound()
  return found
}

function inputOf(
  fields: readonly InventoryField[],
  found: ReturnType<typeof inventoryValues>,
  chosenAddress: string | null,
): ServerInput {
  const input: { -readonly [K in keyof ServerInput]: ServerInput[K] } = {}
  for (const field of fields) {
    const value = field === 'ip_address' ? (chosenAddress ?? found.addresses[0] ?? null) : found[field]
    if (value === null) throw invalidField(`fields.${fields.indexOf(field)}`, 'no_difference')
    if (field === 'ip_address' && chosenAddress !== null && !found.addresses.includes(chosenAddress))
      throw invalidField('values.ip_address', 'no_difference')
    Object.assign(input, { [field]: value })
  }
  return input
}

type Chosen = {
  readonly fields: readonly InventoryField[]
  readonly values?: { readonly ip_address?: string | null | undefined } | null | undefined
}

/** Takes the chosen fields over into the server record. */
export async function applyInventory(context: RouteContext, serverId: string, body: Chosen) {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findServer(tx.db, companyId, serverId)
    if (before.server.origin === 'iac') throw invalidField('origin', 'iac_origin')
    const { facts, hostname } = await factsOf(tx.db, companyId, serverId)
    const fields = [...new Set(body.fields)]
    const input = inputOf(fields, inventoryValues(facts.facts, hostname), body.values?.ip_address ?? null)
    await changeServer(hub, tx, before.server, input)
    const after = await findServer(tx.db, companyId, serverId)
    const pick = (row: typeof before) => {
      const shown: Readonly<Record<string, unknown>> = presentServer(row)
      return Object.fromEntries(fields.map(field => [field, shown[field]]))
    }
    await auditRequest(
      tx,
      context,
      'inventory.apply',
      { type: 'server', id: serverId, name: after.server.name },
      changesBetween(pick(before), pick(after)),
    )
    return { data: presentServer(after), applied: fields }
  })
}

/** The newest facts, and in which fields the server record says something else. Throws 404 where there are none. */
export async function showInventory({ hub, companyId }: RouteContext, { server }: ServerRow) {
  const { facts, hostname } = await factsOf(hub.database.db, companyId, server.id)
  return {
    facts: facts.facts,
    facts_hash: facts.factsHash,
    reported_at: facts.reportedAt,
    differences: differencesOf(server, facts.facts, hostname),
    origin: server.origin,
  }
}
