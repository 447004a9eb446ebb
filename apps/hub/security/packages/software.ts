// Software that has open findings, from the kept counts, and the services that are watched (decision G-160).
import { Type } from '@sinclair/typebox'
import { and, asc, inArray, isNull, sql } from 'drizzle-orm'
import { checks } from '../../platform/db/schema.ts'
import { collection, collectionReadBy, equals, ofCompany, search } from '../../platform/http/collection.ts'
import { oneOf, text } from '../../platform/http/request-schema.ts'
import { amount, anyObject, id, named, string, wordOf } from '../../platform/http/response-schema.ts'
import { all, findsText } from '../findings/finding-filter.ts'

const softwareResponse = named('Software', {
  package_key: string(),
  open_findings: amount(),
  vulnerabilities: amount(),
  risk: Type.Integer({ minimum: 0, maximum: 100 }),
  fixable: amount(),
})
type SoftwareRow = {
  package_key: string
  open_findings: number
  vulnerabilities: number
  risk: number
  fixable: number
}

/** Source packages with open findings, the riskiest first. */
export const softwareCollection = collectionReadBy({
  filters: { search: text(256) },
  within: {},
  async read({ hub, companyId }, { search: term }, { limit, offset }) {
    const where = all([
      sql`company_id = ${companyId}`,
      sql`status = 'open'`,
      sql`kind in ('vulnerability', 'release_eol')`,
      sql`package_key <> ''`,
      ...(term === undefined ? [] : [findsText(sql`lower(package_key)`, term)]),
    ])
    const [row] = await hub.database.db.execute<{ total: number; rows: SoftwareRow[] }>(sql`
      with counted as (
        select package_key, vuln_id, risk, fix_status, sum(count) as n from (
          select package_key, vuln_id, risk, fix_status, count from security_finding_name_counts where ${where}
          union all
          select package_key, vuln_id, risk, fix_status, count from security_finding_count_changes where ${where}) x
        group by 1, 2, 3, 4 having sum(count) > 0),
      software as (
        select package_key, sum(n)::int as open_findings, count(distinct vuln_id)::int as vulnerabilities,
          max(risk) as risk, (coalesce(sum(n) filter (where fix_status = 'fixed'), 0))::int as fixable
        from counted group by 1),
      page as (
        select package_key, open_findings, vulnerabilities, risk, fixable from software
        order by risk desc, open_findings desc, package_key limit ${limit} offset ${offset})
      select (select count(*)::int from software) as total,
        coalesce(jsonb_agg(to_jsonb(page) order by risk desc, open_findings desc, package_key), '[]') as rows from page`)
    return row ?? { rows: [], total: 0 }
  },
  response: softwareResponse,
  present: row => row,
})

const serviceTypes = ['service', 'port', 'tcp'] as const

const serviceResponse = named('WatchedService', {
  check_id: id(),
  name: string(),
  type: wordOf(serviceTypes),
  target: anyObject(),
  enabled: Type.Boolean(),
  /** Whether the port is among the expected ones. */
  expected: Type.Boolean(),
})

const EXPECTED = sql<boolean>`exists (select 1 from security_expected_ports e where e.company_id = monitoring_checks.company_id
  and e.port = case when monitoring_checks.type = 'port' then (monitoring_checks.target ->> 'port')::int end
  and e.proto = monitoring_checks.target ->> 'proto')`

/** Services and ports that checks watch. */
export const serviceCollection = collection({
  table: checks,
  scope: ofCompany(checks.companyId, and(isNull(checks.deletedAt), inArray(checks.type, [...serviceTypes]))),
  filters: { type: equals(checks.type, oneOf(serviceTypes)), search: search(checks.name) },
  select: db =>
    db
      .select({
        id: checks.id,
        name: checks.name,
        type: checks.type,
        target: checks.target,
        enabled: checks.enabled,
        isExpected: EXPECTED,
      })
      .from(checks),
  order: [asc(sql`lower(${checks.name})`), asc(checks.id)],
  response: serviceResponse,
  present: row => ({
    check_id: row.id,
    name: row.name,
    type: row.type,
    target: row.target,
    enabled: row.enabled,
    expected: row.isExpected,
  }),
})
