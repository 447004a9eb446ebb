// What the draft would have told: the worst series with their would-be alerts, in a sentence, and against the saved
// rule.
import { useMemo } from 'preact/hooks'
import type { RuleHistoryView } from '../../../views/rule-history.ts'
import type { RulePreviewView } from '../../../views/rule-preview.ts'
import { ruleEditorWords } from '../../../words/rule-editor.ts'
import { shellWords } from '../../../words/shell.ts'
import { count, duration, valueText, whenText } from '../../format.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { textsOf } from '../../session.ts'
import { useView, type ViewState } from '../../view.ts'
import { type Draft, judgedOf, numberOf } from './draft.ts'
import { previewParams, toldOf, useJudge, useSettled } from './preview-data.ts'
import { SeriesChart, scaleOf, seriesName } from './series-chart.tsx'

const t = textsOf(ruleEditorWords)
const shell = textsOf(shellWords)

/** The hub looks beyond the worst series when the draft has rested for a while. */
const RESTED_MS = 1_500
const ALERTS_LISTED = 50

type Props = {
  readonly draft: Draft
  /** The rule as it is saved, with its version; null for a new one. */
  readonly saved: { readonly draft: Draft; readonly version: number } | null
  readonly unit: string | null
  readonly hours: number
  readonly onHours: (hours: number) => void
  readonly preview: ViewState<RulePreviewView> | null
  readonly onThreshold: (value: string) => void
}

export function PreviewPanel(props: Props) {
  const { draft, preview, hours, onHours } = props
  return (
    <>
      <div class="preview-head">
        <h2>{t('preview')}</h2>
        <span class="grow" />
        <span class="choices">
          {[24, 168].map(each => (
            <button type="button" key={each} aria-pressed={hours === each} onClick={() => onHours(each)}>
              {t(each === 24 ? 'hours_24' : 'hours_168')}
            </button>
          ))}
        </span>
      </div>
      {draft.metric === '' ? (
        <p class="muted">{t('no_metric')}</p>
      ) : preview === null || preview.data === null ? (
        preview?.fault ? (
          <Fault fault={preview.fault} onRetry={preview.reload} />
        ) : (
          <Skeleton lines={10} />
        )
      ) : (
        <Charts {...props} data={preview.data} />
      )}
    </>
  )
}

function Charts(props: Props & { readonly data: RulePreviewView }) {
  const { data, draft, saved, unit, hours } = props
  const condition = judgedOf(draft)
  // Against another metric or other labels the saved rule would be judged on series that it does not cover.
  const isComparable =
    saved !== null &&
    saved.draft.metric === draft.metric &&
    JSON.stringify(saved.draft.matchers) === JSON.stringify(draft.matchers)
  const judged = useJudge(data, condition, isComparable && saved ? judgedOf(saved.draft) : null)
  const threshold = numberOf(draft.threshold) ?? null
  const savedThreshold = saved === null ? null : (numberOf(saved.draft.threshold) ?? null)
  const scale = useMemo(() => scaleOf(judged.series, savedThreshold, unit), [judged.series, savedThreshold, unit])
  const shownScale =
    threshold === null
      ? scale
      : { ...scale, low: Math.min(scale.low, threshold), high: Math.max(scale.high, threshold) }
  const put = (value: number): void => props.onThreshold(String(value))
  const recover = draft.operator === '==' || draft.operator === '!=' ? null : (numberOf(draft.recoverThreshold) ?? null)
  return (
    <>
      {data.collector === 'ok' ? null : <p class="banner">{shell(`collector_${data.collector}`)}</p>}
      <div role="status" class="told">
        {data.series.length === 0 ? (
          // Without the collector it is not known whether there are some.
          data.collector === 'ok' && <p>{t('no_series')}</p>
        ) : (
          <ToldHere {...props} judged={judged} version={isComparable ? (saved?.version ?? null) : null} />
        )}
        {condition === null || data.series.length === 0 ? null : <ToldWide draft={draft} hours={hours} />}
      </div>
      {judged.series.map((series, at) => (
        <SeriesChart
          key={JSON.stringify([series.serverId, series.labels])}
          name={seriesName(data.series[at]!)}
          series={series}
          firings={judged.draft.firings[at] ?? []}
          range={data}
          scale={shownScale}
          unit={unit}
          severity={draft.severity}
          threshold={threshold}
          recover={recover}
          onThreshold={put}
        />
      ))}
      {data.series.length === 0 ? null : (
        <div class="threshold-slider">
          <span>
            <label for="threshold-slider">{t('drag')}</label>{' '}
            <output for="threshold-slider">{valueText(unit, threshold)}</output>
          </span>
          <input
            id="threshold-slider"
            type="range"
            min={shownScale.low}
            max={shownScale.high}
            step={scale.step}
            value={threshold ?? shownScale.high}
            onInput={event => put(Number(event.currentTarget.value))}
          />
        </div>
      )}
      {data.collector !== 'ok' && data.series.length === 0 ? null : (
        <AlertsTable data={data} unit={unit} firings={judged.draft.firings} />
      )}
    </>
  )
}

type ToldProps = Props & {
  readonly data: RulePreviewView
  readonly judged: ReturnType<typeof useJudge>
  readonly version: number | null
}

function ToldHere({ data, judged, version }: ToldProps) {
  const told = toldOf(judged.draft, data.toMs)
  const before = toldOf(judged.saved, data.toMs)
  const series = data.series.length
  return (
    <>
      <p class="sentence" data-done={judged.draft.isDone}>
        {told.count === 0
          ? t('told_here_never', { series })
          : t('told_here', { series, count: told.count, longest: duration(told.longestMs) })}
      </p>
      {version === null ? null : (
        <p class="muted">
          {judged.saved.isDone
            ? t('told_saved', { version, count: before.count, longest: duration(before.longestMs) })
            : null}
        </p>
      )}
    </>
  )
}

/** What the hub finds on more servers than the page has samples of. */
function ToldWide({ draft, hours }: { readonly draft: Draft; readonly hours: number }) {
  const { metric: _metric, ...chosen } = previewParams(draft, hours)
  const params = useSettled({ ...chosen, condition: JSON.stringify(judgedOf(draft)) }, RESTED_MS)
  const { data, fault, isCurrent } = useView<RuleHistoryView>('rule-history', params)
  if (data === null || fault !== null) return fault === null ? null : <p class="muted">{fault.message}</p>
  const { told, firedOn, read, covered, longestSeconds } = data
  return (
    <p class={isCurrent ? undefined : 'muted'}>
      {told === 0
        ? t('told_wide_never', { read, covered })
        : t('told_wide', { count: told, fired: firedOn, read, covered, longest: duration(longestSeconds * 1000) })}
    </p>
  )
}

type TableProps = {
  readonly data: RulePreviewView
  readonly unit: string | null
  readonly firings: readonly (readonly {
    openedAtMs: number
    resolvedAtMs: number | null
    peakValue: number | null
  }[])[]
}

/** The charts as a table. */
function AlertsTable({ data, unit, firings }: TableProps) {
  const rows = firings
    .flatMap((of, at) => of.map(firing => ({ ...firing, name: seriesName(data.series[at]!) })))
    .sort((one, other) => other.openedAtMs - one.openedAtMs)
  return (
    <details class="alerts-table">
      <summary>
        {t('alerts_table')} <span class="muted">{count(rows.length)}</span>
      </summary>
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">{t('series')}</th>
            <th scope="col">{t('from')}</th>
            <th scope="col">{t('lasted')}</th>
            <th scope="col">{t('worst_value')}</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, ALERTS_LISTED).map(({ name, openedAtMs, resolvedAtMs, peakValue }) => (
            <tr key={`${name} ${openedAtMs}`}>
              <td>{name}</td>
              <td>{whenText(openedAtMs, data.toMs)}</td>
              <td>{resolvedAtMs === null ? t('open_still') : duration(resolvedAtMs - openedAtMs)}</td>
              <td>{valueText(unit, peakValue)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  )
}
