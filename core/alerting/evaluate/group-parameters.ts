// When a group of servers counts as a wide-area incident. Each field of a company is taken from the hub's settings,
// else from the collector's configuration for that company, else from the default (document 2 "Wide-area incident
// grouping", GRP-019, GRP-020).

export type GroupParameters = {
  /** Only servers declared lost within this time count, ms. */
  readonly windowMs: number
  /** The minimum number of lost servers. */
  readonly min: number
  /** The minimum share of the group's servers that must be lost, in (0, 1]. */
  readonly ratio: number
}

/** Unless hub or operator say otherwise (document 2 "Limits"). */
export const GROUP_DEFAULTS: GroupParameters = { windowMs: 60_000, min: 5, ratio: 0.3 }

/** The fields of GET /settings/{company_id}; null or absent = unset. */
export type HubGroupSettings = {
  readonly group_down_min?: number | null
  readonly group_down_ratio?: number | null
  readonly group_down_window_seconds?: number | null
}

/** `alerting.group_down.companies.<company_id>`, read and checked with the configuration. */
export type GroupOverride = {
  readonly windowMs?: number | null
  readonly min?: number | null
  readonly ratio?: number | null
}

type Known = number | null | undefined

const isAtLeastOne = (value: Known): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 1
const isRatio = (value: Known): value is number => typeof value === 'number' && value > 0 && value <= 1
const isPositive = (value: Known): value is number => typeof value === 'number' && Number.isFinite(value) && value > 0

/** Merges the three sources; a value outside its domain counts as unset. `hub` is null when the hub did not answer. */
export function groupParameters(
  hub: HubGroupSettings | null,
  override: GroupOverride | undefined,
  defaults: GroupParameters,
): GroupParameters {
  const hubWindow = hub?.group_down_window_seconds
  const first = <T extends number>(isValid: (value: Known) => value is T, ...values: Known[]): number | undefined =>
    values.find(value => isValid(value)) ?? undefined
  return {
    windowMs: (isAtLeastOne(hubWindow) ? hubWindow * 1000 : first(isPositive, override?.windowMs)) ?? defaults.windowMs,
    min: first(isAtLeastOne, hub?.group_down_min, override?.min) ?? defaults.min,
    ratio: first(isRatio, hub?.group_down_ratio, override?.ratio) ?? defaults.ratio,
  }
}
