// A rule as feed and API carry it, the validation of a rule, and its compiled form (document 2 "Rule" and "Errors";
// decisions G-65, G-68, G-69, G-84). The hub validates with it before saving, the collector compiles with it after
// syncing.

import { isObject, type Unchecked } from '../../json-object.ts'
import { limits } from '../../limits.ts'
import { metricByName } from '../../series/catalogue.ts'
import type { UncheckedRecord } from '../../sync/feed.ts'
import { canonicalMatchers, compileMatchers, type Matcher, type RawMatchers } from './matchers.ts'
import { type PackedScope, packedIds, packServerIds, type ServerIds } from './server-ids.ts'

export const ruleKinds = ['threshold', 'check', 'agent_down'] as const
export const operators = ['>', '>=', '<', '<=', '==', '!='] as const
export const severities = ['info', 'warning', 'critical'] as const
export const noDataModes = ['ignore', 'alert', 'resolve'] as const
export type RuleKind = (typeof ruleKinds)[number]
export type Operator = (typeof operators)[number]
export type Severity = (typeof severities)[number]
export type NoDataMode = (typeof noDataModes)[number]

export type RuleScope = {
  readonly all: boolean
  readonly server_ids: readonly string[]
  readonly tags: readonly string[]
  readonly environments: readonly string[]
  readonly roles: readonly string[]
  readonly datacenters: readonly string[]
}

/**
 * A rule of the feed (document 1 "Rule sync envelope"); durations in seconds. For kind agent_down the fields of a
 * threshold are null.
 */
export type RawRule = {
  readonly id: string
  readonly version: number
  readonly sync_version: number
  readonly company_id: string
  readonly name: string
  readonly kind: RuleKind
  readonly scope: RuleScope
  readonly resolved_server_ids: readonly string[]
  readonly metric: string | null
  readonly matchers: RawMatchers | null
  readonly operator: Operator | null
  readonly threshold: number | null
  readonly for_seconds: number | null
  readonly recover_threshold: number | null
  readonly recover_for_seconds: number | null
  readonly severity: Severity
  readonly no_data: NoDataMode | null
  readonly renotify_seconds: number | null
  readonly enabled: boolean
  readonly deleted: boolean
}

/** A rule of the feed that was not validated: apart from id and sync_version its fields can be anything. */
export type RuleRecord = UncheckedRecord & {
  /** Set only when a rule is passed between threads, in place of long lists of servers; never in the feed. */
  readonly packed?: PackedScope
}

/** The first failing check in this order is the reason of a rejection, the label of svc_rules_rejected_total. */
const rejectReasons = [
  'too_large',
  'decode',
  'kind',
  'metric',
  'matcher_label',
  'matcher_regex',
  'matcher_list',
  'operator',
  'threshold',
  'recover_threshold',
  'severity',
  'no_data',
  'duration',
  'scope',
] as const
type RejectReason = (typeof rejectReasons)[number]

/** One fault of a rule: the field, what was expected there, and the reason under which a metric counts it. */
type RuleFault = { readonly reason: RejectReason; readonly field: string; readonly message: string }

/** A rule ready to bind and evaluate; durations in milliseconds. */
export type CompiledRule = {
  readonly id: string
  readonly version: number
  readonly companyId: string
  readonly name: string
  readonly metric: string
  readonly matchers: readonly Matcher[]
  readonly operator: Operator
  readonly threshold: number
  readonly forMs: number
  readonly recoverThreshold: number | null
  readonly recoverForMs: number
  readonly severity: Severity
  readonly noData: NoDataMode
  readonly renotifyMs: number
  readonly scopeAll: boolean
  /** The servers covered when scopeAll is false. */
  readonly serverIds: ServerIds
  /** (company, metric, matchers, scope.all): when it changes, firing alerts close and evaluation starts anew. */
  readonly signature: string
}

export type RejectedRule = {
  readonly rule_id: string
  readonly company_id: string
  readonly version: number
  readonly reason: RejectReason
  readonly message: string
}

export type CompileResult =
  | { readonly kind: 'compiled'; readonly rule: CompiledRule }
  /** A rule of kind agent_down: valid, but presence is built in and the evaluator does not run it. */
  | { readonly kind: 'skipped' }
  | { readonly kind: 'rejected'; readonly rejected: RejectedRule }

const isStringList = (value: unknown): boolean => Array.isArray(value) && value.every(item => typeof item === 'string')
const isOneOf = (list: readonly string[], value: unknown): boolean => typeof value === 'string' && list.includes(value)
const isSeconds = (value: unknown, max: number): boolean =>
  value === undefined ||
  value === null ||
  (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max)

const SCOPE_LISTS = ['server_ids', 'tags', 'environments', 'roles', 'datacenters'] as const

/** Faults in the shape of a scope. Whether its servers exist is checked by the hub. */
function scopeFaults(raw: Unchecked): RuleFault[] {
  const scope = raw.scope
  if (!isObject(scope)) return [{ reason: 'scope', field: 'scope', message: 'must be an object' }]
  const faults: RuleFault[] = []
  if (scope.all !== undefined && scope.all !== null && typeof scope.all !== 'boolean')
    faults.push({ reason: 'scope', field: 'scope.all', message: 'must be true or false' })
  for (const list of SCOPE_LISTS)
    if (scope[list] !== undefined && scope[list] !== null && !isStringList(scope[list]))
      faults.push({ reason: 'scope', field: `scope.${list}`, message: 'must be a list of strings' })
  const resolved = raw.resolved_server_ids
  if (resolved !== undefined && resolved !== null && !isStringList(resolved))
    faults.push({ reason: 'scope', field: 'resolved_server_ids', message: 'must be a list of strings' })
  return faults
}

function conditionFaults(raw: Unchecked): RuleFault[] {
  const faults: RuleFault[] = []
  const { operator, threshold, recover_threshold: recover } = raw
  if (!isOneOf(operators, operator))
    faults.push({ reason: 'operator', field: 'operator', message: `must be one of ${operators.join(' ')}` })
  if (typeof threshold !== 'number' || !Number.isFinite(threshold))
    faults.push({ reason: 'threshold', field: 'threshold', message: 'is required and must be a finite number' })
  if (recover === undefined || recover === null || operator === '==' || operator === '!=') return faults
  const isAbove = operator === '>' || operator === '>='
  if (typeof recover !== 'number' || !Number.isFinite(recover))
    faults.push({ reason: 'recover_threshold', field: 'recover_threshold', message: 'must be a finite number or null' })
  else if (
    typeof threshold === 'number' &&
    isOneOf(operators, operator) &&
    (isAbove ? recover > threshold : recover < threshold)
  )
    faults.push({
      reason: 'recover_threshold',
      field: 'recover_threshold',
      message: `must be ${isAbove ? 'at most' : 'at least'} the threshold with operator ${String(operator)}`,
    })
  return faults
}

function durationFaults(raw: Unchecked): RuleFault[] {
  const faults: RuleFault[] = []
  for (const field of ['for_seconds', 'recover_for_seconds'] as const)
    if (!isSeconds(raw[field], limits.forSecondsMax))
      faults.push({
        reason: 'duration',
        field,
        message: `must be a whole number of seconds, 0 to ${limits.forSecondsMax}`,
      })
  const renotify = raw.renotify_seconds
  const isRenotifyValid =
    isSeconds(renotify, limits.renotifySecondsMax) &&
    (renotify === undefined || renotify === null || renotify === 0 || (renotify as number) >= limits.renotifySecondsMin)
  if (!isRenotifyValid)
    faults.push({
      reason: 'duration',
      field: 'renotify_seconds',
      message: `must be 0 or ${limits.renotifySecondsMin} to ${limits.renotifySecondsMax} seconds`,
    })
  return faults
}

/**
 * Everything that is wrong with a rule, in the order of `rejectReasons`; empty for a good one. Absent optional fields
 * take their defaults (decision G-65). For kind agent_down only kind, severity and scope are looked at (G-69).
 */
export function ruleFaults(raw: Unchecked): RuleFault[] {
  const faults: RuleFault[] = []
  if (!isOneOf(ruleKinds, raw.kind))
    faults.push({ reason: 'kind', field: 'kind', message: `must be one of ${ruleKinds.join(', ')}` })
  const isSeries = raw.kind !== 'agent_down'
  if (isSeries) {
    const metric = typeof raw.metric === 'string' ? metricByName(raw.metric) : undefined
    if (!metric) faults.push({ reason: 'metric', field: 'metric', message: 'must be a metric of the catalogue' })
    const matchers = raw.matchers ?? {}
    if (!isObject(matchers)) faults.push({ reason: 'matcher_label', field: 'matchers', message: 'must be an object' })
    else
      for (const fault of compileMatchers(matchers, metric ? metric.labels : null).faults)
        faults.push({ reason: fault.reason, field: `matchers.${fault.label}`, message: fault.message })
    faults.push(...conditionFaults(raw))
  }
  if (!isOneOf(severities, raw.severity))
    faults.push({ reason: 'severity', field: 'severity', message: `must be one of ${severities.join(', ')}` })
  if (isSeries) {
    if (raw.no_data !== undefined && raw.no_data !== null && !isOneOf(noDataModes, raw.no_data))
      faults.push({ reason: 'no_data', field: 'no_data', message: `must be one of ${noDataModes.join(', ')}` })
    faults.push(...durationFaults(raw))
  }
  faults.push(...scopeFaults(raw))
  return faults
}

/** Compiles one rule of the feed; never throws, whatever it is given. */
export function compileRule(raw: unknown): CompileResult {
  if (!isObject(raw)) return rejection({}, { reason: 'decode', field: '', message: 'a rule must be an object' })
  if (typeof raw.too_large === 'number')
    return rejection(raw, {
      reason: 'too_large',
      field: '',
      message: `the record has up to ${raw.too_large} bytes, more than is delivered: its scope names too many servers`,
    })
  for (const field of ['id', 'company_id'] as const)
    if (typeof raw[field] !== 'string' || raw[field] === '')
      return rejection(raw, { reason: 'decode', field, message: `${field} must be a string` })
  if (!Number.isInteger(raw.version))
    return rejection(raw, { reason: 'decode', field: 'version', message: 'version must be an integer' })
  if (raw.kind === 'agent_down') return { kind: 'skipped' }
  return isValid(raw) ? { kind: 'compiled', rule: compile(raw) } : rejection(raw, ruleFaults(raw)[0]!)
}

function rejection(raw: Unchecked, fault: RuleFault): CompileResult {
  const rejected: RejectedRule = {
    rule_id: typeof raw.id === 'string' ? raw.id : '',
    company_id: typeof raw.company_id === 'string' ? raw.company_id : '',
    version: Number.isInteger(raw.version) ? (raw.version as number) : 0,
    reason: fault.reason,
    message: fault.field ? `${fault.field}: ${fault.message}` : fault.message,
  }
  return { kind: 'rejected', rejected }
}

type ValidRule = RawRule & Pick<RuleRecord, 'packed'>

const isValid = (raw: Unchecked): raw is Unchecked & ValidRule => ruleFaults(raw).length === 0

function compile(raw: ValidRule): CompiledRule {
  const metric = raw.metric as string
  const matchers = raw.matchers ?? {}
  const operator = raw.operator as Operator
  const usesRecover = operator !== '==' && operator !== '!='
  const scopeAll = raw.scope.all === true
  return {
    id: raw.id,
    version: raw.version,
    companyId: raw.company_id,
    name: raw.name ?? '',
    metric,
    matchers: compileMatchers(matchers, null).matchers,
    operator,
    threshold: raw.threshold as number,
    forMs: (raw.for_seconds ?? 0) * 1000,
    recoverThreshold: usesRecover ? (raw.recover_threshold ?? null) : null,
    recoverForMs: (raw.recover_for_seconds ?? 0) * 1000,
    severity: raw.severity,
    noData: raw.no_data ?? 'ignore',
    renotifyMs: (raw.renotify_seconds ?? 0) * 1000,
    scopeAll,
    serverIds: packedIds(raw) ?? packServerIds([raw.scope.server_ids ?? [], raw.resolved_server_ids ?? []]),
    signature: JSON.stringify([raw.company_id, metric, canonicalMatchers(matchers), scopeAll]),
  }
}
