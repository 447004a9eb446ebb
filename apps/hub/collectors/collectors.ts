// Collectors as super administrators manage them (decision G-33). A collector has a service user, whose token is
// revoked with the collector.
import { asc, eq } from 'drizzle-orm'
import { collectorStatus } from '../../../core/lifecycle/collector-shown-online.ts'
import { auditRequest } from '../audit/audit.ts'
import { recorded } from '../audit/change-with-audit.ts'
import { createCollector } from '../identity/service-accounts.ts'
import { collectors } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { collection, ofEverybody } from '../platform/http/collection.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { revokePinnedLicenses } from '../purge/pinned-licenses.ts'
import { collectorResponse } from './collector-response.ts'

export const collectorCollection = collection({
  table: collectors,
  scope: ofEverybody,
  select: db => db.select().from(collectors),
  order: [asc(collectors.name), asc(collectors.id)],
  response: collectorResponse,
  present: (row, { hub }) => ({
    id: row.id,
    name: row.name,
    base_url: row.baseUrl,
    admin_url: row.adminUrl,
    status: collectorStatus(row.lastHeartbeatAt?.getTime() ?? null, hub.now()),
    version: row.version,
    last_heartbeat_at: row.lastHeartbeatAt,
    agent_count: row.agentCount,
    ingest_rps: row.ingestRps,
    outbox_depth: row.outboxDepth,
    settings: row.settings,
  }),
})

type Collector = typeof collectors.$inferSelect
type CollectorInput = {
  readonly name: string
  readonly base_url?: string | null | undefined
  readonly admin_url?: string | null | undefined
  readonly settings?: Readonly<Record<string, unknown>> | undefined
}

const changes = recorded({
  type: 'collector',
  of: collectorCollection,
  named: ({ id, name }: Collector) => ({ id, name }),
})

/** The response contains the collector's tokens, which are shown this once. */
export async function addCollector(context: RouteContext, input: CollectorInput) {
  const { hub } = context
  return inTransaction(hub.database.db, async tx => {
    const { name, base_url: baseUrl = null, admin_url: adminUrl = null } = input
    const made = await createCollector(hub, tx, { name, baseUrl, adminUrl })
    if (input.settings)
      await tx.db.update(collectors).set({ settings: input.settings }).where(eq(collectors.id, made.id))
    await auditRequest(tx, context, 'collector.create', { type: 'collector', id: made.id, name })
    const row = await collectorCollection.find(tx.db, '', made.id)
    return { row, beside: { token: made.token, admin_token: made.adminToken } }
  })
}

export const changeCollector = (
  context: RouteContext,
  { id }: Collector,
  input: Partial<CollectorInput>,
): Promise<Collector> =>
  changes.change(context, id, (tx, before) =>
    tx.db
      .update(collectors)
      .set({
        name: input.name ?? before.name,
        baseUrl: input.base_url === undefined ? before.baseUrl : input.base_url,
        adminUrl: input.admin_url === undefined ? before.adminUrl : input.admin_url,
        settings: input.settings ?? before.settings,
      })
      .where(eq(collectors.id, id)),
  )

/** Its token stops working, and so do the licences that only it might forward. */
export const deleteCollector = (context: RouteContext, { id }: Collector): Promise<void> =>
  changes.delete(context, id, async (tx, { serviceUserId }) => {
    await revokePinnedLicenses(context.hub, tx, 'collectorId', id)
    await tx.db.delete(collectors).where(eq(collectors.id, id))
    if (serviceUserId) await tx.db.delete(users).where(eq(users.id, serviceUserId))
  })
