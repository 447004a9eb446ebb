// The company at a glance; every number leads to the list that it counts.
import type { OverviewView } from '../../../views/overview.ts'
import { overviewWords } from '../../../words/overview.ts'
import { shellWords } from '../../../words/shell.ts'
import { hrefTo } from '../../address/router.ts'
import { count } from '../../format.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { Table } from '../../parts/table.tsx'
import { textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { serverColumns } from '../servers/server-columns.tsx'

const t = textsOf(overviewWords)
const shell = textsOf(shellWords)

function Tile({
  state,
  number,
  href,
}: {
  readonly state: MarkedState
  readonly number: number
  readonly href: string
}) {
  return (
    <a class="tile" href={href}>
      <span class="tile-number">{count(number)}</span>
      <StateMark state={state} />
    </a>
  )
}

export function OverviewPage() {
  const { data, fault, reload } = usePageView<OverviewView>('overview')
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const { counts } = data
  return (
    <>
      <div class="page-head">
        <h1>{t('title')}</h1>
      </div>
      {data.collector === 'ok' ? null : <p class="banner">{shell(`collector_${data.collector}`)}</p>}
      <section class="panel" aria-label={t('servers')}>
        <div class="tiles">
          {(['online', 'down', 'unknown', 'maintenance'] as const).map(state => (
            <Tile
              key={state}
              state={state}
              number={counts[state]}
              href={hrefTo('servers', {}, { q: `state:${state}` })}
            />
          ))}
        </div>
      </section>
      <h2>{t('worst')}</h2>
      {data.worst.length === 0 ? (
        <p class="muted">{t('all_well')}</p>
      ) : (
        <Table
          label={t('worst')}
          columns={serverColumns}
          rows={data.worst}
          keyOf={row => row.id}
          nameOf={row => row.name}
        />
      )}
    </>
  )
}
