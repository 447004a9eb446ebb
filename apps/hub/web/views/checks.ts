// The checks of a company: what each looks at, how many servers run it, and on how many of them it fails now.
import { and, desc, eq, isNull, sql } from 'drizzle-orm'
import type { Target } from '../../checks/check-target.ts'
import { type CheckType, checks } from '../../platform/db/schema.ts'
import { matchesFilter, parseFilter } from '../address/filter.ts'
import type { View } from './view.ts'

const WINDOW = 60
/** More than a company may have. */
const READ_MAX = 2_000

export type CheckListRow = {
  readonly id: string
  readonly name: string
  readonly type: CheckType
  readonly target: string
  readonly isEnabled: boolean
  readonly intervalSeconds: number
  /** Servers that run it; null: all of the company. */
  readonly servers: number | null
  /** Servers with an open alert of its rules. */
  readonly failing: number
}

export type ChecksView = {
  readonly total: number
  readonly matching: number
  readonly offset: number
  readonly rows: readonly CheckListRow[]
}

/** What is looked at, as a person says it. */
export function targetText(type: CheckType, target: Target): string {
  switch (type) {
    case 'service':
      return String(target.name)
    case 'port':
      return `${target.port}/${target.proto}`
    case 'tcp':
    case 'cert':
      return String(target.target)
    case 'http':
      return String(target.url)
  }
}

export const checksView: View<ChecksView> = {
  permissions: ['monitoring.view'],
  params: ['q', 'offset'],
  async make({ hub, companyId, param }) {
    const { db } = hub.database
    const [stored, failing] = await Promise.all([
      db
        .select()
        .from(checks)
        .where(and(eq(checks.companyId, companyId), isNull(checks.deletedAt)))
        .orderBy(desc(checks.createdAt), desc(checks.id))
        .limit(READ_MAX),
      db.execute<{ check_id: string; failing: number }>(sql`
        select r.check_id, count(distinct a.server_id)::int as failing
        from monitoring_alerts a join monitoring_rules r on r.id = a.rule_id
        where a.company_id = ${companyId} and a.state in ('open', 'acknowledged', 'grouped')
          and r.company_id = ${companyId} and r.check_id is not null
        group by r.check_id`),
    ])
    const failingOf = new Map(failing.map(row => [row.check_id, row.failing]))
    const all = stored.map(
      (check): CheckListRow => ({
        ...{ id: check.id, name: check.name, type: check.type, target: targetText(check.type, check.target) },
        ...{ isEnabled: check.enabled, intervalSeconds: check.intervalSeconds },
        servers: check.scope.all ? null : check.resolvedServerIds.length,
        failing: failingOf.get(check.id) ?? 0,
      }),
    )
    const terms = parseFilter(param('q'))
    const matching = all.filter(({ name, target, type, isEnabled, failing: count }) =>
      matchesFilter(
        {
          words: [name, target],
          values: { type, state: [isEnabled ? 'enabled' : 'disabled', ...(count > 0 ? ['failing'] : [])] },
        },
        terms,
      ),
    )
    const offset = Math.min(Math.max(0, Math.floor(Number(param('offset')) || 0)), Math.max(0, matching.length - 1))
    return { total: all.length, matching: matching.length, offset, rows: matching.slice(offset, offset + WINDOW) }
  },
}
