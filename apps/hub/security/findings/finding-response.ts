// Findings as the API answers them (decision G-172).
import { Type } from '@sinclair/typebox'
import {
  amount,
  anyObject,
  id,
  listed,
  named,
  nullable,
  serverReference,
  string,
  time,
  wordOf,
} from '../../platform/http/response-schema.ts'
import { findingKinds, findingStatuses, fixStatuses, priorities } from './finding-filter.ts'

const findingFields = {
  id: id(),
  company_id: id(),
  server_id: nullable(id()),
  server: nullable(serverReference),
  host_id: id(),
  finding_key: string(),
  kind: wordOf(findingKinds),
  vuln_id: string(),
  /** What the reference data call the vulnerability. */
  title: nullable(string()),
  aliases: listed(string()),
  advisory_ids: listed(string()),
  ecosystem: string(),
  package_key: string(),
  packages: listed(named('FindingPackage', { name: string(), version: string(), arch: string() })),
  installed_version: string(),
  fixed_version: string(),
  fix_status: wordOf(fixStatuses),
  fix_channel: wordOf(['standard', 'esm', 'elts']),
  no_distro_fix: Type.Boolean(),
  eol_date: string(),
  upgrade_to: listed(string()),
  severity_label: string(),
  minor: Type.Boolean(),
  kernel: Type.Boolean(),
  reboot_required: Type.Boolean(),
  cvss_score: nullable(Type.Number()),
  cvss_vector: nullable(string()),
  score_source: nullable(string()),
  kev: Type.Boolean(),
  kev_due_date: nullable(string()),
  epss: nullable(Type.Number()),
  risk: Type.Integer({ minimum: 0, maximum: 100 }),
  priority: wordOf(priorities),
  status: wordOf(findingStatuses),
  exception_id: nullable(id()),
  first_seen_at: time(),
  last_seen_at: time(),
  reopened_at: nullable(time()),
  resolved_at: nullable(time()),
  resolved_reason: nullable(string()),
  sla_due_at: nullable(time()),
  last_event_seq: amount(),
  db_version: amount(),
}
export const findingResponse = named('Finding', findingFields)

/** What the reference data say of a vulnerability, whatever company has it. */
const vulnerabilityResponse = named('Vulnerability', {
  vuln_id: string(),
  title: nullable(string()),
  description: nullable(string()),
  severity: nullable(string()),
  cvss_score: nullable(Type.Number()),
  cvss_vector: nullable(string()),
  published_at: nullable(time()),
  modified_at: nullable(time()),
  references: listed(string()),
})

const findingEvent = named('FindingEvent', {
  event_id: string(),
  seq: amount(),
  type: string(),
  occurred_at: time(),
  received_at: time(),
  payload: anyObject(),
})

export const findingDetail = named('FindingDetail', {
  ...findingFields,
  vulnerability: nullable(vulnerabilityResponse),
  /** The newest events of the finding. */
  events: listed(findingEvent),
})

const counts = <const T extends readonly string[]>(names: T) =>
  Type.Object(Object.fromEntries(names.map(name => [name, amount()])) as Record<T[number], ReturnType<typeof amount>>)

export const statusCounts = counts(findingStatuses)
export const priorityCounts = counts(priorities)
export const kindCounts = counts(findingKinds)
