// The member `resources` of GET /monitoring/overview (RES-035): how many of each kind are in which health, and the
// newest open problems, of the kinds that the caller may view.

import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { amount, id, listed, named, string, time, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { conditionText } from './conditions.ts'
import type { ConditionSeverity } from './kind-info.ts'

const PROBLEMS_MAX = 10

export const resourcesResponse = named('ResourcesOverview', {
  kinds: listed(
    named('ResourceCounts', {
      kind: string(),
      total: amount(),
      ok: amount(),
      warning: amount(),
      critical: amount(),
      unknown: amount(),
    }),
  ),
  problems: listed(
    named('ResourceProblem', {
      kind: string(),
      id: id(),
      name: string(),
      code: string(),
      severity: wordOf(['warning', 'critical']),
      message: Type.String(),
      since: time(),
    }),
  ),
})

type Counted = { kind: string; total: number; ok: number; warning: number; critical: number; unknown: number }
type Problem = {
  kind: string
  id: string
  name: string
  code: string
  severity: ConditionSeverity
  detail: Readonly<Record<string, unknown>>
  since: Date | string
}
type Asker = Pick<RouteContext, 'hub' | 'companyId' | 'language'> & {
  readonly caller: { readonly permissions: Pick<ReadonlySet<string>, 'has'> }
}

/** The counts and problems themselves: whoever shows them says the texts in a language (`conditionText`). */
export async function readOverview({ hub, caller, companyId }: Omit<Asker, 'language'>) {
  const { db } = hub.database
  const kinds = [...hub.kinds.values()].filter(info => info.isResource && caller.permissions.has(info.permissions.view))
  if (kinds.length === 0) return { kinds: [], problems: [] }
  const health = (word: string) => sql`count(*) filter (where shown = ${word})::int as ${sql.identifier(word)}`
  const counts = kinds.map(
    ({ kind, table }) => sql`
      select ${kind}::text as kind, count(*)::int as total, ${health('ok')}, ${health('warning')}, ${health('critical')},
        ${health('unknown')}
      from (select case when probe_until < now() then 'unknown' else health end as shown from ${sql.identifier(table)}
        where company_id = ${companyId} and deleted_at is null) t`,
  )
  const [counted, problems] = await Promise.all([
    db.execute<Counted>(sql.join(counts, sql` union all `)),
    db.execute<Problem>(sql`
      select c.kind, c.resource_id as id, d.name, c.code, c.severity, c.detail, c.since from resource_conditions c
      join search_documents d on d.kind = c.kind and d.resource_id = c.resource_id and d.company_id = c.company_id
      where c.company_id = ${companyId} and c.since is not null and c.resolved_at is null and c.severity <> 'info'
        and c.kind in (select jsonb_array_elements_text(${JSON.stringify(kinds.map(info => info.kind))}::jsonb))
      order by c.severity = 'critical' desc, c.since desc, c.id limit ${PROBLEMS_MAX}`),
  ])
  return {
    kinds: [...counted],
    problems: problems.flatMap(({ since, ...rest }) => {
      const info = hub.kinds.get(rest.kind)
      return info ? [{ ...rest, info, since: new Date(since) }] : []
    }),
  }
}

export async function resourcesOverview({ language, ...asker }: Asker) {
  const { kinds, problems } = await readOverview(asker)
  return {
    kinds,
    problems: problems.map(({ info, detail, ...rest }) => ({
      ...rest,
      message: conditionText(info, rest.code, detail, language),
    })),
  }
}
