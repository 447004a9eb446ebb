// The start screen of the mobile app, and alerts in a short form.
import { Type } from '@sinclair/typebox'
import { desc, eq, inArray, isNotNull, isNull, sql } from 'drizzle-orm'
import { severities } from '../../../core/alerting/rules/rule.ts'
import { activeStates } from '../alerts/alert-list.ts'
import { inboxOf } from '../approvals/inbox.ts'
import { badgeOf } from '../notifications/app-badge.ts'
import { countUnread } from '../notifications/notifications.ts'
import { overview } from '../overview/overview.ts'
import type { Executor } from '../platform/db/connect.ts'
import { alerts, servers } from '../platform/db/schema.ts'
import { collection, equals, filter, ofCompany } from '../platform/http/collection.ts'
import { flag, flagOf, instant, oneOf } from '../platform/http/request-schema.ts'
import { amount, id, listed, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { pushLevelOf } from './mobile-settings.ts'

const NEWEST = 5

const shortAlert = named('ShortAlert', {
  id: id(),
  t: string(),
  s: wordOf(severities),
  st: string(),
  srv: Type.Object({ id: id(), n: string() }),
  at: time(),
  v: nullable(Type.Number()),
  sup: Type.Boolean(),
  l: string(),
})

const selectShort = (db: Executor) =>
  db
    .select({ alert: alerts, server: { id: servers.id, name: servers.name } })
    .from(alerts)
    .innerJoin(servers, eq(servers.id, alerts.serverId))

type ShortRow = Awaited<ReturnType<typeof selectShort>>[number]

const presentShort = ({ alert, server }: ShortRow) => ({
  id: alert.id,
  t: alert.seriesKey,
  s: alert.severity,
  st: alert.state,
  srv: { id: server.id, n: server.name },
  at: alert.openedAt,
  v: alert.lastValue,
  sup: alert.suppressed,
  l: `/alerts/${alert.id}`,
})

/** Active ones; with `updated_since` whatever opened, changed or ended since. */
export const shortAlerts = collection({
  table: alerts,
  scope: ofCompany(alerts.companyId),
  filters: {
    severity: equals(alerts.severity, oneOf(severities)),
    acknowledged: filter(flag(), value =>
      flagOf(value) ? isNotNull(alerts.acknowledgedAt) : isNull(alerts.acknowledgedAt),
    ),
    updated_since: filter(instant(), since => {
      const from = new Date(since).toISOString()
      return sql`(greatest(${alerts.openedAt}, ${alerts.resolvedAt}, ${alerts.acknowledgedAt}, ${alerts.closedAt}) >= ${from}::timestamptz
        or exists (select 1 from monitoring_alert_events e where e.company_id = ${alerts.companyId}
          and e.alert_id = ${alerts.id} and e.received_at >= ${from}::timestamptz))`
    }),
  },
  always: given => (given.updated_since === undefined ? inArray(alerts.state, [...activeStates]) : undefined),
  select: selectShort,
  order: [desc(alerts.openedAt), desc(alerts.id)],
  pageBy: 'ids',
  response: shortAlert,
  present: presentShort,
})

export const summaryResponse = named('MobileSummary', {
  alerts: Type.Object({
    active: amount(),
    critical: amount(),
    warning: amount(),
    info: amount(),
    unacknowledged: amount(),
  }),
  servers: Type.Object({ total: amount(), online: amount(), down: amount(), unknown: amount() }),
  problems: Type.Object({ critical: amount(), warning: amount() }),
  approvals_waiting: amount(),
  unread_notifications: amount(),
  badge: amount(),
  worst: nullable(wordOf(severities)),
  newest: listed(shortAlert),
  server_time: time(),
})

type Problems = { critical: number; warning: number }

async function problemsOf(db: Executor, companyId: string): Promise<Problems> {
  const [row] = await db.execute<Problems>(sql`
    select count(*) filter (where severity = 'critical')::int as critical,
      count(*) filter (where severity = 'warning')::int as warning
    from resource_conditions where company_id = ${companyId} and resolved_at is null`)
  return { critical: row?.critical ?? 0, warning: row?.warning ?? 0 }
}

export async function mobileSummary(context: RouteContext) {
  const { hub, caller, companyId } = context
  const { db } = hub.database
  const level = await pushLevelOf(context)
  const mayDecide = caller.permissions.has('approvals.decide')
  const [{ data: whole }, problems, unread, badge, newest, waiting] = await Promise.all([
    overview(context),
    problemsOf(db, companyId),
    countUnread(db, caller.user.id),
    badgeOf(db, caller.user.id, level),
    shortAlerts.read(context, {}, { limit: NEWEST, offset: 0 }),
    mayDecide ? inboxOf(context, {}) : [],
  ])
  const { active, acknowledged, by_severity: bySeverity } = whole.alerts
  const counts = { critical: bySeverity.critical ?? 0, warning: bySeverity.warning ?? 0, info: bySeverity.info ?? 0 }
  return {
    alerts: { active, ...counts, unacknowledged: active - acknowledged },
    servers: whole.servers,
    problems,
    approvals_waiting: waiting.length,
    unread_notifications: unread,
    badge: badge + waiting.length,
    worst: (['critical', 'warning', 'info'] as const).find(severity => counts[severity] > 0) ?? null,
    newest: newest.rows.map(presentShort),
    server_time: new Date(hub.now()),
  }
}
