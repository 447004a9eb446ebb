// What a page and its judge say to each other. The judge is a web worker that runs core/alerting, so that a page asks
// "would this rule have told?" at each move of a threshold without a request.
import type { Firing } from '../../../../../core/alerting/evaluate/backtest.ts'
import type { RawRule } from '../../../../../core/alerting/rules/rule.ts'

export type { Firing } from '../../../../../core/alerting/evaluate/backtest.ts'

/** What evaluation reads of a rule: the condition. Scope and matchers have chosen the series already. */
export type JudgedCondition = Pick<
  RawRule,
  | 'metric'
  | 'operator'
  | 'threshold'
  | 'for_seconds'
  | 'recover_threshold'
  | 'recover_for_seconds'
  | 'severity'
  | 'no_data'
>

/** One series of one server; times and values are columns of equal length, times ascending. */
export type JudgedSeries = {
  readonly serverId: string
  readonly labels: Readonly<Record<string, string>>
  readonly tsMs: readonly number[]
  readonly values: readonly number[]
  /** When the server sent anything at all, ascending. */
  readonly heardAtMs: readonly number[]
  readonly intervalSeconds: number
}

/** A scenario of a text, as it came out; `line` is where it begins. */
export type ScenarioVerdict = { readonly name: string; readonly line: number; readonly faults: readonly string[] }

export type ToJudge =
  /** The series that are judged from now on, up to `toMs`. */
  | { readonly kind: 'series'; readonly series: readonly JudgedSeries[]; readonly toMs: number }
  /** Judges all series, in their order. A later question ends an earlier one of the same `name`. */
  | { readonly kind: 'judge'; readonly name: string; readonly run: number; readonly condition: JudgedCondition }
  | { readonly kind: 'scenarios'; readonly run: number; readonly text: string }

export type FromJudge =
  | {
      readonly kind: 'judged'
      readonly name: string
      readonly run: number
      /** Index of the series. */
      readonly series: number
      readonly firings: readonly Firing[]
    }
  | { readonly kind: 'ended'; readonly name: string; readonly run: number }
  | { readonly kind: 'scenarios'; readonly run: number; readonly verdicts: readonly ScenarioVerdict[] }
  /** The text is no scenario. */
  | { readonly kind: 'unread'; readonly run: number; readonly line: number; readonly message: string }
