// From applied events to the users and systems that are notified of them (decisions G-100, G-104, G-106). Runs as a job
// after the events are stored: a channel that fails never fails the intake, and each delivery is retried on its own.
// Taking rows from the outbox and writing their deliveries is one transaction, so that each channel is notified of an
// event once.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { NotifyType } from '../../../core/lifecycle/alert.ts'
import { alertsByIds, presentAlert } from '../alerts/alert-list.ts'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import { inTransaction, type Tx, uuidList } from '../platform/db/transaction.ts'
import { ringLater } from './bell.ts'
import { addBellRows, type BellRow } from './bell-rows.ts'
import { bellsOf, devicesOf } from './choose-channels.ts'
import { addDeliveries, deliveriesOf, loadChannelPreferences, type NewDelivery } from './deliveries.ts'
import { registerEmail } from './email.ts'
import { groupNames } from './incident-names.ts'
import { type Notification, takeNotifications } from './outbox.ts'
import { addPushes, type NewPush, pushTargets, registerPush } from './push.ts'
import { alertPath, type NotificationLanguage, renderText, type ShownAlert, type TextBook } from './templates.ts'
import { toldTogether } from './told-together.ts'
import { registerWebhook } from './webhook.ts'

const ROWS_AT_ONCE = 2000

/** The names that texts show of an alert, and the attributes by which webhooks and group addresses select. */
type Named = {
  id: string
  series_key: string
  opened_at: string
  server_id: string
  server_name: string
  tags: readonly string[]
  environment: string | null
  role: string | null
  datacenter: string | null
  rule_name: string | null
}

const NAMES = fixedStatement<'companyId' | 'ids'>(
  value => sql`
    select a.id, a.series_key, a.opened_at, s.id as server_id, s.name as server_name, to_json(s.tags) as tags,
      s.environment, s.role, s.datacenter, r.name as rule_name
    from monitoring_alerts a join servers s on s.id = a.server_id left join monitoring_rules r on r.id = a.rule_id
    where a.company_id = ${value('companyId')} and a.id = any(${value('ids')}::uuid[])`,
)

/** For alerts by id: the names, and the attributes of their servers. */
async function namesOf(db: Executor, companyId: string, ids: readonly string[]) {
  const rows = await db.execute<Named>(NAMES({ companyId, ids: uuidList(ids) }))
  const groups = await groupNames(
    db,
    companyId,
    rows.map(row => row.series_key),
  )
  return rows.map(({ tags, environment, role, datacenter, ...row }) => ({
    id: row.id,
    seriesKey: groups.get(row.series_key) ?? row.series_key,
    openedAt: new Date(row.opened_at),
    server: { id: row.server_id, name: row.server_name, tags, environment, role, datacenter },
    rule: row.rule_name === null ? null : { name: row.rule_name },
  }))
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

/** The text in a language, rendered once: people are many, languages are two. */
function textsOf(hub: Hub, texts: TextBook, type: NotifyType, shown: ShownAlert) {
  const rendered = new Map<NotificationLanguage, ReturnType<typeof renderText>>()
  return (language: NotificationLanguage) => {
    const text = rendered.get(language) ?? renderText(hub, texts, type, language, shown)
    rendered.set(language, text)
    return text
  }
}

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
  const createdAt = new Date(hub.now()).toISOString()
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
    const textIn = textsOf(hub, voices.texts, type, shown)
    const link = alertPath(shown)
    const { severity } = alert
    const toTell = { type, severity, people: voices.recipients, isForGroups: true, servers: [server] }
    for (const person of bellsOf(toTell))
      rung.push({
        id: randomUUID(),
        user_id: person.id,
        company_id: companyId,
        type,
        ...textIn(person.language),
        link,
        created_at: createdAt,
        alert_id: alert.id,
      })
    pushes.push(
      ...devicesOf(severity, targets).map(({ deviceId, language }) => ({
        deviceId,
        companyId,
        topic: alert.id,
        type,
        severity,
        payload: {
          ...textIn(language),
          link: `/alerts/${alert.id}`,
          id: alert.id,
        },
      })),
    )
    const row = wholeById.get(alert.id)
    const items = row ? [{ servers: [server], data: { alert: { ...presentAlert(row), ...then } } }] : []
    deliveries.push(...deliveriesOf(hub, companyId, voices, { ...toTell, items, textIn, alertId: alert.id }))
  }
  return { rung, deliveries, pushes }
}

/** Sends the oldest notifications in a company's outbox. True when there may be more. */
async function dispatchSome(hub: Hub, companyId: string): Promise<boolean> {
  const { mayBeMore, rungCount } = await inTransaction(hub.database.db, async tx => {
    const taken = await takeNotifications(tx, companyId)
    if (taken.told.length === 0) return { mayBeMore: taken.mayBeMore, rungCount: 0 }
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
    return { mayBeMore: taken.mayBeMore, rungCount: rung.length }
  })
  if (rungCount > 0) hub.metrics.notifications.inc({ channel: 'bell', result: 'delivered' }, rungCount)
  return mayBeMore
}

/** Tells the company of all that is in its outbox. */
async function dispatchAll(hub: Hub, companyId: string): Promise<void> {
  while (await dispatchSome(hub, companyId)) {
    // Each round is a transaction of its own.
  }
}

export function registerNotificationJobs(hub: Hub): void {
  const dispatch = toldTogether(companyId => dispatchAll(hub, companyId))
  hub.jobs.register('notifications.dispatch', { handle: ({ company_id }) => dispatch(String(company_id)) })
  registerWebhook(hub)
  registerEmail(hub)
  registerPush(hub)
}
