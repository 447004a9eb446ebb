// The columns of the table of servers.
import type { ServerRow } from '../../../views/servers.ts'
import { serversWords } from '../../../words/servers.ts'
import { hrefTo } from '../../address/router.ts'
import { count, decimal, NOTHING } from '../../format.ts'
import { Meter } from '../../parts/meter.tsx'
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
    cell: row => decimal(row.values?.load ?? null),
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
