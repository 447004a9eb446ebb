// The condition of a rule in the hub: its members in a request, its columns, and the way back. A new member of rules is
// added here, and the compiler then reports most of the other places; the recipe in HACKING.md has all.
import { type Static, type TObject, Type } from '@sinclair/typebox'
import type { RawMatchers } from '../../../core/alerting/rules/matchers.ts'
import { noDataModes, operators, type RuleKind } from '../../../core/alerting/rules/rule.ts'
import { limits } from '../../../core/limits.ts'
import type { rules } from '../platform/db/schema.ts'
import { integer, oneOf, optional, text } from '../platform/http/request-schema.ts'

const heldSeconds = optional(integer(0, limits.forSecondsMax))

/** The condition in a request. The schema checks the shape; the rule compiler (core) checks the meaning. */
export const conditionSchema = {
  metric: optional(text(64)),
  matchers: optional(Type.Record(Type.String(), Type.Unknown())),
  operator: optional(oneOf(operators)),
  threshold: optional(Type.Number()),
  for_seconds: heldSeconds,
  recover_threshold: optional(Type.Number()),
  recover_for_seconds: heldSeconds,
  no_data: optional(oneOf(noDataModes)),
  renotify_seconds: optional(integer(0, limits.renotifySecondsMax)),
}
export type ConditionInput = Static<TObject<typeof conditionSchema>>

export type ConditionColumns = Pick<
  typeof rules.$inferSelect,
  | 'metric'
  | 'matchers'
  | 'operator'
  | 'threshold'
  | 'forSeconds'
  | 'recoverThreshold'
  | 'recoverForSeconds'
  | 'noData'
  | 'renotifySeconds'
>

const NO_CONDITION: ConditionColumns = {
  metric: null,
  matchers: null,
  operator: null,
  threshold: null,
  forSeconds: null,
  recoverThreshold: null,
  recoverForSeconds: null,
  noData: null,
  renotifySeconds: null,
}

/** The columns of a valid input, with its defaults (decision G-65); for kind agent_down all are null (G-69). */
export function conditionColumns(kind: RuleKind, input: ConditionInput): ConditionColumns {
  if (kind === 'agent_down') return NO_CONDITION
  return {
    metric: input.metric ?? null,
    // The rule compiler has accepted them.
    matchers: (input.matchers ?? {}) as RawMatchers,
    operator: input.operator ?? null,
    threshold: input.threshold ?? null,
    forSeconds: input.for_seconds ?? 0,
    recoverThreshold: input.recover_threshold ?? null,
    recoverForSeconds: input.recover_for_seconds ?? 0,
    noData: input.no_data ?? 'ignore',
    renotifySeconds: input.renotify_seconds ?? 0,
  }
}

/** The condition under the names of the API, the feed and an edit. */
export const presentCondition = (columns: ConditionColumns) =>
  ({
    metric: columns.metric,
    matchers: columns.matchers,
    operator: columns.operator,
    threshold: columns.threshold,
    for_seconds: columns.forSeconds,
    recover_threshold: columns.recoverThreshold,
    recover_for_seconds: columns.recoverForSeconds,
    no_data: columns.noData,
    renotify_seconds: columns.renotifySeconds,
  }) satisfies Record<keyof ConditionInput, unknown>
