// The servers of the company: a table that filters, sorts and is kept up to date.
import type { ServersView } from '../../../views/servers.ts'
import { serversWords } from '../../../words/servers.ts'
import { shellWords } from '../../../words/shell.ts'
import { hrefTo, setParams } from '../../address/router.ts'
import { Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { useSelection } from '../../parts/selection.ts'
import { Skeleton } from '../../parts/skeleton.tsx'
import { Table } from '../../parts/table.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { serverColumns } from './server-columns.tsx'

const t = textsOf(serversWords)
const shell = textsOf(shellWords)

const STATES = ['online', 'down', 'unknown', 'maintenance', 'draft', 'alerts', 'silenced']

export function ServersPage() {
  const { data, fault, reload } = usePageView<ServersView>('servers')
  const selection = useSelection()
  if (data === null) return fault === null ? <Skeleton lines={16} /> : <Fault fault={fault} onRetry={reload} />
  const facets = { state: STATES.map(state => [state, -1] as const), ...data.facets }
  return (
    <>
      <div class="page-head">
        <h1>{t('title')}</h1>
        <span class="muted">{shell('rows_of', { count: data.matching, total: data.counts.all })}</span>
        <span class="grow" />
        {may('monitoring.manage') ? (
          <a class="button" href={hrefTo('add_servers')}>
            {t('add')}
          </a>
        ) : null}
      </div>
      <div class="toolbar">
        <FilterField facets={facets} />
      </div>
      {data.collector === 'ok' ? null : <p class="banner">{shell(`collector_${data.collector}`)}</p>}
      {data.matching === 0 ? (
        <NothingMatches />
      ) : (
        <Table
          label={t('title')}
          columns={serverColumns}
          rows={data.rows}
          keyOf={row => row.id}
          nameOf={row => row.name}
          total={data.matching}
          offset={data.offset}
          onOffset={offset => setParams({ offset: offset || null }, 'replace')}
          selection={selection}
        />
      )}
    </>
  )
}
