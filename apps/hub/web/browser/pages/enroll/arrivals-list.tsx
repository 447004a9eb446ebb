// Steps 3 and 4: the command with the key, and who has come by it so far.
import { useState } from 'preact/hooks'
import type { Arrival, ArrivalsView } from '../../../views/arrivals.ts'
import { enrollWords } from '../../../words/enroll.ts'
import { hrefTo } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { count, NOTHING } from '../../format.ts'
import { CopyText } from '../../parts/copy-text.tsx'
import { ActFault } from '../../parts/fault.tsx'
import { SelectField } from '../../parts/field.tsx'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'
import { agentUrl, may, textsOf } from '../../session.ts'
import { commandFor, type System, systems } from './commands.ts'

const t = textsOf(enrollWords)

const marks: Readonly<Record<Arrival['state'], MarkedState>> = {
  refused: 'critical',
  waiting: 'unknown',
  enrolled: 'info',
  reporting: 'ok',
}

const whyOf = ({ reason, isDraft }: Arrival): string =>
  reason !== null ? t(`why_${reason}`) : isDraft ? t('draft') : NOTHING

const ServerName = ({ row: { name, serverId } }: { readonly row: Arrival }) =>
  serverId === null ? <span class="text">{name}</span> : <a href={hrefTo('server', { server: serverId })}>{name}</a>

const columns: readonly Column<Arrival>[] = [
  { key: 'state', title: t('state'), cell: row => <StateMark state={marks[row.state]} text={t(row.state)} /> },
  { key: 'server', title: t('server'), isName: true, cell: row => <ServerName row={row} /> },
  { key: 'when', title: t('when'), cell: row => (row.atMs === null ? NOTHING : <Time atMs={row.atMs} />) },
  { key: 'why', title: t('why'), cell: row => whyOf(row) },
]

/** The key is in memory only: after a reload it is gone, and a new one is made. */
/** Only agents of the same host reach it. */
const isLoopbackUrl = /^https?:\/\/(localhost|127\.|\[::1\])/.test(agentUrl)

export function Command({
  token,
  onNewKey,
}: {
  readonly token: string | null
  readonly onNewKey: () => Promise<ApiFault | null>
}) {
  const [system, setSystem] = useState<System>('linux')
  const [fault, setFault] = useState<ApiFault | null>(null)
  return (
    <section class="panel" aria-label={t('command')}>
      <h2>{t('command')}</h2>
      {token === null ? (
        <>
          <p>{t('once_gone')}</p>
          {may('monitoring.manage') ? (
            <button type="button" onClick={() => void onNewKey().then(setFault)}>
              {t('new_key')}
            </button>
          ) : null}
          <ActFault fault={fault} />
        </>
      ) : (
        <>
          <SelectField
            label={t('system')}
            value={system}
            choices={systems.map(value => ({ value, text: t(value) }))}
            onChange={value => setSystem(systems.find(each => each === value) ?? 'linux')}
          />
          {isLoopbackUrl ? <p class="banner">{t('only_here')}</p> : null}
          <CopyText text={commandFor(system, agentUrl, token)} />
          <p class="muted">{t('executable')}</p>
          <p class="muted">{t('once')}</p>
        </>
      )}
    </section>
  )
}

function Drafts({ drafts, reload }: { readonly drafts: readonly string[]; readonly reload: () => void }) {
  const [fault, setFault] = useState<ApiFault | null>(null)
  const [isBusy, setBusy] = useState(false)
  if (drafts.length === 0) return null
  const approveAll = async (): Promise<void> => {
    setBusy(true)
    for (const id of drafts) {
      const result = await send('POST', `/servers/${id}/approve`)
      if (result.ok) continue
      setFault(result.fault)
      break
    }
    setBusy(false)
    reload()
  }
  return (
    <div class="toolbar">
      <span>{t('drafts', { count: drafts.length })}</span>
      {may('servers.manage') ? (
        <button type="button" disabled={isBusy} onClick={() => void approveAll()}>
          {t('approve')}
        </button>
      ) : null}
      <ActFault fault={fault} />
    </div>
  )
}

/** Each reason once, with how many it concerns and what helps. */
function Remedies({ rows }: { readonly rows: readonly Arrival[] }) {
  const reasons = Map.groupBy(
    rows.filter(row => row.reason !== null),
    row => row.reason,
  )
  if (reasons.size === 0) return null
  return (
    <section class="panel" aria-label={t('remedies')}>
      <h3>{t('remedies')}</h3>
      <dl class="remedies">
        {[...reasons].map(([reason, refused]) =>
          reason === null ? null : (
            <div key={reason}>
              <dt>
                <StateMark state="critical" text={`${t(`why_${reason}`)} (${count(refused.length)})`} />
              </dt>
              <dd>{t(`refused_${reason}`)}</dd>
            </div>
          ),
        )}
      </dl>
    </section>
  )
}

export function ArrivalsList({ view, reload }: { readonly view: ArrivalsView; readonly reload: () => void }) {
  const { license, counts, rows } = view
  return (
    <section aria-label={t('arrivals')}>
      <div class="page-head">
        <h2>{t('arrivals')}</h2>
        {license === null ? null : (
          <span class="muted">
            {t('of_licence', { name: license.name, hint: license.hint, used: license.usedCount, max: license.maxUses })}
          </span>
        )}
        {license === null || license.serverName === null ? null : (
          <span class="text">{t('of_server', { name: license.serverName })}</span>
        )}
      </div>
      <ul class="plain tiles" aria-live="polite">
        {(['waiting', 'enrolled', 'reporting', 'refused'] as const).map(state => (
          <li class="tile" key={state}>
            <span class="tile-number">{count(counts[state])}</span>
            <StateMark state={marks[state]} text={t(state)} />
          </li>
        ))}
      </ul>
      <Remedies rows={rows} />
      <Drafts drafts={view.drafts} reload={reload} />
      {rows.length === 0 ? (
        <p class="muted">{t('nobody_yet')}</p>
      ) : (
        <Table
          isEager
          label={t('arrivals')}
          columns={columns}
          rows={rows}
          keyOf={row => row.key}
          nameOf={row => row.name}
        />
      )}
      <p>
        <a href={hrefTo('add_servers')}>{t('more')}</a>{' '}
        {license === null ? null : <a href={hrefTo('licenses', {}, { q: license.hint })}>{t('change_licence')}</a>}
      </p>
    </section>
  )
}
