// Runs of manifests as a list, for the API and for exports. It stands apart from iac/, where everything else of a run
// is, since iac/ knows the schedules of exports, and exports this list.
import { Type } from '@sinclair/typebox'
import { desc, type SQL, sql } from 'drizzle-orm'
import { manifestKindNames } from '../../../core/iac/kind-names.ts'
import { likePattern } from '../platform/db/page-of-rows.ts'
import { iacRuns } from '../platform/db/schema-iac.ts'
import { collection, equals, filter, ofCompany } from '../platform/http/collection.ts'
import { flag, flagOf, instant, oneOf, text } from '../platform/http/request-schema.ts'
import { amount, id, named, nullable, reference, string, time } from '../platform/http/response-schema.ts'

const runStatuses = ['planned', 'invalid', 'applied', 'partially-applied'] as const

const counts = () =>
  Type.Unsafe<Readonly<Record<string, number>>>({
    type: 'object',
    additionalProperties: { type: 'integer', minimum: 0 },
  })

export const shortRun = {
  id: id(),
  title: string(),
  status: oneOf(runStatuses),
  submitter: nullable(reference),
  company_id: id(),
  files_count: amount(),
  kinds: counts(),
  queued_at: nullable(time()),
  applied_at: nullable(time()),
  apply_error: nullable(string()),
  cancelled_at: nullable(time()),
  created_at: time(),
}
const runShort = named('IacRunShort', shortRun)

export type RunRow = typeof iacRuns.$inferSelect

/** What the list shows; the files of a run can be megabytes. */
export const shortColumns = {
  id: iacRuns.id,
  title: iacRuns.title,
  status: iacRuns.status,
  submitterId: iacRuns.submitterId,
  submitterName: iacRuns.submitterName,
  companyId: iacRuns.companyId,
  filesCount: iacRuns.filesCount,
  kinds: iacRuns.kinds,
  queuedAt: iacRuns.queuedAt,
  appliedAt: iacRuns.appliedAt,
  applyError: iacRuns.applyError,
  cancelledAt: iacRuns.cancelledAt,
  createdAt: iacRuns.createdAt,
}

export const presentShort = (run: Pick<RunRow, keyof typeof shortColumns>) => ({
  id: run.id,
  title: run.title,
  status: run.status,
  submitter: run.submitterId === null ? null : { id: run.submitterId, name: run.submitterName },
  company_id: run.companyId,
  files_count: run.filesCount,
  kinds: run.kinds,
  queued_at: run.queuedAt,
  applied_at: run.appliedAt,
  apply_error: run.applyError,
  cancelled_at: run.cancelledAt,
  created_at: run.createdAt,
})

const holds = (search: string): SQL => {
  const pattern = likePattern(search)
  return sql`(${iacRuns.id}::text ilike ${pattern} or ${iacRuns.title} ilike ${pattern}
    or ${iacRuns.submitterName} ilike ${pattern})`
}

export const runCollection = collection({
  table: iacRuns,
  scope: ofCompany(iacRuns.companyId),
  filters: {
    search: filter(text(255), holds),
    status: equals(iacRuns.status, oneOf(runStatuses)),
    mine: filter(flag(), (value, { caller }) =>
      flagOf(value) ? sql`${iacRuns.submitterId} = ${caller.user.id}` : undefined,
    ),
    kind: filter(oneOf(manifestKindNames), kind => sql`jsonb_exists(${iacRuns.kinds}, ${kind})`),
    cancelled: filter(flag(), value => sql`(${iacRuns.cancelledAt} is not null) = ${flagOf(value) ?? false}`),
    submitted_from: filter(instant(), from => sql`${iacRuns.createdAt} >= ${from}::timestamptz`),
  },
  select: db => db.select(shortColumns).from(iacRuns),
  order: [desc(iacRuns.createdAt), desc(iacRuns.id)],
  pageBy: 'ids',
  response: runShort,
  present: presentShort,
})
