// The legend of a chart: each line with its last, lowest, average and highest value; while the crosshair stands
// somewhere its values there.
import { type ReadonlySignal, useComputed, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { chartWords } from '../../../words/charts.ts'
import { clockSeconds, dayAndClock, valueText } from '../../format.ts'
import { textsOf } from '../../session.ts'
import type { ChartData } from './chart-data.ts'
import { type ChartLine, type LineStatistics, statisticsOf } from './lines.ts'
import { lineLook } from './palette.ts'

const t = textsOf(chartWords)

/** More lines than these stand behind a button. */
const SHOWN = 6
const DAY_MS = 86_400_000

type Row = { readonly line: ChartLine; readonly index: number; readonly statistics: LineStatistics }

export function Legend({
  unit,
  data,
  cursor,
}: {
  readonly unit: string | null
  readonly data: ChartData
  readonly cursor: ReadonlySignal<number | null>
}) {
  const isWhole = useSignal(false)
  const { lines, startMs, stepMs } = data
  // The highest stand first: of twenty disks the full one is what somebody looks for.
  const rows = useMemo(
    () =>
      lines
        .map((line, index): Row => ({ line, index, statistics: statisticsOf(line.values) }))
        .sort((one, other) => (other.statistics.last ?? -Infinity) - (one.statistics.last ?? -Infinity)),
    [lines],
  )
  const shown = isWhole.value ? rows : rows.slice(0, SHOWN)
  const isLong = data.toMs - data.fromMs > DAY_MS
  const heading = useComputed(() => {
    const at = cursor.value
    if (at === null) return t('last_short')
    return (isLong ? dayAndClock : clockSeconds)(startMs + at * stepMs)
  })
  return (
    <div class="legend">
      <table>
        <thead>
          <tr>
            <th scope="col">{t('series')}</th>
            <th scope="col">{heading}</th>
            <th scope="col">{t('min')}</th>
            <th scope="col">{t('avg')}</th>
            <th scope="col">{t('max')}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(row => (
            <LegendRow key={row.line.key} row={row} unit={unit} data={data} cursor={cursor} />
          ))}
        </tbody>
      </table>
      {rows.length > SHOWN ? (
        <button
          type="button"
          class="quiet"
          aria-expanded={isWhole.value}
          onClick={() => (isWhole.value = !isWhole.value)}
        >
          {isWhole.value ? t('show_fewer_lines') : t('show_all_lines', { count: rows.length })}
        </button>
      ) : null}
    </div>
  )
}

function LegendRow({
  row: { line, index, statistics },
  unit,
  data,
  cursor,
}: {
  readonly row: Row
  readonly unit: string | null
  readonly data: ChartData
  readonly cursor: ReadonlySignal<number | null>
}) {
  const past = data.past?.lines.get(line.key) ?? null
  // A move of the pointer changes the text of a cell and draws nothing else.
  const now = useComputed(() => {
    const at = cursor.value
    return valueText(unit, at === null ? statistics.last : (line.values[at] ?? null))
  })
  const before = useComputed(() => {
    const at = cursor.value
    if (past === null || data.past === null) return ''
    const value = at === null ? statisticsOf(past).last : (past[at] ?? null)
    return `${t('before_days', { days: data.past.days })}: ${valueText(unit, value)}`
  })
  const { colour, dash } = lineLook(index)
  return (
    <tr>
      <th scope="row">
        <svg
          class="legend-line"
          data-colour={colour}
          data-dash={dash}
          viewBox="0 0 22 4"
          width="22"
          height="4"
          aria-hidden="true"
        >
          <path d="M0 2h22" />
        </svg>
        <span class="text">{line.name}</span>
        {line.detail === '' ? null : <span class="muted text"> {line.detail}</span>}
      </th>
      <td>
        {now}
        {past === null ? null : <span class="muted legend-past">{before}</span>}
      </td>
      <td>{valueText(unit, statistics.min)}</td>
      <td>{valueText(unit, statistics.avg)}</td>
      <td>{valueText(unit, statistics.max)}</td>
    </tr>
  )
}
