// The preview of a draft: the samples that the hub sends, and the alerts that the judge finds in them.
import { useEffect, useMemo, useState } from 'preact/hooks'
import type { RulePreviewView } from '../../../views/rule-preview.ts'
import { fromRuns } from '../../../views/time-runs.ts'
import { Judge } from '../../judge/judge.ts'
import type { Firing, JudgedCondition, JudgedSeries } from '../../judge/judge-messages.ts'
import { useView, type ViewState } from '../../view.ts'
import { type Draft, matchersOf, scopeOf, worstOf } from './draft.ts'

/** What is typed settles before the hub is asked. */
const TYPING_MS = 400
/** A preview looks at no more servers anyway, and the address of a request has an end. */
const NAMED_MAX = 20

/** A value that has not changed for a while. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value)
  const key = JSON.stringify(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms)
    return () => clearTimeout(timer)
  }, [key, ms])
  return settled
}

/** The parameters that choose the series of a draft. */
export function previewParams(draft: Draft, hours: number) {
  const scope = scopeOf(draft)
  return {
    metric: draft.metric,
    matchers: JSON.stringify(matchersOf(draft)),
    scope: JSON.stringify({ ...scope, server_ids: scope.server_ids.slice(0, NAMED_MAX) }),
    hours,
  }
}

type SourceProps = {
  readonly draft: Draft
  readonly hours: number
  readonly onState: (state: ViewState<RulePreviewView>) => void
}

/** Draws nothing: asks for the preview of a draft that has a metric. */
export function PreviewSource({ draft, hours, onState }: SourceProps) {
  const params = useSettled({ ...previewParams(draft, hours), worst: worstOf(draft) }, TYPING_MS)
  const state = useView<RulePreviewView>('rule-preview', params)
  useEffect(() => onState(state), [state.data, state.fault, state.isCurrent])
  return null
}

const judgedSeries = ({ series, stepSeconds }: RulePreviewView): JudgedSeries[] =>
  series.map(({ serverId, labels, times, values, heard }) => ({
    serverId,
    labels,
    tsMs: fromRuns(times),
    values,
    heardAtMs: fromRuns(heard),
    intervalSeconds: stepSeconds,
  }))

type Judged = { readonly firings: readonly (readonly Firing[])[]; readonly isDone: boolean }
const NOTHING: Judged = { firings: [], isDone: false }

/** The alerts of each series under a draft and as it is saved; kept while the next ones are looked for. */
export function useJudge(
  preview: RulePreviewView | null,
  draft: JudgedCondition | null,
  saved: JudgedCondition | null,
): { readonly series: readonly JudgedSeries[]; readonly draft: Judged; readonly saved: Judged } {
  const judge = useMemo(() => new Judge(), [])
  useEffect(() => () => judge.stop(), [judge])
  const series = useMemo(() => (preview === null ? [] : judgedSeries(preview)), [preview])
  useEffect(() => {
    if (preview !== null) judge.load(series, preview.toMs)
  }, [judge, preview, series])
  return {
    series,
    draft: useJudged(judge, 'draft', series, draft),
    saved: useJudged(judge, 'saved', series, saved),
  }
}

function useJudged(
  judge: Judge,
  name: string,
  series: readonly JudgedSeries[],
  condition: JudgedCondition | null,
): Judged {
  const [judged, setJudged] = useState(NOTHING)
  const key = JSON.stringify(condition)
  useEffect(() => {
    if (condition === null || series.length === 0) return setJudged(NOTHING)
    setJudged(before => ({
      firings: before.firings.length === series.length ? before.firings : series.map(() => []),
      isDone: false,
    }))
    judge.judge(name, condition, found =>
      setJudged(before =>
        found === null
          ? { ...before, isDone: true }
          : { ...before, firings: before.firings.map((each, at) => (at === found.series ? found.firings : each)) },
      ),
    )
  }, [judge, name, series, key])
  return judged
}

type Told = { readonly count: number; readonly longestMs: number }

export function toldOf({ firings }: Judged, toMs: number): Told {
  const all = firings.flat()
  const longestMs = all.reduce((longest, { openedAtMs, resolvedAtMs }) => {
    return Math.max(longest, (resolvedAtMs ?? toMs) - openedAtMs)
  }, 0)
  return { count: all.length, longestMs }
}
