// One finding: what is wrong on which server, how bad that is, what mends it, who accepted it, and what happened to it.
import { sql } from 'drizzle-orm'
import { notFound } from '../../platform/http/api-error.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import { findFinding, findingWithEvents } from '../../security/findings/finding-list.ts'
import type { ExceptionRow } from './exceptions.ts'
import { type FindingRow, SEES_KINDS, toFindingRow } from './findings.ts'
import type { View, ViewContext } from './view.ts'

const EXCEPTIONS_SHOWN = 20
const OTHERS_SHOWN = 20

export type FindingView = {
  readonly finding: FindingRow
  readonly packages: readonly { readonly name: string; readonly version: string; readonly arch: string }[]
  readonly description: string | null
  readonly severity: string
  readonly cvss: number | null
  readonly vector: string | null
  readonly epss: number | null
  readonly exploitedDueDate: string | null
  readonly aliases: readonly string[]
  readonly advisories: readonly string[]
  readonly ecosystem: string
  readonly references: readonly string[]
  readonly resolvedAtMs: number | null
  readonly resolvedReason: string | null
  readonly lastSeenAtMs: number
  readonly events: readonly { readonly id: string; readonly type: string; readonly atMs: number }[]
  readonly exceptions: readonly {
    readonly id: string
    readonly type: ExceptionRow['type']
    readonly state: ExceptionRow['state']
    readonly reason: string
    readonly by: string | null
    readonly atMs: number
    readonly expiresAtMs: number | null
  }[]
  /** Other servers that have the same vulnerability open. */
  readonly others: readonly { readonly id: string; readonly serverName: string; readonly packageKey: string }[]
}

type ExceptionOfFinding = {
  id: string
  type: ExceptionRow['type']
  status: ExceptionRow['state']
  reason: string
  by: string | null
  requested_at: string
  expires_at: string | null
}

const exceptionsOf = ({ hub, companyId }: ViewContext, id: string) =>
  hub.database.db.execute<ExceptionOfFinding>(sql`
    select e.id, e.type, e.status, e.reason, u.name as by, e.requested_at, e.expires_at
    from security_exception_findings x join security_exceptions e on e.id = x.exception_id and e.company_id = ${companyId}
      left join users u on u.id = e.requested_by
    where x.finding_id = ${id} order by e.requested_at desc limit ${EXCEPTIONS_SHOWN}`)

const othersOf = ({ hub, companyId }: ViewContext, id: string, vulnId: string) =>
  hub.database.db.execute<{ id: string; name: string; package_key: string }>(sql`
    select f.id, s.name, f.package_key from security_findings f
      join servers s on s.id = f.server_id and s.company_id = ${companyId}
    where f.company_id = ${companyId} and f.vuln_id = ${vulnId} and f.status = 'open' and f.id <> ${id}
    order by lower(s.name), f.id limit ${OTHERS_SHOWN}`)

export const findingView: View<FindingView> = {
  permissions: ['security.view'],
  optional: SEES_KINDS,
  params: ['finding'],
  async make(context) {
    const { hub, companyId, may, param } = context
    const id = param('finding').toLowerCase()
    if (!isUuid(id)) throw notFound()
    const row = await findFinding({ hub, companyId, caller: { permissions: { has: may } } }, id)
    const { finding } = row
    const [detail, exceptions, others] = await Promise.all([
      findingWithEvents(context, row),
      exceptionsOf(context, id),
      finding.kind === 'vulnerability' ? othersOf(context, id, finding.vulnId) : [],
    ])
    return {
      finding: toFindingRow(row),
      packages: finding.packages,
      description: detail.vulnerability?.description ?? null,
      ...{ severity: finding.severityLabel, cvss: finding.cvssScore, vector: finding.cvssVector, epss: finding.epss },
      ...{ exploitedDueDate: finding.kevDueDate, aliases: finding.aliases, advisories: finding.advisoryIds },
      ...{ ecosystem: finding.ecosystem, references: detail.vulnerability?.references ?? [] },
      ...{ resolvedAtMs: finding.resolvedAt?.getTime() ?? null, resolvedReason: finding.resolvedReason },
      lastSeenAtMs: finding.lastSeenAt.getTime(),
      events: detail.events.map(({ event_id, type, occurred_at }) => ({
        ...{ id: event_id, type, atMs: occurred_at.getTime() },
      })),
      exceptions: exceptions.map(({ id, type, status, reason, by, requested_at, expires_at }) => ({
        ...{ id, type, state: status, reason, by, atMs: new Date(requested_at).getTime() },
        expiresAtMs: expires_at === null ? null : new Date(expires_at).getTime(),
      })),
      others: others.map(({ id, name, package_key }) => ({ id, serverName: name, packageKey: package_key })),
    }
  },
}
