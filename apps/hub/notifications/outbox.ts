// The outbox of notifications, written in the transaction that applied the events. Rows keep the order of the commits,
// and one dispatch job of a company processes all its rows, so that nobody is notified of an end before its beginning.
import { sql } from 'drizzle-orm'
import type { Alert, NotifyType } from '../../../core/lifecycle/alert.ts'
import type { Hub } from '../hub-context.ts'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import { inTransaction, type Tx, uuidList } from '../platform/db/transaction.ts'

/**
 * The fields of an alert as they were when the event was applied; the others are read when the notification is sent.
 */
type NotifiedAlert = Pick<
  Alert,
  | 'id'
  | 'companyId'
  | 'serverId'
  | 'severity'
  | 'state'
  | 'lastValue'
  | 'threshold'
  | 'suppressed'
  | 'suppressReason'
  | 'resolvedAtMs'
  | 'resolvedReason'
>

/** A notification to send. */
export type Notification = { readonly type: NotifyType; readonly alert: NotifiedAlert }

const asTold = ({ type, alert }: Notification): Notification => ({
  type,
  alert: {
    id: alert.id,
    companyId: alert.companyId,
    serverId: alert.serverId,
    severity: alert.severity,
    state: alert.state,
    lastValue: alert.lastValue,
    threshold: alert.threshold,
    suppressed: alert.suppressed,
    suppressReason: alert.suppressReason,
    resolvedAtMs: alert.resolvedAtMs,
    resolvedReason: alert.resolvedReason,
  },
})

/** Older rows either waited for their delay, or lost their job with a hub. */
const LEFT_OVER_SECONDS = 15

const dispatchOf = (companyIds: Iterable<string>) =>
  [...new Set(companyIds)]
    .sort()
    .map(id => ({ queue: 'notifications.dispatch' as const, payload: { company_id: id }, key: id, group: id }))

/** The weight of a row with the notifications of a batch of events; a row with one delayed loss weighs 1. */
const BATCH_WEIGHT = 50
const WEIGHT_AT_ONCE = 500

type OutboxRow = {
  readonly company_id: string
  readonly told: readonly Notification[]
  readonly alert_id: string | null
  readonly wait_seconds: number
}

const INSERT = fixedStatement<'rows'>(
  value => sql`
    insert into notification_outbox (company_id, told, alert_id, due_at)
    select company_id, told, alert_id, now() + make_interval(secs => wait_seconds)
    from jsonb_to_recordset(${value('rows')}::jsonb)
      as x (company_id uuid, told jsonb, alert_id uuid, wait_seconds double precision)`,
)

/** When a server recovers while the notification of its loss still waits, releases the loss, to be sent first. */
async function endWaiting(tx: Tx, told: readonly Notification[]): Promise<void> {
  const ids = told.filter(item => item.type === 'agent.up').map(item => item.alert.id)
  if (ids.length > 0)
    await tx.db.execute(sql`
      update notification_outbox set alert_id = null, due_at = now() where alert_id = any(${uuidList(ids)}::uuid[])`)
}

/**
 * Queues notifications for after the commit. The loss of a server of `waitingServerIds` is delayed: servers of one
 * incident are lost one after the other, and once a group claims them its notification replaces theirs.
 */
export async function enqueueNotifications(
  hub: Hub,
  tx: Tx,
  told: readonly Notification[],
  waitingServerIds: ReadonlySet<string> = new Set(),
): Promise<void> {
  if (told.length === 0) return
  const waitSeconds = hub.config['notifications.group_wait'] / 1000
  const waits = ({ type, alert }: Notification): boolean =>
    waitSeconds > 0 && type === 'agent.down' && waitingServerIds.has(alert.serverId)
  await endWaiting(tx, told)
  const atOnce = Map.groupBy(
    told.filter(item => !waits(item)),
    item => item.alert.companyId,
  )
  const rows: OutboxRow[] = [...atOnce].map(([companyId, items]) => ({
    company_id: companyId,
    told: items.map(asTold),
    alert_id: null,
    wait_seconds: 0,
  }))
  for (const item of told)
    if (waits(item))
      rows.push({
        company_id: item.alert.companyId,
        told: [asTold(item)],
        alert_id: item.alert.id,
        wait_seconds: waitSeconds,
      })
  await tx.db.execute(INSERT({ rows: JSON.stringify(rows) }))
  hub.jobs.enqueue(tx, dispatchOf(atOnce.keys()))
}

/** Starts a dispatch for rows whose delay has ended, and for rows that a lost hub left behind. */
export async function tellLeftOver(hub: Hub): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    const rows = await tx.db.execute<{ company_id: string }>(sql`
      select distinct company_id from notification_outbox
      where due_at <= now() and (alert_id is not null or created_at < now() - make_interval(secs => ${LEFT_OVER_SECONDS}))`)
    hub.jobs.enqueue(tx, dispatchOf(rows.map(row => row.company_id)))
  })
}

const TAKE = fixedStatement<'companyId'>(
  value => sql`
    select o.position, told, alert_id is null or exists (
      select 1 from monitoring_alerts a where a.id = o.alert_id and a.state in ('open', 'acknowledged')) as is_alone,
      w.weight > ${WEIGHT_AT_ONCE - BATCH_WEIGHT}::int as is_full
    from notification_outbox o join (
      select position, sum(case when alert_id is null then ${BATCH_WEIGHT}::int else 1 end) over (order by position) as weight
      from notification_outbox where company_id = ${value('companyId')} and due_at <= now()) w on w.position = o.position
    where w.weight <= ${WEIGHT_AT_ONCE}
    order by o.position for update of o`,
)
const DELETE = fixedStatement<'companyId' | 'positions'>(
  value => sql`
    delete from notification_outbox where company_id = ${value('companyId')}
      and position in (select jsonb_array_elements_text(${value('positions')}::jsonb)::bigint)`,
)

type Taken = { position: string; told: Notification[]; is_alone: boolean; is_full: boolean }

/**
 * Takes the oldest notifications of a company and locks them, so that no other dispatch sends them. A delayed loss is
 * sent only if its alert still stands alone: if a group has claimed it or somebody has closed it, the loss is dropped.
 * `mayBeMore`: as many were taken as are taken at once.
 */
export async function takeNotifications(
  tx: Tx,
  companyId: string,
): Promise<{ told: Notification[]; mayBeMore: boolean }> {
  const rows = await tx.db.execute<Taken>(TAKE({ companyId }))
  if (rows.length > 0)
    await tx.db.execute(DELETE({ companyId, positions: JSON.stringify(rows.map(row => row.position)) }))
  return { told: rows.flatMap(row => (row.is_alone ? row.told : [])), mayBeMore: rows.at(-1)?.is_full ?? false }
}
