// REST: /servers/{server}/inventory (decision G-113). The hub never rewrites a server by itself: a user applies fields.

import { type Static, Type } from '@sinclair/typebox'
import { and, eq, sql } from 'drizzle-orm'
import { auditRequest, changesBetween } from '../audit/audit.ts'
import type { Executor } from '../platform/db/connect.ts'
import { inventoryFacts } from '../platform/db/schema.ts'
import { inTransaction, lockCompany } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { listOf, oneOf, optional, text } from '../platform/http/request-schema.ts'
import { answer, listed } from '../platform/http/response-schema.ts'
import { type Route, type RouteContext, route } from '../platform/http/route.ts'
import { inventoryAnswer, serverAnswer } from '../servers/server-response.ts'
import { changeServer, findServer, presentServer, type ServerInput } from '../servers/servers.ts'
import { differencesOf, type InventoryField, inventoryFields, inventoryValues } from './differences.ts'

const TAG = 'Servers'

const applyBody = Type.Object({
  fields: listOf(oneOf(inventoryFields), inventoryFields.length, 1),
  values: optional(Type.Object({ ip_address: optional(text(64)) })),
})

const subject = ({ hub, companyId, params }: RouteContext) =>
  findServer(hub.database.db, companyId, params.server ?? '')

type Facts = typeof inventoryFacts.$inferSelect

/** The newest facts of a machine and the hostname of its newest agent; 404 without facts. */
async function factsOf(
  db: Executor,
  companyId: string,
  serverId: string,
): Promise<{ facts: Facts; hostname: string | null }> {
  const [facts] = await db
    .select()
    .from(inventoryFacts)
    .where(and(eq(inventoryFacts.companyId, companyId), eq(inventoryFacts.serverId, serverId)))
  if (!facts) throw notFound()
  const [agent] = await db.execute<{ hostname: string | null }>(sql`
    select hostname from monitoring_agents where company_id = ${companyId} and server_id = ${serverId}
    order by (state <> 'revoked') desc, enrolled_at desc limit 1`)
  return { facts, hostname: agent?.hostname ?? null }
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

async function apply(context: RouteContext, serverId: string, body: Static<typeof applyBody>) {
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

export const inventoryRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/servers/:server/inventory',
    tag: TAG,
    summary: 'Inventory facts and how the server record differs',
    permissions: ['monitoring.view'],
    subject,
    answer: answer(inventoryAnswer),
    async handle({ hub, companyId, subject }) {
      const { facts, hostname } = await factsOf(hub.database.db, companyId, subject.server.id)
      return {
        data: {
          facts: facts.facts,
          facts_hash: facts.factsHash,
          reported_at: facts.reportedAt,
          differences: differencesOf(subject.server, facts.facts, hostname),
          origin: subject.server.origin,
        },
      }
    },
  }),
  route({
    method: 'POST',
    path: '/servers/:server/inventory/apply',
    tag: TAG,
    summary: 'Take over selected fields',
    permissions: ['monitoring.view', 'servers.manage'],
    subject,
    body: applyBody,
    answer: Type.Object({ data: serverAnswer, applied: listed(oneOf(inventoryFields)) }),
    handle: context => apply(context, context.subject.server.id, context.body),
  }),
]
