// From applied events to the people and systems that are told of them (decisions G-100, G-104, G-106). Runs as a job
// after the events are stored: a channel that fails never fails the intake, and each delivery is tried again on its own.
// What is taken from the outbox and what comes of it is one transaction, so that each event is told once on each channel.
import { randomUUID } from 'node:crypto'
import { inArray } from 'drizzle-orm'
import { type AlertRow, alertsByIds, presentAlert } from '../alerts/alerts.ts'
import { servers } from '../db/schema.ts'
import { notifications } from '../db/schema-identity.ts'
import { inTransaction, type Tx } from '../db/transaction.ts'
import type { Hub } from '../hub-context.ts'
import { ringLater } from './bell.ts'
import { addDeliveries, deliveriesOf, loadVoices, type NewDelivery } from './deliveries.ts'
import { registerEmail } from './email.ts'
import { type Told, takeTold } from './outbox.ts'
import { reaches } from './recipients.ts'
import { renderText } from './templates.ts'
import { registerWebhook } from './webhook.ts'

const ROWS_AT_ONCE = 500

type BellRow = typeof notifications.$inferInsert & { readonly id: string }

/** The alert as it was when the event was applied, with the names that people know things by. */
const shownAt = (row: AlertRow, { alert }: Told) => ({
  ...presentAlert(row),
  state: alert.state,
  severity: alert.severity,
  last_value: alert.lastValue,
  threshold: alert.threshold,
  suppressed: alert.suppressed,
  suppress_reason: alert.suppressReason,
  resolved_at: alert.resolvedAtMs === null ? null : new Date(alert.resolvedAtMs).toISOString(),
  resolved_reason: alert.resolvedReason,
})

/** What a company is told of a batch. */
async function composeFor(
  hub: Hub,
  tx: Tx,
  companyId: string,
  told: readonly Told[],
): Promise<{ rung: BellRow[]; deliveries: NewDelivery[] }> {
  const ids = [...new Set(told.map(item => item.alert.id))]
  const alertRows = new Map((await alertsByIds(tx.db, companyId, ids)).map(row => [row.alert.id, row]))
  const serverIds = [...new Set(told.map(item => item.alert.serverId))]
  const serverRows = await tx.db.select().from(servers).where(inArray(servers.id, serverIds))
  const serverById = new Map(serverRows.map(row => [row.id, row]))
  const voices = await loadVoices(tx.db, companyId)
  const rung: BellRow[] = []
  const deliveries: NewDelivery[] = []
  for (const item of told) {
    const { type, alert } = item
    const row = alertRows.get(alert.id)
    const server = serverById.get(alert.serverId)
    // The server was deleted for good meanwhile, and its alerts with it.
    if (!row || !server) continue
    const shown = shownAt(row, item)
    for (const person of voices.recipients)
      if (reaches(alert.severity, person.bellFrom))
        rung.push({
          id: randomUUID(),
          userId: person.id,
          companyId,
          type,
          ...renderText(hub, voices.texts, type, person.language, shown),
          link: `/alerts/${alert.id}`,
          createdAt: new Date(hub.now()),
        })
    deliveries.push(...deliveriesOf(hub, voices, { type, companyId, severity: alert.severity, shown, server }))
  }
  return { rung, deliveries }
}

/** Tells the oldest of what a company is to be told. True when there may be more. */
async function dispatchSome(hub: Hub, companyId: string): Promise<boolean> {
  let rungCount = 0
  const rowCount = await inTransaction(hub.database.db, async tx => {
    const taken = await takeTold(tx, companyId)
    if (taken.told.length === 0) return taken.rowCount
    const { rung, deliveries } = await composeFor(hub, tx, companyId, taken.told)
    for (let at = 0; at < rung.length; at += ROWS_AT_ONCE)
      await tx.db.insert(notifications).values(rung.slice(at, at + ROWS_AT_ONCE))
    for (let at = 0; at < deliveries.length; at += ROWS_AT_ONCE)
      await addDeliveries(hub, tx, deliveries.slice(at, at + ROWS_AT_ONCE))
    await ringLater(tx, rung)
    rungCount = rung.length
    return taken.rowCount
  })
  if (rungCount > 0) hub.metrics.notifications.inc({ channel: 'bell', result: 'delivered' }, rungCount)
  return rowCount > 0
}

export function registerNotificationJobs(hub: Hub): void {
  hub.jobs.register('notifications.dispatch', {
    async handle(payload) {
      while (await dispatchSome(hub, String(payload.company_id))) {
        // Each round is a transaction of its own.
      }
    },
  })
  registerWebhook(hub)
  registerEmail(hub)
}
