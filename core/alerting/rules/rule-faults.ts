// What is wrong with a rule (document 2 "Rule" and "Errors"; decisions G-65, G-68, G-69, G-84). The hub refuses with it
// before saving, the collector after syncing.
import { isObject, type Unchecked } from '../../json-object.ts'
import { limits } from '../../limits.ts'
import { metricByName } from '../../series/catalogue.ts'
import { compileMatchers } from './matchers.ts'
import { noDataModes, operators, type RuleFault, ruleKinds, severities } from './rule.ts'

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
