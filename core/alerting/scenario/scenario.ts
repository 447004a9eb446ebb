// What a scenario of rule behaviour says, once read: servers, settings, steps in time, and the events that must come of
// them. Times are ms since the start of the scenario, which is instant 0 of the test's clock.
import type { RawRule } from '../rules/rule.ts'

export type ScenarioServer = {
  readonly name: string
  readonly company: string
  readonly intervalSeconds: number
  readonly status: string
  readonly subnet: string
  readonly datacenter: string
}

export type ScenarioSettings = {
  noDataAfterMs: number
  flapWindowMs: number
  flapTransitions: number
  flapStableMs: number
  /** 0 = only where the scenario says so. */
  snapshotIntervalMs: number
  groupEnabled: boolean
  groupWindowMs: number
  groupMin: number
  groupRatio: number
}

export type ScenarioPoint = { readonly tsMs: number; readonly value: number }
/** `key` is the full series key. */
export type ScenarioSeries = { readonly key: string; readonly points: readonly ScenarioPoint[] }

/** A rule as the scenario writes it; servers and company by name. */
export type ScenarioRule = {
  readonly name: string
  readonly company: string
  readonly scopeAll: boolean
  readonly serverNames: readonly string[]
  readonly resolvedNames: readonly string[]
  readonly fields: Pick<
    RawRule,
    | 'kind'
    | 'metric'
    | 'matchers'
    | 'operator'
    | 'threshold'
    | 'for_seconds'
    | 'recover_threshold'
    | 'recover_for_seconds'
    | 'severity'
    | 'no_data'
    | 'renotify_seconds'
  >
}

export type ScenarioSilence = {
  readonly name: string
  readonly company: string
  readonly all: boolean
  readonly serverNames: readonly string[]
  /** Empty: all rules. */
  readonly ruleNames: readonly string[]
  /** Where the servers stand: scope.server_ids, scope.resolved_server_ids, or beside the scope. */
  readonly place: 'scope' | 'resolved' | 'top'
  readonly fromMs: number
  readonly untilMs: number
}

export type GroupField = 'group_down_min' | 'group_down_ratio' | 'group_down_window_seconds'

export type ScenarioAction =
  | { readonly kind: 'batch'; readonly server: string; readonly series: readonly ScenarioSeries[] }
  | { readonly kind: 'rule'; readonly rule: ScenarioRule }
  | { readonly kind: 'rule-end'; readonly rule: string; readonly how: 'disable' | 'delete' }
  | { readonly kind: 'rule-enable'; readonly rule: string }
  | { readonly kind: 'silence'; readonly silence: ScenarioSilence }
  | { readonly kind: 'unsilence'; readonly name: string }
  | {
      readonly kind: 'attribute'
      readonly server: string
      readonly field: 'status' | 'subnet' | 'datacenter'
      readonly value: string
    }
  | { readonly kind: 'revoke'; readonly server: string }
  | { readonly kind: 'enroll'; readonly server: string }
  | { readonly kind: 'stop'; readonly isCrash: boolean; readonly downMs: number }
  | { readonly kind: 'snapshot' }
  | { readonly kind: 'overflow' }
  | {
      readonly kind: 'group-setting'
      readonly company: string
      readonly source: 'hub' | 'config'
      readonly field: GroupField
      readonly value: number | null
    }

export type ScenarioStep = { readonly atMs: number; readonly line: number; readonly action: ScenarioAction }

/** An event that must come. `fields` are compared as texts, see `event-text.ts`; only those given count. */
export type ExpectedEvent = {
  readonly line: number
  readonly atMs: number
  readonly type: string
  /** Rule name, empty for agent events; the group key for group events. */
  readonly rule: string
  /** Empty for group events. */
  readonly server: string
  readonly fields: ReadonlyMap<string, string>
}

export type Scenario = {
  readonly line: number
  /** With its requirement ids: `[EVAL-007] …`. */
  readonly name: string
  readonly settings: ScenarioSettings
  readonly servers: readonly ScenarioServer[]
  /** In order of time; at one instant in the order of the text. */
  readonly steps: readonly ScenarioStep[]
  readonly expected: readonly ExpectedEvent[]
  readonly untilMs: number
}

/** A line that cannot be read. */
export type ScenarioFault = { readonly line: number; readonly message: string }
