// The servers as cards, a window of them at a time.
import type { ServerRow, ServersView } from '../../../views/servers.ts'
import { serversWords } from '../../../words/servers.ts'
import { count, decimal } from '../../format.ts'
import { Meter } from '../../parts/meter.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'
import { ServerName, stateOf } from './server-columns.tsx'
import './server-cards.css'

const t = textsOf(serversWords)
const WINDOW = 60

const Card = ({ server }: { readonly server: ServerRow }) => (
  <article class="card">
    <h2>
      <ServerName server={server} />
    </h2>
    <p class="card-state">
      <StateMark state={stateOf(server)} />
      {server.worst === null ? null : <StateMark state={server.worst} text={count(server.openAlerts)} />}
    </p>
    <dl>
      <div>
        <dt>{t('cpu')}</dt>
        <dd>
          <Meter value={server.values?.cpu ?? null} />
        </dd>
      </div>
      <div>
        <dt>{t('memory')}</dt>
        <dd>
          <Meter value={server.values?.memory ?? null} />
        </dd>
      </div>
      <div>
        <dt>{t('disk')}</dt>
        <dd>
          <Meter value={server.values?.disk ?? null} title={server.values?.mount ?? undefined} />
        </dd>
      </div>
      <div>
        <dt>{t('load')}</dt>
        <dd>{decimal(server.values?.load ?? null)}</dd>
      </div>
    </dl>
    <p class="muted">
      {t('seen')} {server.lastSeenAtMs === null ? t('never') : <Time atMs={server.lastSeenAtMs} />}
    </p>
  </article>
)

type Props = { readonly data: ServersView; readonly onOffset: (offset: number) => void }

export const ServerCards = ({ data, onOffset }: Props) => (
  <>
    <div class="cards">
      {data.rows.slice(0, WINDOW).map(server => (
        <Card server={server} key={server.id} />
      ))}
    </div>
    {data.matching > WINDOW ? (
      <p class="pager">
        <button type="button" disabled={data.offset === 0} onClick={() => onOffset(Math.max(0, data.offset - WINDOW))}>
          {t('previous')}
        </button>
        <span class="muted">
          {t('range', {
            from: data.offset + 1,
            to: Math.min(data.offset + WINDOW, data.matching),
            total: data.matching,
          })}
        </span>
        <button
          type="button"
          disabled={data.offset + WINDOW >= data.matching}
          onClick={() => onOffset(data.offset + WINDOW)}
        >
          {t('next')}
        </button>
      </p>
    ) : null}
  </>
)
