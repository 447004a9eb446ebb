// Requests to accept findings or to call them false: what waits for a decision, what holds, and what is over.

import { type SQL, sql } from 'drizzle-orm'
import { all, cellConditions } from '../../security/findings/finding-filter.ts'
import { hiddenKinds } from '../../security/findings/hidden-kinds.ts'
import { sitePages } from '../address/site-map.ts'
import { SEES_KINDS } from './findings.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

const WINDOW = 60
const NAMES_SHOWN = 3

export type ExceptionRow = {
  readonly id: string
  readonly type: 'accepted' | 'false_positive'
  readonly state: 'pending' | 'approved' | 'rejected' | 'expired' | 'withdrawn'
  readonly reason: string
  readonly findings: number
  /** The first vulnerabilities of it. */
  readonly names: readonly string[]
  readonly requesterId: string | null
  readonly requester: string | null
  readonly decider: string | null
  readonly requestedAtMs: number
  readonly expiresAtMs: number | null
  /** Its findings still change. */
  readonly isChanging: boolean
}

export type ExceptionsView = {
  readonly total: number
  readonly offset: number
  readonly rows: readonly ExceptionRow[]
}

type Stored = {
  id: string
  type: ExceptionRow['type']
  status: ExceptionRow['state']
  reason: string
  finding_count: number
  names: string[]
  requested_by: string | null
  requester: string | null
  decider: string | null
  requested_at: string
  expires_at: string | null
  changing: string | null
}

/** Those that are over, or those that wait or hold. */
const ofTime = (isPast: boolean): SQL =>
  isPast ? sql`e.status in ('rejected', 'expired', 'withdrawn')` : sql`e.status in ('pending', 'approved')`

const toRow = (row: Stored): ExceptionRow => ({
  ...{ id: row.id, type: row.type, state: row.status, reason: row.reason, findings: row.finding_count },
  ...{ names: row.names, requesterId: row.requested_by, requester: row.requester, decider: row.decider },
  requestedAtMs: new Date(row.requested_at).getTime(),
  expiresAtMs: row.expires_at === null ? null : new Date(row.expires_at).getTime(),
  isChanging: row.changing !== null,
})

async function countOf({ hub, companyId }: ViewContext, when: SQL): Promise<number> {
  const [row] = await hub.database.db.execute<{ total: number }>(
    sql`select count(*)::int as total from security_exceptions e where e.company_id = ${companyId} and ${when}`,
  )
  return row?.total ?? 0
}

export const exceptionsView: View<ExceptionsView> = {
  permissions: ['security.view'],
  optional: SEES_KINDS,
  params: sitePages.exceptions.takes,
  async make(context) {
    const { hub, companyId, may, param } = context
    const isSeen = all([sql`true`, ...cellConditions({ hidden_kinds: hiddenKinds({ permissions: { has: may } }) })])
    const when = ofTime(param('past') !== '')
    const total = await countOf(context, when)
    const offset = Math.min(askedOffset(param('offset')), Math.max(0, total - 1))
    const rows = await hub.database.db.execute<Stored>(sql`
      select e.id, e.type, e.status, e.reason, e.finding_count, e.requested_by, asked.name as requester,
        decided.name as decider, e.requested_at, e.expires_at, e.changing,
        array(select f.vuln_id from security_exception_findings x join security_findings f on f.id = x.finding_id
          where x.exception_id = e.id and ${isSeen} order by x.finding_id limit ${NAMES_SHOWN}) as names
      from security_exceptions e left join users asked on asked.id = e.requested_by
        left join users decided on decided.id = e.decided_by
      where e.company_id = ${companyId} and ${when}
      order by e.status <> 'pending', e.requested_at desc, e.id desc limit ${WINDOW} offset ${offset}`)
    return { total, offset, rows: rows.map(toRow) }
  },
}
