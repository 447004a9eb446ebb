// A rule as feed and API carry it, and its compiled form (document 2 "Rule"; decisions G-65, G-68, G-69).
// rule-faults.ts says what is wrong with a rule, compile-rule.ts compiles it; what stands here runs in browsers too.
import type { UncheckedRecord } from '../../sync/feed.ts'
import type { RawMatchers } from './matchers.ts'
import type { Matcher } from './matches-labels.ts'
import type { PackedScope, ServerIds } from './server-ids.ts'

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
export type RuleFault = { readonly reason: RejectReason; readonly field: string; readonly message: string }

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

/**
 * A valid rule over every series of its metric on every server: for whoever has matched scope and labels himself. It
 * needs no regular expressions, so a browser can do it.
 */
export function compileEverywhere(raw: RawRule): CompiledRule {
  const metric = raw.metric as string
  const operator = raw.operator as Operator
  const usesRecover = operator !== '==' && operator !== '!='
  return {
    id: raw.id,
    version: raw.version,
    companyId: raw.company_id,
    name: raw.name ?? '',
    metric,
    matchers: [],
    operator,
    threshold: raw.threshold as number,
    forMs: (raw.for_seconds ?? 0) * 1000,
    recoverThreshold: usesRecover ? (raw.recover_threshold ?? null) : null,
    recoverForMs: (raw.recover_for_seconds ?? 0) * 1000,
    severity: raw.severity,
    noData: raw.no_data ?? 'ignore',
    renotifyMs: (raw.renotify_seconds ?? 0) * 1000,
    scopeAll: true,
    serverIds: new Uint32Array(0),
    signature: JSON.stringify([raw.company_id, metric]),
  }
}
