// Silences as people see them (decision G-121).
import { desc, eq, getTableColumns, isNull, sql } from 'drizzle-orm'
import { silences } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { collection, filter, ofCompany } from '../platform/http/collection.ts'
import { oneOf } from '../platform/http/request-schema.ts'
import { type SilenceStatus, silenceResponse, silenceStatuses } from './silence-response.ts'

/** Ten thousand ids a silence are not fetched to show their number. */
const { resolvedServerIds: _resolved, ...shownColumns } = getTableColumns(silences)
const RESOLVED_COUNT = sql<number>`cardinality(${silences.resolvedServerIds})`

const STATUS = sql`case when ${silences.cancelledAt} is not null then 'cancelled'
  when ${silences.endsAt} <= now() then 'expired' when ${silences.startsAt} > now() then 'scheduled' else 'active' end`

export function statusOf(
  silence: Pick<typeof silences.$inferSelect, 'cancelledAt' | 'startsAt' | 'endsAt'>,
  nowMs: number,
): SilenceStatus {
  if (silence.cancelledAt !== null) return 'cancelled'
  if (silence.endsAt.getTime() <= nowMs) return 'expired'
  return silence.startsAt.getTime() > nowMs ? 'scheduled' : 'active'
}

export const silenceCollection = collection({
  table: silences,
  scope: ofCompany(silences.companyId, isNull(silences.deletedAt)),
  filters: { status: filter(oneOf(silenceStatuses), status => sql`${STATUS} = ${status}`) },
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
    status: statusOf(silence, hub.now()),
    created_by: creator,
    created_at: silence.createdAt,
  }),
})

export const findSilence = silenceCollection.find
export type SilenceRow = Awaited<ReturnType<typeof findSilence>>
