// The head of a server's page: its state, when it was seen, what is open or silent, and what one may do with it.

import type { ServerHead } from '../../../views/server/head.ts'
import { serverWords } from '../../../words/server.ts'
import { serversWords } from '../../../words/servers.ts'
import { shellWords } from '../../../words/shell.ts'
import { setParams } from '../../address/router.ts'
import { dayAndClock, duration, fullTime } from '../../format.ts'
import { NoticeLine } from '../../parts/notice-line.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { Time } from '../../parts/time.tsx'
import { textsOf } from '../../session.ts'
import { ServerActs } from './server-acts.tsx'

const t = textsOf(serverWords)
const field = textsOf(serversWords)
const common = textsOf(shellWords)

function Facts({ server }: { readonly server: ServerHead }) {
  const facts = [
    [field('address'), server.ipAddress],
    [field('hostname'), server.hostname === server.name ? null : server.hostname],
    [field('environment'), server.environment],
    [field('role'), server.role],
    [field('datacenter'), server.datacenter],
  ] as const
  return (
    <dl class="server-facts">
      {facts.map(([name, value]) =>
        value === null || value === '' ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="text">{value}</dd>
          </div>
        ),
      )}
      {server.tags.length === 0 ? null : (
        <div>
          <dt>{field('tags')}</dt>
          <dd class="server-tags">
            {server.tags.map(tag => (
              <span class="chip text" key={tag}>
                {tag}
              </span>
            ))}
          </dd>
        </div>
      )}
    </dl>
  )
}

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? null))

/** Whoever changes it by hand is to know that a manifest says otherwise. */
function Manifest({ drift }: Pick<ServerHead, 'drift'>) {
  if (drift === null) return null
  if (drift.length === 0) return <p class="muted">{t('manifest')}</p>
  const fields = drift.map(({ field, actual, intended }) =>
    t('drifted_field', { field, actual: shown(actual), intended: shown(intended) }),
  )
  return <p class="banner text">{t('drifted', { fields: fields.join(', ') })}</p>
}

export function ServerHeadPart({ server, onChanged }: { readonly server: ServerHead; readonly onChanged: () => void }) {
  const { status, silence } = server
  return (
    <header class="server-head">
      <div class="server-title">
        <h1 class="text">{server.name}</h1>
        {server.isDeleted ? (
          <StateMark state="decommissioned" text={t('deleted')} />
        ) : (
          <StateMark state={server.connectivity} />
        )}
        {status === 'active' ? null : <StateMark state={status} />}
        {silence === null ? null : (
          <span title={[fullTime(silence.untilMs), silence.reason].filter(part => part !== null).join('\n')}>
            <StateMark state="silenced" text={t('silenced_until', { time: dayAndClock(silence.untilMs) })} />
          </span>
        )}
        <NoticeLine onUndone={onChanged} />
      </div>
      {server.isDeleted ? <p class="banner">{t('deleted_text')}</p> : null}
      <Manifest drift={server.drift} />
      {server.collector === 'unavailable' || server.collector === 'not_configured' ? (
        <p class="banner" role="status">
          {common(`collector_${server.collector}`)}
        </p>
      ) : null}
      <p class="server-now">
        <span>
          {t('seen')} {server.lastSeenAtMs === null ? common('never') : <Time atMs={server.lastSeenAtMs} />}
        </span>
        {server.uptimeSeconds === null ? null : (
          <span>
            {t('uptime')} {duration(server.uptimeSeconds * 1000)}
          </span>
        )}
        {server.openAlerts === 0 ? (
          <span class="muted">{t('no_open_alerts')}</span>
        ) : (
          <button type="button" class="quiet server-open" onClick={() => setParams({ tab: 'alerts' })}>
            {t('open_alerts', { count: server.openAlerts })}
          </button>
        )}
      </p>
      <Facts server={server} />
      {server.notes === null || server.notes === '' ? null : (
        <details class="server-notes">
          <summary>{t('notes')}</summary>
          <p class="text">{server.notes}</p>
        </details>
      )}
      <ServerActs server={server} onChanged={onChanged} />
    </header>
  )
}
