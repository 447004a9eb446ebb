// The table that says what a chart shows: an instant a row, a line a column. Long ranges are thinned to rows that can
// be read; each row then has the highest value of its span.
import { chartWords } from '../../../words/charts.ts'
import { dayAndClock, valueText } from '../../format.ts'
import { textsOf } from '../../session.ts'
import type { ChartData } from './chart-data.ts'

const t = textsOf(chartWords)

const ROWS_MAX = 60
const COLUMNS_MAX = 24

type Row = { readonly atMs: number; readonly values: readonly (number | null)[] }

function rowsOf({ startMs, stepMs, lines }: ChartData): Row[] {
  const shown = lines.slice(0, COLUMNS_MAX)
  const length = shown.reduce((most, { values }) => Math.max(most, values.length), 0)
  const span = Math.max(1, Math.ceil(length / ROWS_MAX))
  return Array.from({ length: Math.ceil(length / span) }, (_, row) => ({
    atMs: startMs + row * span * stepMs,
    values: shown.map(({ values }) => {
      const known = values.slice(row * span, (row + 1) * span).filter(value => value !== null)
      return known.length === 0 ? null : Math.max(...known)
    }),
  }))
}

export const ChartTable = ({
  title,
  unit,
  data,
}: {
  readonly title: string
  readonly unit: string | null
  readonly data: ChartData
}) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys (WCAG 2.1.1).
  <section class="chart-table" tabIndex={0} aria-label={title}>
    <table>
      <thead>
        <tr>
          <th scope="col">{t('time')}</th>
          {data.lines.slice(0, COLUMNS_MAX).map(({ key, name }) => (
            <th scope="col" key={key}>
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rowsOf(data).map(({ atMs, values }) => (
          <tr key={atMs}>
            <th scope="row">{dayAndClock(atMs)}</th>
            {values.map((value, index) => (
              <td key={data.lines[index]?.key}>{valueText(unit, value)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </section>
)
