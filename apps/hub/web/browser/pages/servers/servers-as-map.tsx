// The servers as a map: grouped by two keys, filled by a metric, marked by their worst alert. Everything chosen stands
// in the address; a table says the same.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { filterText, parseFilter } from '../../../address/filter-language.ts'
import type { HostMapView, MapCell, MapCellsView, MapGroup } from '../../../views/host-map.ts'
import { mapWords } from '../../../words/map.ts'
import { serversWords } from '../../../words/servers.ts'
import { shellWords } from '../../../words/shell.ts'
import { goTo, hrefTo, param, setParams } from '../../address/router.ts'
import { count, valueText } from '../../format.ts'
import { metricTitle } from '../../metric-title.ts'
import { Fault } from '../../parts/fault.tsx'
import { NothingMatches } from '../../parts/filter-field.tsx'
import { HostMap } from '../../parts/host-map/host-map.tsx'
import type { MapCaption } from '../../parts/host-map/map-layout.ts'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { may, textsOf } from '../../session.ts'
import { useView } from '../../view.ts'
import { readView } from '../../view-request.ts'
import type { MapProps } from './late-props.ts'
import { ServerName, stateOf } from './server-columns.tsx'

const t = textsOf(mapWords)
const servers = textsOf(serversWords)
const shell = textsOf(shellWords)

const KEYS = ['dc', 'env', 'role', 'version', 'state'] as const
const WINDOW = 60

const isState = (value: string): value is 'online' | 'down' | 'unknown' | 'maintenance' | 'decommissioned' | 'draft' =>
  ['online', 'down', 'unknown', 'maintenance', 'decommissioned', 'draft'].includes(value)

/** What a value of a key is called. */
const keyText = (key: string | undefined, value: string): string =>
  value === '' ? t('without') : key === 'state' && isState(value) ? shell(`state_${value}`) : value

function captionsOf({ keys, levels }: MapGroup, groupedBy: readonly string[]): string[] {
  if (keys === null) return [t('caption', { name: t('others'), count: levels.length })]
  const names = keys.map((value, at) => keyText(groupedBy[at], value))
  const last = names.at(-1)
  return last === undefined ? [] : [...names.slice(0, -1), t('caption', { name: last, count: levels.length })]
}

function KeyChoice({
  label,
  at,
  grouped,
}: {
  readonly label: string
  readonly at: 0 | 1
  readonly grouped: readonly string[]
}) {
  const choose = (key: string): void => {
    const next = at === 0 ? [key, ...grouped.slice(1).filter(each => each !== key)] : [grouped[0] ?? '', key]
    setParams({ group: next.filter(each => each !== '').join(',') })
  }
  return (
    <label class="inline">
      <span class="muted">{label}</span>
      <select value={grouped[at] ?? ''} onChange={event => choose(event.currentTarget.value)}>
        <option value="">{t('group_none')}</option>
        {KEYS.filter(key => at === 0 || key !== grouped[0]).map(key => (
          <option value={key} key={key}>
            {t(`group_${key}`)}
          </option>
        ))}
      </select>
    </label>
  )
}

const Choices = ({ data }: { readonly data: HostMapView }) => (
  <div class="toolbar">
    <KeyChoice label={t('group')} at={0} grouped={data.groupedBy} />
    {data.groupedBy.length === 0 ? null : <KeyChoice label={t('then_by')} at={1} grouped={data.groupedBy} />}
    <label class="inline">
      <span class="muted">{t('fill')}</span>
      <select value={data.metric} onChange={event => setParams({ fill: event.currentTarget.value })}>
        {data.metrics.map(({ name }) => (
          <option value={name} key={name}>
            {metricTitle(name)}
          </option>
        ))}
      </select>
    </label>
    <button type="button" onClick={() => setParams({ as: param('as') === 'table' ? null : 'table', offset: null })}>
      {t(param('as') === 'table' ? 'as_map' : 'as_table')}
    </button>
  </div>
)

const Legend = ({ data }: { readonly data: HostMapView }) => (
  <p class="map-legend">
    <span class="map-scale">
      {valueText(data.unit, 0)}
      <i />
      {data.unit === 'percent' ? valueText(data.unit, 100) : t('more', { value: valueText(data.unit, data.scaleMax) })}
    </span>
    <span class="map-empty">
      <i />
      {t('no_value')}
    </span>
    <StateMark state="critical" />
    <StateMark state="warning" />
    <StateMark state="info" />
    <StateMark state="maintenance" />
  </p>
)

/** `mount=/var`: the labels of the series whose value it is, without those that only repeat a mount. */
const labelsText = ({ labels }: MapCell): string =>
  Object.entries(labels)
    .filter(([name]) => labels.mount === undefined || name === 'mount')
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')

const AlertsMark = ({ cell }: { readonly cell: MapCell }) =>
  cell.worst === null ? null : <StateMark state={cell.worst} text={t('open_alerts', { count: cell.openAlerts })} />

const CellLine = ({ cell, data }: { readonly cell: MapCell | null; readonly data: HostMapView }) => (
  <div class="map-cell" id="map-cell" role="status">
    {cell === null ? (
      <span class="muted">{t('hint')}</span>
    ) : (
      <>
        <strong>
          <ServerName server={cell} />
        </strong>
        <StateMark state={stateOf(cell)} />
        {cell.isSilenced ? <StateMark state="silenced" /> : null}
        <span>
          {metricTitle(data.metric)}: {valueText(data.unit, cell.value)} <span class="muted">{labelsText(cell)}</span>
        </span>
        <AlertsMark cell={cell} />
        <span class="muted">{cell.keys.map((value, at) => keyText(data.groupedBy[at], value)).join(' · ')}</span>
      </>
    )}
  </div>
)

type Windows = { readonly data: HostMapView; readonly known: Map<number, readonly MapCell[]> }

/** Who stands in a cell: asked for in windows, kept until the map is another. Null until it is known. */
function useCell(data: HostMapView, cell: number | null): MapCell | null {
  const windows = useRef<Windows>({ data, known: new Map() })
  const [, setLoaded] = useState(0)
  const last = useRef<{ readonly cell: number | null; readonly found: MapCell | null }>({ cell: null, found: null })
  if (windows.current.data !== data) windows.current = { data, known: new Map() }
  const from = cell === null ? null : Math.floor(cell / WINDOW) * WINDOW
  const { known } = windows.current
  const isMissing = from !== null && !known.has(from)
  useEffect(() => {
    if (from === null || !isMissing) return
    const abort = new AbortController()
    const params = { q: param('q'), group: param('group'), fill: param('fill'), offset: from }
    // A pointer that passes over many windows asks for the last one only.
    const timer = setTimeout(() => {
      readView<MapCellsView>('host-map-cells', params, abort.signal)
        .then(answer => {
          if (answer.order !== data.order) return
          known.set(from, answer.cells)
          setLoaded(times => times + 1)
        })
        .catch(() => {})
    }, 60)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [from, isMissing, known, data.order])
  const found = cell === null || from === null ? null : (known.get(from)?.[cell - from] ?? null)
  // The same cell of the map before stays until its values have come.
  if (found !== null || last.current.cell !== cell) last.current = { cell, found }
  return last.current.found
}

/** The filter with what a caption stands for, which Back undoes. */
function filterBy({ group, isHeading }: MapCaption, data: HostMapView): void {
  const keys = data.groups[group]?.keys ?? []
  const terms = data.groupedBy
    .slice(0, isHeading ? 1 : 2)
    .map((key, at) => ({ key, isExcluded: false, operator: '=' as const, value: keys[at] ?? '' }))
    .filter(({ value }) => value !== '')
  const others = parseFilter(param('q')).filter(term => !terms.some(({ key }) => key === term.key))
  setParams({ q: filterText([...others, ...terms]) })
}

function Picture({ data }: { readonly data: HostMapView }) {
  const [cell, setCell] = useState<number | null>(null)
  const shown = cell !== null && cell < data.matching ? cell : null
  const found = useCell(data, shown)
  // The same as long as the data is: a pointer that moves draws no cell anew.
  const groups = useMemo(
    () => data.groups.map(group => ({ ...group, captions: captionsOf(group, data.groupedBy) })),
    [data],
  )
  const open = (): void => {
    if (found !== null) goTo(hrefTo('server', { server: found.id }))
  }
  return (
    <>
      <Legend data={data} />
      <CellLine cell={found} data={data} />
      <HostMap
        label={t('label', { count: data.matching, metric: metricTitle(data.metric) })}
        groups={groups}
        cell={shown}
        onCell={setCell}
        onOpen={open}
        onCaption={caption => filterBy(caption, data)}
      />
    </>
  )
}

const columnsOf = (data: HostMapView): readonly Column<MapCell>[] => [
  { key: 'state', title: servers('state'), cell: row => <StateMark state={stateOf(row)} /> },
  { key: 'name', title: servers('name'), isName: true, cell: row => <ServerName server={row} /> },
  ...(data.groupedBy.length === 0
    ? []
    : [
        {
          key: 'keys',
          title: t('keys'),
          cell: (row: MapCell) => row.keys.map((value, at) => keyText(data.groupedBy[at], value)).join(' · '),
        },
      ]),
  {
    key: 'value',
    title: metricTitle(data.metric),
    isNumber: true,
    cell: row => (
      <>
        {valueText(data.unit, row.value)} <span class="muted">{labelsText(row)}</span>
      </>
    ),
  },
  { key: 'alerts', title: servers('alerts'), cell: row => <AlertsMark cell={row} /> },
]

function Rows({ data }: { readonly data: HostMapView }) {
  const params = { q: param('q'), group: param('group'), fill: param('fill'), offset: param('offset') }
  const view = useView<MapCellsView>('host-map-cells', params)
  if (view.data === null)
    return view.fault === null ? <Skeleton lines={16} /> : <Fault fault={view.fault} onRetry={view.reload} />
  return (
    <Table
      label={t('label', { count: count(data.matching), metric: metricTitle(data.metric) })}
      columns={columnsOf(data)}
      rows={view.data.cells}
      keyOf={row => row.id}
      nameOf={row => row.name}
      total={view.data.matching}
      offset={view.data.offset}
      onOffset={offset => setParams({ offset: offset || null }, 'replace')}
    />
  )
}

/** What stands below the filter while servers are shown as a map. */
export const ServersAsMap = ({ data }: MapProps) => (
  <>
    <Choices data={data} />
    {data.total === 0 ? (
      <div class="notice">
        <p>{servers('none')}</p>
        {may('monitoring.manage') ? (
          <a class="button primary" href={hrefTo('add_servers')}>
            {servers('add')}
          </a>
        ) : null}
      </div>
    ) : data.matching === 0 ? (
      <NothingMatches />
    ) : param('as') === 'table' ? (
      <Rows data={data} />
    ) : (
      <Picture data={data} />
    )}
  </>
)
