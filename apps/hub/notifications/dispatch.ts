// From applied events to the users and systems that are notified of them (decisions G-100, G-104, G-106). Runs as a job
// after the events are stored: a channel that fails never fails the intake, and each delivery is retried on its own.
// Taking rows from the outbox and writing their deliveries is one transaction, so that each channel is notified of an
// event once.
import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { alertsByIds, presentAlert } from '../alerts/alert-list.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { alerts, rules, servers } from '../platform/db/schema.ts'
import { statementOfRows } from '../platform/db/statement-of-rows.ts'
import { inTransaction, isAnyOf, type Tx, together, uuidList } from '../platform/db/transaction.ts'
import { ringLater } from './bell.ts'
import { addDeliveries, deliveriesOf, loadChannelPreferences, type NewDelivery } from './deliveries.ts'
import { registerEmail } from './email.ts'
import { groupNames } from './group-names.ts'
import { type Notification, takeNotifications } from './outbox.ts'
import { addPushes, type NewPush, pushTargets, registerPush } from './push.ts'
import { reaches } from './recipients.ts'
import { alertPath, renderText } from './templates.ts'
import { registerWebhook } from './webhook.ts'

const ROWS_AT_ONCE = 2000

/** A row of the bell's notifications before it is inserted. */
export type BellRow = {
  readonly id: string
  readonly user_id: string
  readonly company_id: string
  readonly type: string
  readonly title: string
  readonly body: string
  readonly link: string
  readonly created_at: string
  /** The alert that it is about; missing: it is about something else. */
  readonly alert_id?: string
}

const insertBellRows = statementOfRows(
  {
    id: 'uuid',
    user_id: 'uuid',
    company_id: 'uuid',
    type: 'text',
    title: 'text',
    body: 'text',
    link: 'text',
    created_at: 'timestamptz',
    alert_id: 'uuid',
  },
  rows => sql`
    insert into notifications (id, user_id, company_id, type, title, body, link, created_at, alert_id)
    select x.id, x.user_id, x.company_id, x.type, x.title, x.body, x.link, x.created_at, x.alert_id from ${rows}`,
)

/** Locks rows, so that none is deleted before the transaction has ended. Returns the ids of those that exist. */
async function lockExisting(tx: Tx, table: 'companies' | 'users', ids: Iterable<string>): Promise<ReadonlySet<string>> {
  const rows = await tx.db.execute<{ id: string }>(sql`
    select id from ${sql.identifier(table)} where id = any(${uuidList(ids)}::uuid[]) order by id for key share`)
  return new Set(rows.map(row => row.id))
}

/**
 * Writes rows of the bell; those for a person or of a company that was deleted meanwhile are left out. The table has no
 * foreign keys: both are locked here once, and not looked up again for every row (G-102).
 */
export async function addBellRows(tx: Tx, rows: readonly BellRow[]): Promise<void> {
  if (rows.length === 0) return
  const [companyIds, userIds] = await together([
    lockExisting(tx, 'companies', new Set(rows.map(row => row.company_id))),
    lockExisting(tx, 'users', new Set(rows.map(row => row.user_id))),
  ])
  const kept = rows.filter(row => companyIds.has(row.company_id) && userIds.has(row.user_id))
  for (let at = 0; at < kept.length; at += ROWS_AT_ONCE)
    await tx.db.execute(insertBellRows(kept.slice(at, at + ROWS_AT_ONCE)))
}

/**
 * For alerts by id: the names that texts show, and the server's attributes by which webhooks and group addresses
 * select.
 */
async function namesOf(db: Executor, companyId: string, ids: readonly string[]) {
  const rows = await db
    .select({
      id: alerts.id,
      seriesKey: alerts.seriesKey,
      openedAt: alerts.openedAt,
      server: {
        id: servers.id,
        name: servers.name,
        tags: servers.tags,
        environment: servers.environment,
        role: servers.role,
        datacenter: servers.datacenter,
      },
      rule: { name: rules.name },
    })
    .from(alerts)
    .innerJoin(servers, eq(servers.id, alerts.serverId))
    .leftJoin(rules, eq(rules.id, alerts.ruleId))
    .where(and(eq(alerts.companyId, companyId), isAnyOf(alerts.id, ids)))
  const groups = await groupNames(
    db,
    companyId,
    rows.map(row => row.seriesKey),
  )
  return rows.map(row => ({ ...row, seriesKey: groups.get(row.seriesKey) ?? row.seriesKey }))
}

/** The alert as it was when the event was applied. */
const asItWas = ({ alert }: Notification) => ({
  state: alert.state,
  severity: alert.severity,
  last_value: alert.lastValue,
  threshold: alert.threshold,
  suppressed: alert.suppressed,
  suppress_reason: alert.suppressReason,
  resolved_at: alert.resolvedAtMs === null ? null : new Date(alert.resolvedAtMs).toISOString(),
  resolved_reason: alert.resolvedReason,
})

/** The notifications of a batch for one company. Texts need few fields of an alert; webhooks get all of them. */
async function composeFor(
  hub: Hub,
  tx: Tx,
  companyId: string,
  told: readonly Notification[],
): Promise<{ rung: BellRow[]; deliveries: NewDelivery[]; pushes: NewPush[] }> {
  const ids = [...new Set(told.map(item => item.alert.id))]
  const voices = await loadChannelPreferences(tx.db, companyId)
  const [named, whole] = await Promise.all([
    namesOf(tx.db, companyId, ids),
    voices.hooks.length > 0 ? alertsByIds(tx.db, companyId, ids) : [],
  ])
  const nameById = new Map(named.map(row => [row.id, row]))
  const wholeById = new Map(whole.map(row => [row.alert.id, row]))
  const targets = await pushTargets(
    tx.db,
    voices.recipients.map(person => person.id),
  )
  const rung: BellRow[] = []
  const pushes: NewPush[] = []
  const deliveries: NewDelivery[] = []
  for (const item of told) {
    const { type, alert } = item
    const names = nameById.get(alert.id)
    // The server was deleted for good meanwhile, and its alerts with it.
    if (!names) continue
    const { server, rule, seriesKey, openedAt } = names
    const then = asItWas(item)
    const shown = { id: alert.id, server, rule, series_key: seriesKey, opened_at: openedAt, ...then }
    for (const person of voices.recipients)
      if (reaches(alert.severity, person.bellFrom))
        rung.push({
          id: randomUUID(),
          user_id: person.id,
          company_id: companyId,
          type,
          ...renderText(hub, voices.texts, type, person.language, shown),
          link: alertPath(shown),
          created_at: new Date(hub.now()).toISOString(),
          alert_id: alert.id,
        })
    pushes.push(
      ...targets
        .filter(target => reaches(alert.severity, target.from))
        .map(({ deviceId, language }) => ({
          deviceId,
          companyId,
          topic: alert.id,
          type,
          severity: alert.severity,
          payload: {
            ...renderText(hub, voices.texts, type, language, shown),
            link: `/alerts/${alert.id}`,
            id: alert.id,
          },
        })),
    )
    const row = wholeById.get(alert.id)
    const forWebhooks = row ? { ...presentAlert(row), ...then } : null
    deliveries.push(
      ...deliveriesOf(hub, voices, { type, companyId, severity: alert.severity, shown, forWebhooks, server }),
    )
  }
  return { rung, deliveries, pushes }
}

/** Sends the oldest notifications in a company's outbox. True when there may be more. */
async function dispatchSome(hub: Hub, companyId: string): Promise<boolean> {
  const { rowCount, rungCount } = await inTransaction(hub.database.db, async tx => {
    const taken = await takeNotifications(tx, companyId)
    if (taken.told.length === 0) return { rowCount: taken.rowCount, rungCount: 0 }
    const { rung, deliveries, pushes } = await composeFor(hub, tx, companyId, taken.told)
    await addBellRows(tx, rung)
    for (let at = 0; at < deliveries.length; at += ROWS_AT_ONCE)
      await addDeliveries(hub, tx, deliveries.slice(at, at + ROWS_AT_ONCE))
    for (let at = 0; at < pushes.length; at += ROWS_AT_ONCE)
      await addPushes(hub, tx, pushes.slice(at, at + ROWS_AT_ONCE))
    await ringLater(
      tx,
      rung.map(row => ({ id: row.id, userId: row.user_id })),
    )
    return { rowCount: taken.rowCount, rungCount: rung.length }
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
  registerPush(hub)
}
