// The alerts of a server in a range of time, and why each rule fires on it or does not.
import { matchPage } from '../../../address/site-map.ts'
import type { AlertsView, DecisionsView, ServerAlert } from '../../../views/server/alerts.ts'
import { serverTabWords } from '../../../words/server-tabs.ts'
import { fullTime, valueText } from '../../format.ts'
import { DecisionText } from '../../parts/decision.tsx'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { Time } from '../../parts/time.tsx'
import { shownEnds } from '../../parts/time-range/shown-range.ts'
import { TimeRangePicker } from '../../parts/time-range/time-range.tsx'
import { company, textsOf } from '../../session.ts'
import { useView, type ViewState } from '../../view.ts'
import type { TabProps } from './late-props.ts'

const t = textsOf(serverTabWords)

const nameOf = (alert: ServerAlert): string => alert.ruleName ?? t(`type_${alert.type}`)

/** The page of an alert, where there is one. */
const alertHref = (id: string): string | null =>
  matchPage(`/alerts/${id}`) === null ? null : `/c/${encodeURIComponent(company.slug)}/alerts/${id}`

function AlertRow({ alert }: { readonly alert: ServerAlert }) {
  const href = alertHref(alert.id)
  const value = [alert.lastValue, alert.threshold]
    .filter(each => each !== null)
    .map(each => valueText(alert.unit, each))
    .join(' / ')
  return (
    <tr>
      <td>
        <StateMark state={alert.severity} isOutlined={alert.acknowledgedBy !== null} />
      </td>
      <th scope="row">
        {href === null ? <span class="text">{nameOf(alert)}</span> : <a href={href}>{nameOf(alert)}</a>}
      </th>
      <td data-title={t('series')} title={alert.seriesKey}>
        <span class="text">{alert.series}</span>
      </td>
      <td data-title={t('value')}>{value}</td>
      <td data-title={t('opened')}>
        <Time atMs={alert.openedAtMs} form="when" />
      </td>
      <td data-title={t('ended')}>
        {alert.resolvedAtMs === null ? t('still_open') : <Time atMs={alert.resolvedAtMs} form="when" />}
        {alert.acknowledgedBy === null ? null : (
          <span class="muted"> {t('acknowledged_by', { name: alert.acknowledgedBy })}</span>
        )}
      </td>
    </tr>
  )
}

function AlertsInRange({ view }: { readonly view: ViewState<AlertsView> }) {
  if (view.data === null)
    return view.fault === null ? <Skeleton lines={3} /> : <Fault fault={view.fault} onRetry={view.reload} />
  const { alerts, isTruncated } = view.data
  if (alerts.length === 0) return <p>{t('no_alerts')}</p>
  return (
    <>
      <div class="server-table">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{t('severity')}</th>
              <th scope="col">{t('what')}</th>
              <th scope="col">{t('series')}</th>
              <th scope="col">{t('value')}</th>
              <th scope="col">{t('opened')}</th>
              <th scope="col">{t('ended')}</th>
            </tr>
          </thead>
          <tbody>
            {alerts.map(alert => (
              <AlertRow alert={alert} key={alert.id} />
            ))}
          </tbody>
        </table>
      </div>
      {isTruncated ? <p class="muted">{t('last_rows', { count: alerts.length })}</p> : null}
    </>
  )
}

type DecisionRow = DecisionsView['rows'][number]

/** `isOfNow`: the server reports. What one that is lost said last is not what it is like now. */
type RowProps = { readonly row: DecisionRow; readonly isOfNow: boolean }

const DecisionState = ({ row: { state }, isOfNow }: RowProps) => {
  if (state === 'none') return <span class="muted">{t('rule_uncovered')}</span>
  if (state === 'ok' && !isOfNow) return <StateMark state="unknown" text={t('rule_not_of_now')} />
  const mark = state === 'firing' ? 'critical' : state === 'ok' ? 'ok' : 'unknown'
  return <StateMark state={mark} text={t(`rule_${state}`)} />
}

const DecisionCells = ({ row, isOfNow }: RowProps) => (
  <tr>
    <td>
      <DecisionState row={row} isOfNow={isOfNow} />
    </td>
    <th scope="row" class="text">
      {row.ruleName ?? row.ruleId}
    </th>
    <td data-title={t('series')} class="mono">
      {row.seriesKey}
    </td>
    <td
      class="decision"
      data-title={t('decision')}
      title={row.lastSampleAtMs === null ? undefined : fullTime(row.lastSampleAtMs)}
    >
      <DecisionText now={row} unit={row.unit} />
    </td>
  </tr>
)

function Decisions({ serverId, server }: Pick<TabProps, 'serverId' | 'server'>) {
  const view = useView<DecisionsView>('server-decisions', { server: serverId })
  if (view.data === null)
    return view.fault === null ? <Skeleton lines={3} /> : <Fault fault={view.fault} onRetry={view.reload} />
  const { rows, collector } = view.data
  if (collector !== 'ok') return <p>{t(collector === 'no_data' ? 'no_decisions' : 'decisions_silent')}</p>
  if (rows.length === 0) return <p>{t('no_decisions')}</p>
  return (
    <div class="server-table">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">{t('state')}</th>
            <th scope="col">{t('rule')}</th>
            <th scope="col">{t('series')}</th>
            <th scope="col">{t('decision')}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(row => (
            <DecisionCells
              row={row}
              isOfNow={server.connectivity === 'online'}
              key={`${row.ruleId} ${row.seriesKey}`}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}

export function AlertsTab({ serverId, server }: TabProps) {
  const { from, to } = shownEnds()
  const view = useView<AlertsView>('server-alerts', { server: serverId, from, to })
  return (
    <>
      <div class="toolbar">
        <TimeRangePicker />
      </div>
      <section aria-labelledby="alerts-in-range">
        <h2 id="alerts-in-range">{t('alerts_in_range')}</h2>
        <AlertsInRange view={view} />
      </section>
      {/* When it is known how long the list above is: it would be moved by it. */}
      {view.data === null && view.fault === null ? null : (
        <section aria-labelledby="decisions">
          <h2 id="decisions">{t('decisions')}</h2>
          <Decisions serverId={serverId} server={server} />
        </section>
      )}
    </>
  )
}
