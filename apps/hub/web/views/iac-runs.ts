// Runs of manifests: the list of a company, and one with its plan, its approvals and what became of it.

import { and, desc, eq, inArray, type SQL, sql } from 'drizzle-orm'
import { presentRun } from '../../iac/present-run.ts'
import { type RunRow, shortColumns } from '../../manifest-runs/run-list.ts'
import { iacRuns } from '../../platform/db/schema-iac.ts'
import { notFound } from '../../platform/http/api-error.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { parseFilter } from '../address/filter-language.ts'
import { sitePages } from '../address/site-map.ts'
import type { IacRunsView, IacRunView, RunSummary } from './manifest-pages.ts'
import { askedOffset, type View } from './view.ts'

const WINDOW = 60
const RUN_STATES = ['planned', 'invalid', 'applied', 'partially-applied'] as const

const summaryOf = (run: Pick<RunRow, keyof typeof shortColumns>): RunSummary => ({
  ...{ id: run.id, title: run.title, state: run.status, files: run.filesCount, kinds: run.kinds },
  ...{ submitter: run.submitterName, submitterId: run.submitterId, error: run.applyError },
  createdAtMs: run.createdAt.getTime(),
  isQueued: run.queuedAt !== null,
  isCancelled: run.cancelledAt !== null,
})

function conditionOf(text: string): SQL | undefined {
  const terms = parseFilter(text)
  const states = terms.filter(({ key }) => key === 'status').map(({ value }) => value)
  const known = RUN_STATES.filter(state => states.includes(state))
  const words = terms.filter(({ key, isExcluded }) => key === null && !isExcluded).map(({ value }) => value)
  return and(
    known.length > 0 ? inArray(iacRuns.status, known) : undefined,
    ...words.map(
      word =>
        sql`position(lower(${word}) in lower(${iacRuns.title} || ' ' || coalesce(${iacRuns.submitterName}, ''))) > 0`,
    ),
  )
}

export const iacRunsView: View<IacRunsView> = {
  permissions: ['iac.view'],
  params: sitePages.iac.takes,
  async make({ hub, companyId, param }) {
    const { db } = hub.database
    const where = and(eq(iacRuns.companyId, companyId), conditionOf(param('q')))
    const offset = askedOffset(param('offset'))
    const [rows, [counted]] = await Promise.all([
      db
        .select(shortColumns)
        .from(iacRuns)
        .where(where)
        .orderBy(desc(iacRuns.createdAt), desc(iacRuns.id))
        .limit(WINDOW)
        .offset(offset),
      db.select({ total: sql<number>`count(*)::int` }).from(iacRuns).where(where),
    ])
    return { matching: counted?.total ?? 0, offset, rows: rows.map(summaryOf) }
  },
}

const msOf = (at: Date | string | null): number | null => (at === null ? null : new Date(at).getTime())

export const iacRunView: View<IacRunView> = {
  permissions: ['iac.view'],
  params: ['run'],
  async make({ hub, companyId, param }) {
    const id = param('run')
    const [run] = isUuid(id)
      ? await hub.database.db
          .select()
          .from(iacRuns)
          .where(and(eq(iacRuns.id, id), eq(iacRuns.companyId, companyId)))
      : []
    if (!run) throw notFound()
    const { items, approval_timeline, errors, untried, plan_stale } = await presentRun(hub, run)
    const nameOf = new Map(items.map(item => [item.id, `${item.kind} ${item.name}`]))
    return {
      ...summaryOf(run),
      isStale: plan_stale,
      items: items.map(item => ({
        ...{ id: item.id, path: item.path, kind: item.kind, name: item.name, action: item.action, state: item.status },
        ...{ adopts: item.adopts, error: item.error, diff: item.diff, requires: item.requires },
        ...{ approvalsRequired: item.approvals.required, approvalsGiven: item.approvals.given },
        isForbidden: item.forbidden,
      })),
      steps: approval_timeline.map(each => ({
        ...{ flow: each.flow, step: each.step, item: nameOf.get(each.item_id) ?? '', decision: each.decision },
        ...{ decidedBy: each.decided_by?.name ?? null, decidedAtMs: msOf(each.decided_at) },
        dueAtMs: msOf(each.sla_due_at),
      })),
      faults: errors.map(({ path, line, message }) => ({ path, line, message })),
      untried,
    }
  },
}
