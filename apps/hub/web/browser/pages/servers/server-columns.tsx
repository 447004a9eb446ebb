// The columns of the table of servers: the usual ones, and those that the address names, metrics among them.
import type { ServerRow, ServersView } from '../../../views/servers.ts'
import { serversWords } from '../../../words/servers.ts'
import { hrefTo } from '../../address/router.ts'
import { count, decimal, NOTHING, valueText } from '../../format.ts'
import { metricTitle } from '../../metric-title.ts'
import { Meter } from '../../parts/meter.tsx'
import { Sparkline } from '../../parts/sparkline.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import type { Column } from '../../parts/table.tsx'
import { Tags } from '../../parts/tags.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(serversWords)

/** A server that is out of service on purpose says so instead of being down. */
export const stateOf = ({ status, connectivity }: ServerRow) => (status === 'active' ? connectivity : status)

/** The name, leading to the page of the server. */
export const ServerName = ({ server }: { readonly server: Pick<ServerRow, 'id' | 'name'> }) => (
  <a class="text" href={hrefTo('server', { server: server.id })}>
    {server.name}
  </a>
)

/** With what it is for each core, where it is known how many there are. */
const Load = ({ row: { values, loadPerCore } }: { readonly row: ServerRow }) => (
  <span title={loadPerCore === null ? undefined : `${t('core_load')}: ${decimal(loadPerCore)}`}>
    {decimal(values?.load ?? null)}
  </span>
)

export const serverColumns: readonly Column<ServerRow>[] = [
  { key: 'state', title: t('state'), sort: 'state', cell: row => <StateMark state={stateOf(row)} /> },
  { key: 'name', title: t('name'), sort: 'name', isName: true, cell: row => <ServerName server={row} /> },
  { key: 'address', title: t('address'), sort: 'address', from: 'medium', cell: row => row.address ?? NOTHING },
  { key: 'env', title: t('environment'), sort: 'env', from: 'wide', cell: row => row.environment ?? NOTHING },
  { key: 'role', title: t('role'), sort: 'role', from: 'medium', cell: row => row.role ?? NOTHING },
  { key: 'dc', title: t('datacenter'), sort: 'dc', from: 'wide', cell: row => row.datacenter ?? NOTHING },
  { key: 'tags', title: t('tags'), from: 'wide', cell: row => <Tags tags={row.tags} /> },
  { key: 'cpu', title: t('cpu'), sort: 'cpu', isNumber: true, cell: row => <Meter value={row.values?.cpu ?? null} /> },
  {
    key: 'memory',
    title: t('memory'),
    sort: 'memory',
    isNumber: true,
    cell: row => <Meter value={row.values?.memory ?? null} />,
  },
  {
    key: 'disk',
    title: t('disk'),
    sort: 'disk',
    isNumber: true,
    cell: row => <Meter value={row.values?.disk ?? null} title={row.values?.mount ?? undefined} />,
  },
  {
    key: 'load',
    title: t('load'),
    sort: 'load',
    isNumber: true,
    from: 'medium',
    cell: row => <Load row={row} />,
  },
  {
    key: 'alerts',
    title: t('alerts'),
    sort: 'alerts',
    isNumber: true,
    cell: row =>
      row.openAlerts === 0 || row.worst === null ? (
        NOTHING
      ) : (
        <StateMark state={row.worst} text={count(row.openAlerts)} />
      ),
  },
  {
    key: 'seen',
    title: t('seen'),
    sort: '-seen',
    cell: row => (row.lastSeenAtMs === null ? t('never') : <Time atMs={row.lastSeenAtMs} />),
  },
]

const coreLoad: Column<ServerRow> = {
  key: 'core_load',
  title: t('core_load'),
  sort: 'core_load',
  isNumber: true,
  cell: row => decimal(row.loadPerCore),
}

const version: Column<ServerRow> = {
  key: 'version',
  title: t('agent_version'),
  sort: 'version',
  cell: row => row.agentVersion ?? NOTHING,
}

/** How busy the server was: the line says it, and what is read out. */
function CpuLine({ trend }: { readonly trend: ServerRow['cpuTrend'] }) {
  const known = trend?.filter(value => value !== null) ?? []
  if (trend == null || known.length === 0) return <>{NOTHING}</>
  const [min, max] = [Math.min(...known), Math.max(...known)]
  const label = t('trend_text', { min: valueText('percent', min), max: valueText('percent', max) })
  return <Sparkline values={trend} max={100} label={label} />
}

const trend: Column<ServerRow> = {
  key: 'trend',
  title: t('trend'),
  cell: row => <CpuLine trend={row.cpuTrend} />,
}

/** All columns that one can choose, besides metrics. */
export const knownColumns: readonly Column<ServerRow>[] = [...serverColumns, coreLoad, version, trend]

/** The columns that the address names, in its order, with the name always among them; null: it names none. */
export function chosenColumns(cols: string, metrics: ServersView['metrics']): readonly Column<ServerRow>[] | null {
  if (cols === '') return null
  const wanted = [...new Set(cols.split(','))]
  const columns = wanted.flatMap((key): readonly Column<ServerRow>[] => {
    const at = metrics.findIndex(({ name }) => name === key)
    const metric = metrics[at]
    if (metric !== undefined) {
      const cell = (row: ServerRow) => valueText(metric.unit, row.metrics?.[at] ?? null)
      return [{ key, title: metricTitle(key), sort: key, isNumber: true, cell }]
    }
    // Whoever chose a column wants to see it on a narrow screen, too.
    return knownColumns.filter(column => column.key === key).map(({ from: _, ...column }) => column)
  })
  return columns.some(({ isName }) => isName) ? columns : [...knownColumns.filter(({ isName }) => isName), ...columns]
}
