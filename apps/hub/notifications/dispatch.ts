// From an applied event to the people and systems that are told of it (decisions G-100, G-104, G-106). Runs as a job after
// the events are stored: a channel that fails never fails the intake, and each delivery is tried again on its own.
import { randomUUID } from 'node:crypto'
import { inArray } from 'drizzle-orm'
import { type AlertRow, alertsByIds, presentAlert } from '../alerts/alerts.ts'
import type { Told } from '../collector-api/events.ts'
import { servers } from '../db/schema.ts'
import { notifications } from '../db/schema-identity.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Hub } from '../hub-context.ts'
import type { JobPayload } from '../jobs/jobs.ts'
import { addDeliveries, deliveriesOf, loadVoices, type NewDelivery, registerDeliveryJobs } from './deliveries.ts'
import { reaches } from './recipients.ts'
import { renderText } from './templates.ts'

const ROWS_AT_ONCE = 500

type BellRow = typeof notifications.$inferInsert

/** The alert as it was when the event was applied, with the names that people know things by. */
const shownAt = (row: AlertRow, { alert }: Told) => ({
  ...presentAlert(row),
  state: alert.state,
  severity: alert.severity,
  last_value: alert.lastValue,
  threshold: alert.threshold,
  resolved_at: alert.resolvedAtMs === null ? null : new Date(alert.resolvedAtMs).toISOString(),
  resolved_reason: alert.resolvedReason,
})

/** Everything that one company is told of a batch, written in one transaction: another try repeats nothing. */
async function dispatchOf(hub: Hub, companyId: string, told: readonly Told[]): Promise<void> {
  const { db } = hub.database
  const ids = [...new Set(told.map(item => item.alert.id))]
  const alertRows = new Map((await alertsByIds(db, companyId, ids)).map(row => [row.alert.id, row]))
  const serverIds = [...new Set(told.map(item => item.alert.serverId))]
  const serverRows = await db.select().from(servers).where(inArray(servers.id, serverIds))
  const serverById = new Map(serverRows.map(row => [row.id, row]))
  const voices = await loadVoices(hub, companyId)
  const rung: BellRow[] = []
  const deliveries: NewDelivery[] = []
  for (const item of told) {
    const { type, alert } = item
    const row = alertRows.get(alert.id)
    const server = serverById.get(alert.serverId)
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
  await inTransaction(db, async tx => {
    for (let at = 0; at < rung.length; at += ROWS_AT_ONCE)
      await tx.db.insert(notifications).values(rung.slice(at, at + ROWS_AT_ONCE))
    for (let at = 0; at < deliveries.length; at += ROWS_AT_ONCE)
      await addDeliveries(hub, tx, deliveries.slice(at, at + ROWS_AT_ONCE))
    tx.afterCommit(() => {
      for (const { userId, companyId: _company, createdAt, ...rest } of rung)
        hub.bell.ring(userId, { ...rest, read_at: null, created_at: createdAt?.toISOString() })
    })
  })
  if (rung.length > 0) hub.metrics.notifications.inc({ channel: 'bell', result: 'delivered' }, rung.length)
}

async function dispatch(hub: Hub, payload: JobPayload): Promise<void> {
  const byCompany = new Map<string, Told[]>()
  for (const item of payload.told as Told[])
    byCompany.set(item.alert.companyId, [...(byCompany.get(item.alert.companyId) ?? []), item])
  for (const [companyId, told] of byCompany) await dispatchOf(hub, companyId, told)
}

export function registerNotificationJobs(hub: Hub): void {
  hub.jobs.register({
    name: 'notifications.dispatch',
    waitsSeconds: [10, 30, 60],
    isSerial: true,
    handle: payload => dispatch(hub, payload),
  })
  registerDeliveryJobs(hub)
}
