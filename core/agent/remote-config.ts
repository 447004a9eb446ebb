// Remote configuration over local configuration, key by key (document 3 "Agent config semantics", decisions G-52,
// G-53). An unset value keeps the local one; a value outside its domain is dropped with a warning; a result that cannot
// work discards the whole remote configuration. log_level and collector_url are not on the allow-list, so they are not
// read.
import { limits } from '../limits.ts'
import { type Check, parseCheck, type RawCheck } from './check.ts'
import { filterFault } from './filters.ts'
import { compareVersions } from './version.ts'

export type CollectorSwitches = {
  readonly cpu: boolean
  readonly memory: boolean
  readonly disk: boolean
  readonly net: boolean
  readonly uptime: boolean
}

/** What remote configuration can change of an agent. */
export type AgentSettings = {
  readonly intervalMs: number
  readonly switches: CollectorSwitches
  readonly diskInclude: readonly string[]
  readonly diskExclude: readonly string[]
  readonly netInclude: readonly string[]
  readonly netExclude: readonly string[]
  readonly checks: readonly Check[]
  readonly seriesMax: number
  readonly batchBytesMax: number
  readonly bufferBytesMax: number
}

/** AgentConfig as received; 0, '' and null mean unset. */
export type RemoteConfig = {
  readonly etag: string
  readonly intervalSeconds: number
  readonly collectors: {
    readonly switches: CollectorSwitches
    readonly diskInclude: readonly string[]
    readonly diskExclude: readonly string[]
    readonly netInclude: readonly string[]
    readonly netExclude: readonly string[]
  } | null
  readonly checks: readonly RawCheck[]
  readonly seriesMax: number
  readonly batchBytesMax: number
  readonly bufferBytesMax: number
  readonly minAgentVersion: string
}

type MergedConfig = {
  readonly settings: AgentSettings
  /** False when remote configuration is locked out, or was discarded as a whole. */
  readonly isApplied: boolean
  readonly warnings: readonly string[]
}

/** The smallest allowed batch size: below it, one cycle of a usual host would not fit. */
const BATCH_BYTES_MIN = 16 * 1024
const FILTERS_MAX = 64

type Warn = (text: string) => void

function mergeInterval(local: AgentSettings, remote: RemoteConfig, warn: Warn): number {
  const seconds = remote.intervalSeconds
  if (seconds === 0) return local.intervalMs
  if (Number.isInteger(seconds) && seconds >= limits.intervalSecondsMin && seconds <= limits.intervalSecondsMax)
    return seconds * 1000
  warn(`interval_seconds ${seconds} is not ${limits.intervalSecondsMin} to ${limits.intervalSecondsMax}`)
  return local.intervalMs
}

/** The remote list without its faulty expressions; the local list when no remote expression is left. */
function mergeFilters(key: string, local: readonly string[], remote: readonly string[], warn: Warn): readonly string[] {
  const usable = remote.filter(source => {
    const fault = filterFault(source)
    if (fault !== null) warn(`${key} ${JSON.stringify(source.slice(0, 40))} ${fault}`)
    return fault === null
  })
  return usable.length > 0 ? usable : local
}

/**
 * Merges a ceiling: the smaller of both values. Unset keeps the local value; a value below `min` is outside its domain
 * and dropped with a warning.
 */
function mergeCeiling(key: string, local: number, remote: number, min: number, warn: Warn): number {
  if (remote === 0) return local
  if (remote < min) {
    warn(`limits.${key} ${remote} is less than ${min}`)
    return local
  }
  return Math.min(local, remote)
}

function mergeChecks(local: readonly Check[], remote: readonly RawCheck[], warn: Warn): readonly Check[] {
  if (remote.length === 0) return local
  const checks: Check[] = []
  const ids = new Set<string>()
  for (const raw of [...remote].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    const check = parseCheck(raw)
    if ('fault' in check) warn(check.fault)
    else if (ids.has(check.id)) warn(`check ${check.id}: comes twice`)
    else if (checks.length >= limits.checksPerServerMax)
      warn(`check ${check.id}: is over ${limits.checksPerServerMax} checks`)
    else {
      ids.add(check.id)
      checks.push(check)
    }
  }
  return checks
}

/** Why these settings cannot work together; null when they can. */
export function settingsFault(settings: AgentSettings): string | null {
  if (settings.bufferBytesMax < settings.batchBytesMax)
    return `a buffer of ${settings.bufferBytesMax} bytes cannot hold a batch of ${settings.batchBytesMax} bytes`
  const filterCount =
    settings.diskInclude.length + settings.diskExclude.length + settings.netInclude.length + settings.netExclude.length
  if (filterCount > FILTERS_MAX) return `${filterCount} filters are more than ${FILTERS_MAX}`
  return null
}

/** The warning that a running version below min_agent_version gets; null when it is new enough or nothing is asked. */
function versionWarning(minAgentVersion: string, runningVersion: string): string | null {
  if (minAgentVersion === '') return null
  const order = compareVersions(runningVersion, minAgentVersion)
  if (order === null) return `min_agent_version ${JSON.stringify(minAgentVersion.slice(0, 40))} is not a version`
  return order < 0 ? `agent ${runningVersion} is older than the required ${minAgentVersion}: please upgrade` : null
}

/** The settings in force. min_agent_version is read even when remote configuration is locked out. */
export function mergeRemoteConfig(
  local: AgentSettings,
  remote: RemoteConfig,
  agent: { readonly allowRemoteConfig: boolean; readonly version: string },
): MergedConfig {
  const warnings: string[] = []
  const warn: Warn = text => void warnings.push(`remote config: ${text}`)
  const old = versionWarning(remote.minAgentVersion, agent.version)
  if (old !== null) warnings.push(old)
  if (!agent.allowRemoteConfig) return { settings: local, isApplied: false, warnings }
  const filters = remote.collectors
  const merge = (key: 'diskInclude' | 'diskExclude' | 'netInclude' | 'netExclude', wireKey: string) =>
    filters ? mergeFilters(`collectors.${wireKey}`, local[key], filters[key], warn) : local[key]
  const settings: AgentSettings = {
    intervalMs: mergeInterval(local, remote, warn),
    switches: filters ? filters.switches : local.switches,
    diskInclude: merge('diskInclude', 'disk_include'),
    diskExclude: merge('diskExclude', 'disk_exclude'),
    netInclude: merge('netInclude', 'net_include'),
    netExclude: merge('netExclude', 'net_exclude'),
    checks: mergeChecks(local.checks, remote.checks, warn),
    seriesMax: mergeCeiling('max_series', local.seriesMax, remote.seriesMax, 1, warn),
    batchBytesMax: mergeCeiling('max_batch_bytes', local.batchBytesMax, remote.batchBytesMax, BATCH_BYTES_MIN, warn),
    bufferBytesMax: mergeCeiling('buffer_bytes', local.bufferBytesMax, remote.bufferBytesMax, 1, warn),
  }
  const fault = settingsFault(settings)
  if (fault === null) return { settings, isApplied: true, warnings }
  warnings.push(`remote config is discarded as a whole: ${fault}`)
  return { settings: local, isApplied: false, warnings }
}
