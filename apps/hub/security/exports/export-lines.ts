// Findings as lines of a file: CSV for tables, or one JSON object a line.
import type { presentFinding } from '../findings/finding-list.ts'

export const exportFormats = ['csv', 'jsonl'] as const
export type ExportFormat = (typeof exportFormats)[number]

type Shown = ReturnType<typeof presentFinding>

/** A table takes a text that begins so for a formula, and would run it. */
const FORMULA = /^[\s\0]*[=+\-@|\uFF1D\uFF0B\uFF0D\uFF20]/
/** Where cells end at semicolons, quotes within a line count for nothing: each begins a cell, and so does a line. */
const INNER_FORMULA = /([\r\n;][\s\0]*)(?=[=+\-@|\uFF1D\uFF0B\uFF0D\uFF20])/g
const SPECIAL = /[",\r\n\t;]/

/** A text as a cell: quoted where it must be, and never a formula. */
export function csvCell(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  const plain = value instanceof Date ? value.toISOString() : String(value)
  const text = (FORMULA.test(plain) ? `'${plain}` : plain).replaceAll(INNER_FORMULA, "$1'")
  return SPECIAL.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text
}

const CSV_COLUMNS: readonly (readonly [name: string, of: (finding: Shown) => unknown])[] = [
  ['id', finding => finding.id],
  ['server_id', finding => finding.server_id],
  ['server', finding => finding.server?.name],
  ['hostname', finding => finding.server?.hostname],
  ['host_id', finding => finding.host_id],
  ['kind', finding => finding.kind],
  ['vuln_id', finding => finding.vuln_id],
  ['title', finding => finding.title],
  ['aliases', finding => finding.aliases.join(' ')],
  ['advisory_ids', finding => finding.advisory_ids.join(' ')],
  ['ecosystem', finding => finding.ecosystem],
  ['package_key', finding => finding.package_key],
  ['packages', finding => finding.packages.map(({ name, version, arch }) => `${name} ${version} ${arch}`).join('; ')],
  ['installed_version', finding => finding.installed_version],
  ['fixed_version', finding => finding.fixed_version],
  ['fix_status', finding => finding.fix_status],
  ['fix_channel', finding => finding.fix_channel],
  ['severity_label', finding => finding.severity_label],
  ['cvss_score', finding => finding.cvss_score],
  ['cvss_vector', finding => finding.cvss_vector],
  ['epss', finding => finding.epss],
  ['kev', finding => finding.kev],
  ['risk', finding => finding.risk],
  ['priority', finding => finding.priority],
  ['status', finding => finding.status],
  ['minor', finding => finding.minor],
  ['kernel', finding => finding.kernel],
  ['reboot_required', finding => finding.reboot_required],
  ['first_seen_at', finding => finding.first_seen_at],
  ['last_seen_at', finding => finding.last_seen_at],
  ['reopened_at', finding => finding.reopened_at],
  ['resolved_at', finding => finding.resolved_at],
  ['resolved_reason', finding => finding.resolved_reason],
  ['sla_due_at', finding => finding.sla_due_at],
]

/** What comes before the first line of a format. */
export const headOf = (format: ExportFormat): string =>
  format === 'csv' ? `${CSV_COLUMNS.map(([name]) => name).join(',')}\r\n` : ''

export const lineOf = (format: ExportFormat, finding: Shown): string =>
  format === 'csv'
    ? `${CSV_COLUMNS.map(([, of]) => csvCell(of(finding))).join(',')}\r\n`
    : `${JSON.stringify(finding)}\n`
