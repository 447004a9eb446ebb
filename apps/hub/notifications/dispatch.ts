// From an applied event to the people and systems that are told of it (decisions G-100, G-104, G-106). Runs as a job after
// the events are stored: a channel that fails never fails the intake, and each delivery is tried again on its own.
import { randomUUID } from 'node:crypto'
import { alertsByIds, presentAlert } from '../alerts/alerts.ts'
import type { Told } from '../collector-api/events.ts'
import { notifications } from '../db/schema-identity.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Hub } from '../hub-context.ts'
import type { JobPayload } from '../jobs/jobs.ts'
import { queueDeliveries, registerDeliveryJobs } from './deliveries.ts'
import { reaches, recipientsOf } from './recipients.ts'
import { renderTemplate } from './templates.ts'

async function dispatchOne(hub: Hub, { type, alert }: Told): Promise<void> {
  const [row] = await alertsByIds(hub.database.db, alert.companyId, [alert.id])
  if (!row) return
  // The alert as it was when the event was applied, with the names that people know things by.
  const shown = {
    ...presentAlert(row),
    state: alert.state,
    severity: alert.severity,
    last_value: alert.lastValue,
    threshold: alert.threshold,
    resolved_at: alert.resolvedAtMs === null ? null : new Date(alert.resolvedAtMs).toISOString(),
    resolved_reason: alert.resolvedReason,
  }
  const recipients = await recipientsOf(hub, alert.companyId)
  const rung = recipients.filter(person => reaches(alert.severity, person.bellFrom))
  const written = await Promise.all(
    rung.map(async person => {
      const { title, body } = await renderTemplate(hub, alert.companyId, type, person.language, shown)
      return {
        id: randomUUID(),
        userId: person.id,
        companyId: alert.companyId,
        type,
        title,
        body,
        link: `/alerts/${alert.id}`,
        createdAt: new Date(hub.now()),
      }
    }),
  )
  await inTransaction(hub.database.db, async tx => {
    if (written.length > 0) await tx.db.insert(notifications).values(written)
    tx.afterCommit(() => {
      for (const { userId, companyId: _company, createdAt, ...rest } of written)
        hub.bell.ring(userId, { ...rest, read_at: null, created_at: createdAt.toISOString() })
    })
    await queueDeliveries(hub, tx, { type, alert, shown, recipients })
  })
  if (written.length > 0) hub.metrics.notifications.inc({ channel: 'bell', result: 'delivered' }, written.length)
}

async function dispatch(hub: Hub, payload: JobPayload): Promise<void> {
  for (const told of payload.told as Told[]) await dispatchOne(hub, told)
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
