// From an applied event to the people and systems that are told of it (decisions G-100, G-104, G-106). Runs as a job after
// the events are stored: a channel that fails never fails the intake, and each delivery is tried again on its own.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { Severity } from '../../../core/alerting/rule.ts'
import { alertsByIds, presentAlert } from '../alerts/alerts.ts'
import type { Told } from '../collector-api/events.ts'
import { notifications } from '../db/schema-identity.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Hub } from '../hub-context.ts'
import { expandPermissions } from '../identity/permissions.ts'
import type { JobPayload } from '../jobs/jobs.ts'
import { queueDeliveries, registerDeliveryJobs } from './deliveries.ts'
import { languageOf, renderTemplate } from './templates.ts'

type RecipientRow = {
  id: string
  email: string
  language: string
  permissions: string[]
  bell: string | null
  email_level: string | null
}

export type Recipient = {
  readonly id: string
  readonly email: string
  readonly language: 'en' | 'vi'
  readonly bellFrom: string
  readonly emailFrom: string
}

const LEVELS: Readonly<Record<string, number>> = { info: 0, warning: 1, critical: 2 }

/** True when a severity reaches a channel's threshold; `off` is never reached. */
export const reaches = (severity: Severity, from: string): boolean =>
  from !== 'off' && (LEVELS[severity] ?? 0) >= (LEVELS[from] ?? 0)

/** The users of a company that may see its alerts, with their preferences. */
export async function recipientsOf(hub: Hub, companyId: string): Promise<Recipient[]> {
  const rows = await hub.database.db.execute<RecipientRow>(sql`
    select u.id, u.email, u.language,
      u.permissions || coalesce((select array_agg(p) from user_roles ur join roles r on r.id = ur.role_id,
        unnest(r.permissions) p where ur.user_id = u.id), '{}') as permissions,
      (select min_severity from notification_preferences n where n.user_id = u.id and n.channel = 'bell') as bell,
      (select min_severity from notification_preferences n where n.user_id = u.id and n.channel = 'email') as email_level
    from users u where u.company_id = ${companyId} and u.kind = 'person' and u.disabled_at is null`)
  return rows
    .filter(row => expandPermissions(row.permissions).has('monitoring.view'))
    .map(row => ({
      id: row.id,
      email: row.email,
      language: languageOf(row.language),
      bellFrom: row.bell ?? 'info',
      emailFrom: row.email_level ?? 'warning',
    }))
}

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
    handle: payload => dispatch(hub, payload),
  })
  registerDeliveryJobs(hub)
}
