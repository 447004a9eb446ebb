// Which faults refuse a whole batch of the matcher (422), and which refuse only one event (document 3 "Security matcher
// to hub"; decisions G-158, G-168).
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import type { ResolvedEvent, SeenEvent } from '../../../../core/lifecycle/finding.ts'
import { limits } from '../../../../core/limits.ts'
import type {
  FindingColumns,
  FindingPackage,
  MatchStatus,
  ReleaseSupport,
  ResolvedReason,
} from '../../../../core/matching/finding-event.ts'
import { invalidField } from '../../platform/http/api-error.ts'
import type { TextKey } from '../../platform/http/api-texts.ts'
import { isInstant } from '../../platform/http/request-schema.ts'

/** An event whose fields have the right types; its payload and ids are not looked at yet. */
export type Envelope = {
  readonly event_id: string
  readonly type: string
  readonly company_id: string
  readonly server_id: string | null
  readonly host_id: string
  readonly seq: number
  readonly occurred_at: string
  readonly payload: Unchecked
}

const CODE = 'invalid_envelope'
const HEX_64 = /^[0-9a-f]{64}$/
const HEX_64_OF_ANY_CASE = /^[0-9a-f]{64}$/i
const RFC_3339 = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/

const isTime = (value: unknown): value is string =>
  typeof value === 'string' && RFC_3339.test(value) && isInstant(value)
const isText = (value: unknown): value is string => typeof value === 'string'

/** Each field of an envelope: whether a value is one, and what to say when it is not. */
const FIELDS: Readonly<Record<keyof Envelope, readonly [is: (value: unknown) => boolean, key: TextKey]>> = {
  event_id: [value => isText(value) && HEX_64.test(value), 'pattern'],
  type: [isText, 'string'],
  company_id: [isText, 'string'],
  server_id: [value => value === null || isText(value), 'string'],
  host_id: [isText, 'string'],
  seq: [value => Number.isSafeInteger(value) && (value as number) >= 0, 'integer'],
  occurred_at: [isTime, 'instant'],
  payload: [isObject, 'object'],
}

function envelopeFault(event: unknown, index: number): void {
  if (!isObject(event)) throw invalidField(`events.${index}`, 'object').withCode(CODE)
  for (const [field, [is, key]] of Object.entries(FIELDS)) {
    if (is(event[field])) continue
    const fault = event[field] === undefined ? 'required' : key
    throw invalidField(`events.${index}.${field}`, fault).withCode(CODE)
  }
}

/** The events of a batch. Throws 422 for a body that is no batch. */
export function batchOf(body: unknown): readonly Envelope[] {
  const events = isObject(body) ? body.events : undefined
  if (!Array.isArray(events)) throw invalidField('events', 'list').withCode(CODE)
  if (events.length === 0) throw invalidField('events', 'list_min', { min: 1 }).withCode(CODE)
  if (events.length > limits.eventsPerRequest)
    throw invalidField('events', 'list_max', { max: limits.eventsPerRequest }).withCode(CODE)
  for (const [index, event] of events.entries()) envelopeFault(event, index)
  return events
}

/** Texts that are longer are no names and versions; what indexes hold must be short for the database to take it. */
const NAME_CHARS_MAX = 256
const TEXT_CHARS_MAX = 1024
const LIST_MAX = 1000
const COUNT_MAX = 2_147_483_647

const oneOf =
  <const T extends string>(...values: readonly T[]) =>
  (value: unknown): value is T =>
    (values as readonly unknown[]).includes(value)

const isKind = oneOf('vulnerability', 'release_eol')
const isFixStatus = oneOf('fixed', 'no_fix', 'wont_fix', 'undetermined', 'upgrade_release')
const isFixChannel = oneOf('standard', 'esm', 'elts')
const isReason = oneOf<ResolvedReason>(
  'package_updated',
  'package_removed',
  'advisory_changed',
  'out_of_scope',
  'release_upgraded',
)
const isMatchStatus = oneOf<MatchStatus>('ok', 'unsupported_os', 'unsupported_release', 'release_eol', 'no_db')
const isSupport = oneOf<ReleaseSupport>('standard', 'esm_only', 'eol', '')

const isTextUpTo = (value: unknown, max: number): value is string => typeof value === 'string' && value.length <= max
const isName = (value: unknown): value is string => isTextUpTo(value, NAME_CHARS_MAX)
const isLine = (value: unknown): value is string => isTextUpTo(value, TEXT_CHARS_MAX)
const isFlag = (value: unknown): value is boolean => typeof value === 'boolean'
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
const isNames = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.length <= LIST_MAX && value.every(isName)
const isPackage = (value: unknown): value is FindingPackage =>
  isObject(value) && isLine(value.name) && isLine(value.version) && isLine(value.arch)
const isPackages = (value: unknown): value is readonly FindingPackage[] =>
  Array.isArray(value) && value.length <= LIST_MAX && value.every(isPackage)
const isAbsentOr = (is: (value: unknown) => boolean, value: unknown): boolean => value == null || is(value)

/** How JSON writes NUL and half of a surrogate pair; a text that spells one out looks alike. */
const UNSTORABLE = /\\u(0000|d[89a-f])/i

/** False where a text is one that the database cannot store: with NUL, or half of a surrogate pair. */
function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\0')
  if (Array.isArray(value)) return value.every(isStorable)
  return !isObject(value) || Object.entries(value).every(([key, member]) => isStorable(key) && isStorable(member))
}

/** Absent columns of a release_eol finding and of scores are empty, as they are for the other kind. */
function findingColumns(payload: Unchecked): FindingColumns | null {
  const p = payload
  if (!isKind(p.kind) || !isFixStatus(p.fix_status) || !isFixChannel(p.fix_channel)) return null
  if (p.fix_status === 'upgrade_release' && p.kind !== 'release_eol') return null
  if (!isName(p.vuln_id) || p.vuln_id === '' || !isNames(p.aliases) || !isNames(p.advisory_ids)) return null
  if (!isName(p.ecosystem) || !isName(p.package_key) || !isPackages(p.packages)) return null
  if (!isLine(p.installed_version) || !isLine(p.fixed_version) || !isName(p.severity_label)) return null
  if (!isFlag(p.minor) || !isFlag(p.kernel) || !isFlag(p.reboot_required)) return null
  if (!isAbsentOr(isFlag, p.no_distro_fix) || !isAbsentOr(isName, p.eol_date) || !isAbsentOr(isNames, p.upgrade_to))
    return null
  if (!isAbsentOr(Number.isFinite, p.cvss_score) || !isAbsentOr(isLine, p.cvss_vector)) return null
  if (!isAbsentOr(isName, p.score_source)) return null
  return {
    kind: p.kind,
    vuln_id: p.vuln_id,
    aliases: p.aliases,
    advisory_ids: p.advisory_ids,
    ecosystem: p.ecosystem,
    package_key: p.package_key,
    packages: p.packages.map(({ name, version, arch }) => ({ name, version, arch })),
    installed_version: p.installed_version,
    fixed_version: p.fixed_version,
    fix_status: p.fix_status,
    fix_channel: p.fix_channel,
    severity_label: p.severity_label,
    minor: p.minor,
    kernel: p.kernel,
    reboot_required: p.reboot_required,
    no_distro_fix: p.no_distro_fix === true,
    eol_date: isName(p.eol_date) ? p.eol_date : '',
    upgrade_to: isNames(p.upgrade_to) ? p.upgrade_to : [],
    ...(typeof p.cvss_score === 'number' ? { cvss_score: p.cvss_score } : {}),
    ...(isLine(p.cvss_vector) ? { cvss_vector: p.cvss_vector } : {}),
    ...(isName(p.score_source) ? { score_source: p.score_source } : {}),
  }
}

/** A report of a scan host. Members that a payload may leave out are null. */
export type ScanEvent = {
  readonly type: 'scanned'
  readonly scannedAt: string
  readonly scannerVersion: string | null
  readonly dbVersion: number
  readonly os: Unchecked
  readonly kernelRunning: string | null
  readonly rebootRequired: boolean | null
  readonly livepatchActive: boolean | null
  readonly packageCount: number | null
  readonly errorCodes: readonly string[]
  readonly matchStatus: MatchStatus
  readonly releaseSupport: ReleaseSupport | null
  readonly openFindings: number | null
}

const isRowCount = (value: unknown): value is number => isCount(value) && value <= COUNT_MAX

function scanOf(p: Unchecked): ScanEvent | null {
  if (!isTime(p.scanned_at) || !isCount(p.db_version) || !isObject(p.os) || !isMatchStatus(p.match_status)) return null
  if (!isAbsentOr(isName, p.scanner_version) || !isAbsentOr(isLine, p.kernel_running)) return null
  if (!isAbsentOr(isFlag, p.reboot_required) || !isAbsentOr(isFlag, p.livepatch_active)) return null
  if (!isAbsentOr(isRowCount, p.package_count) || !isAbsentOr(isRowCount, p.open_findings)) return null
  if (!isAbsentOr(isNames, p.error_codes) || !isAbsentOr(isSupport, p.release_support)) return null
  return {
    type: 'scanned',
    scannedAt: new Date(p.scanned_at).toISOString(),
    scannerVersion: isName(p.scanner_version) ? p.scanner_version : null,
    dbVersion: p.db_version,
    os: p.os,
    kernelRunning: isLine(p.kernel_running) ? p.kernel_running : null,
    rebootRequired: isFlag(p.reboot_required) ? p.reboot_required : null,
    livepatchActive: isFlag(p.livepatch_active) ? p.livepatch_active : null,
    packageCount: isRowCount(p.package_count) ? p.package_count : null,
    errorCodes: isNames(p.error_codes) ? p.error_codes : [],
    matchStatus: p.match_status,
    releaseSupport: isSupport(p.release_support) ? p.release_support : null,
    openFindings: isRowCount(p.open_findings) ? p.open_findings : null,
  }
}

/** What an event says, without the identity that its host gives it. */
type Content =
  | Pick<SeenEvent, 'type' | 'findingKey' | 'columns' | 'firstSeenAtMs' | 'dbVersion'>
  | Pick<ResolvedEvent, 'type' | 'findingKey' | 'resolvedAtMs' | 'resolvedReason' | 'dbVersion'>
  | ScanEvent

function contentOf(type: string, p: Unchecked): Content | null {
  if (type === 'server.scanned') return scanOf(p)
  const { finding_key: findingKey, db_version: dbVersion } = p
  if (!isText(findingKey) || !HEX_64_OF_ANY_CASE.test(findingKey) || !isCount(dbVersion)) return null
  if (type === 'finding.resolved') {
    if (!isKind(p.kind) || !isReason(p.resolved_reason) || !isTime(p.resolved_at)) return null
    return {
      type: 'resolved',
      findingKey,
      dbVersion,
      resolvedAtMs: Date.parse(p.resolved_at),
      resolvedReason: p.resolved_reason,
    }
  }
  const columns = findingColumns(p)
  if (columns === null || !isTime(p.first_seen_at)) return null
  return { type: 'seen', findingKey, dbVersion, columns, firstSeenAtMs: Date.parse(p.first_seen_at) }
}

const isKnownType = oneOf('finding.opened', 'finding.updated', 'finding.resolved', 'server.scanned')

/** What an event says, or why it is refused. */
export function readContent({ type, payload }: Envelope): Content | 'unsupported_type' | 'invalid_payload' {
  if (!isKnownType(type)) return 'unsupported_type'
  // The runtime writes a payload in a fraction of the time that a walk through its texts takes.
  const isWhole = !UNSTORABLE.test(JSON.stringify(payload)) || isStorable(payload)
  return (isWhole ? contentOf(type, payload) : null) ?? 'invalid_payload'
}
