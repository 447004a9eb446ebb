// Silences as people see them (decisions G-121, G-179): a silence that recurs is one, however many windows of it are
// rows.
import { desc, eq, getTableColumns, isNotNull, isNull, type SQL, sql } from 'drizzle-orm'
import { currentWindow, type SilenceWindow } from '../../../core/lifecycle/silence-windows.ts'
import { silences } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { collection, filter, ofCompany } from '../platform/http/collection.ts'
import { oneOf } from '../platform/http/request-schema.ts'
import { type SilenceStatus, silenceResponse, silenceStatuses } from './silence-response.ts'

/** Ten thousand ids a silence are not fetched to show their number. */
const { resolvedServerIds: _resolved, ...shownColumns } = getTableColumns(silences)
const RESOLVED_COUNT = sql<number>`cardinality(${silences.resolvedServerIds})`

/**
 * Whether a window of the silence, itself or a later one, meets this condition. Only silences that recur have later
 * ones: of all others, which are most, the row itself says it.
 */
const hasWindow = (meets: (startsAt: SQL) => SQL): SQL => sql`(
  (${silences.endsAt} > now() and ${meets(sql`${silences.startsAt}`)}) or (${silences.recurrence} is not null and exists (
    select 1 from monitoring_silences w where w.recurrence_of = ${silences.id} and w.deleted_at is null
      and w.ends_at > now() and ${meets(sql`w.starts_at`)})))`

const isNotCancelled = isNull(silences.cancelledAt)
const isActive = hasWindow(startsAt => sql`${startsAt} <= now()`)
const isNotOver = hasWindow(() => sql`true`)

/**
 * The silences of each status. One condition each, and no `case … = status`: what that one lets through the planner
 * takes for one row in two hundred, and it joins page and users by looking at each user for each silence.
 */
export const ofStatus: Readonly<Record<SilenceStatus, SQL>> = {
  cancelled: isNotNull(silences.cancelledAt),
  active: sql`(${isNotCancelled} and ${isActive})`,
  scheduled: sql`(${isNotCancelled} and ${isNotOver} and not ${isActive})`,
  expired: sql`(${isNotCancelled} and not ${isNotOver})`,
}

type Windows = Pick<typeof silences.$inferSelect, 'cancelledAt' | 'startsAt' | 'endsAt' | 'recurrence'>

/** The window of a silence that holds, else the next one; null when it is cancelled, or all are over. */
function windowOf({ cancelledAt, startsAt, endsAt, recurrence }: Windows, nowMs: number): SilenceWindow | null {
  const first = { startsAtMs: startsAt.getTime(), endsAtMs: endsAt.getTime() }
  return cancelledAt === null ? currentWindow(first, recurrence, nowMs) : null
}

export function statusOf(silence: Windows, nowMs: number): SilenceStatus {
  if (silence.cancelledAt !== null) return 'cancelled'
  const window = windowOf(silence, nowMs)
  if (window === null) return 'expired'
  return window.startsAtMs > nowMs ? 'scheduled' : 'active'
}

function presentWindow(silence: Windows, nowMs: number) {
  const window = windowOf(silence, nowMs)
  return window && { starts_at: new Date(window.startsAtMs), ends_at: new Date(window.endsAtMs) }
}

export const silenceCollection = collection({
  table: silences,
  scope: ofCompany(silences.companyId, sql`${isNull(silences.deletedAt)} and ${isNull(silences.recurrenceOf)}`),
  filters: { status: filter(oneOf(silenceStatuses), status => ofStatus[status]) },
  select: db =>
    db
      .select({ silence: shownColumns, resolvedCount: RESOLVED_COUNT, creator: { id: users.id, name: users.name } })
      .from(silences)
      .leftJoin(users, eq(users.id, silences.createdBy)),
  order: [desc(silences.createdAt), desc(silences.id)],
  response: silenceResponse,
  present: ({ silence, resolvedCount, creator }, { hub }) => ({
    id: silence.id,
    company_id: silence.companyId,
    scope: silence.scope,
    resolved_server_count: silence.scope.all ? null : resolvedCount,
    starts_at: silence.startsAt,
    ends_at: silence.endsAt,
    reason: silence.reason,
    rule_ids: silence.ruleIds,
    recurrence: silence.recurrence,
    current_window: presentWindow(silence, hub.now()),
    status: statusOf(silence, hub.now()),
    created_by: creator,
    created_at: silence.createdAt,
  }),
})

export const findSilence = silenceCollection.find
export type SilenceRow = Awaited<ReturnType<typeof findSilence>>
