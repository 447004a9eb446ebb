// The company at a glance; every number leads to the list that it counts. Who has only begun sees the first server live
// and the next step.
import type { OverviewView } from '../../../views/overview.ts'
import { overviewWords } from '../../../words/overview.ts'
import { hrefTo } from '../../address/router.ts'
import { count } from '../../format.ts'
import { CollectorBanner } from '../../parts/collector-banner.tsx'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { Table } from '../../parts/table.tsx'
import { textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { alertColumns } from '../alerts/alert-columns.tsx'
import { titleOf } from '../alerts/alert-face.tsx'
import { serverColumns } from '../servers/server-columns.tsx'
import { AlertDays } from './alert-days.tsx'
import { ChildCompanies } from './child-companies.tsx'
import { FirstSteps } from './first-steps.tsx'
import './overview.css'
import { Soon } from './needs-somebody-soon.tsx'

const t = textsOf(overviewWords)

type TileProps = { readonly state: MarkedState; readonly number: number; readonly href: string }

/** A number that nobody needs to look at is quiet. */
const Tile = ({ state, number, href }: TileProps) => (
  <a class={number === 0 ? 'tile calm' : 'tile'} href={href}>
    <span class="tile-number">{count(number)}</span>
    <StateMark state={state} />
  </a>
)

const Servers = ({ counts }: OverviewView) => (
  <section aria-labelledby="overview-servers">
    <h2 id="overview-servers">{t('servers')}</h2>
    <div class="tiles">
      {(['online', 'down', 'unknown', 'maintenance'] as const).map(state => (
        <Tile key={state} state={state} number={counts[state]} href={hrefTo('servers', {}, { q: `state:${state}` })} />
      ))}
    </div>
  </section>
)

const Alerts = ({ unacknowledged, acknowledged, suppressed }: OverviewView) => (
  <section aria-labelledby="overview-alerts">
    <h2 id="overview-alerts">{t('alerts')}</h2>
    <div class="tiles">
      {(['critical', 'warning', 'info'] as const).map(severity => (
        <Tile
          key={severity}
          state={severity}
          number={unacknowledged[severity]}
          href={hrefTo('alerts', {}, { q: `severity:${severity} state:open` })}
        />
      ))}
    </div>
    <p class="muted">{t('also', { acknowledged, suppressed })}</p>
  </section>
)

const Incidents = ({ incidents }: OverviewView) =>
  incidents.length === 0 ? null : (
    <section>
      <h2>{t('incidents')}</h2>
      <Table
        isTall
        label={t('incidents')}
        columns={alertColumns}
        rows={incidents}
        keyOf={alert => alert.id}
        nameOf={titleOf}
      />
    </section>
  )

const Worst = ({ worst }: OverviewView) => (
  <section>
    <h2>{t('worst')}</h2>
    {worst.length === 0 ? (
      <p class="muted">{t('all_well')}</p>
    ) : (
      <Table label={t('worst')} columns={serverColumns} rows={worst} keyOf={row => row.id} nameOf={row => row.name} />
    )}
  </section>
)

export function OverviewPage() {
  const { data, fault, reload } = usePageView<OverviewView>('overview')
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  return (
    <div class="overview">
      <div class="page-head">
        <h1>{t('title')}</h1>
      </div>
      <CollectorBanner state={data.collector} />
      <FirstSteps data={data} />
      <div class="overview-columns">
        <Servers {...data} />
        <Alerts {...data} />
      </div>
      <Incidents {...data} />
      <Worst {...data} />
      <div class="overview-columns">
        <AlertDays days={data.standing.days} />
        <Soon standing={data.standing} />
      </div>
      <ChildCompanies />
    </div>
  )
}
