// What the collector decides about a series now, as pages say it in their own language.
import type { RuleAlerting, SeriesAlerting } from '../../../../core/admin-api/alerting.ts'

export type Decision = {
  /** The collector's own words, in English. */
  readonly decision: string
  /** None: the rule covers no series of the server; unjudged: it has judged no value of the series yet. */
  readonly state: SeriesAlerting['state'] | 'none' | 'unjudged'
  readonly lastValue: number | null
  /** It fires since the series is silent. */
  readonly isSilent: boolean
  readonly isFlapping: boolean
  /** Why nobody would be told of an event now. */
  readonly suppressedBy: SeriesAlerting['suppressed_by']
}

/** Of which nothing was judged is not well: nothing is known of it. */
const stateOf = ({ state, last_value: value }: SeriesAlerting): Decision['state'] =>
  state === 'ok' && value === null ? 'unjudged' : state

export const decisionOfSeries = (series: SeriesAlerting): Decision => ({
  ...{ decision: series.decision, state: stateOf(series), lastValue: series.last_value },
  ...{ isSilent: series.no_data, isFlapping: series.flapping, suppressedBy: series.suppressed_by },
})

export const decisionOfRule = ({ decision }: RuleAlerting): Decision => ({
  ...{ decision, state: 'none', lastValue: null, isSilent: false, isFlapping: false, suppressedBy: null },
})
