// One alert in one look: what is wrong in a sentence, why, who was told, what happened, and what can be done about it.
import { useState } from 'preact/hooks'
import type { AlertView } from '../../../views/alert.ts'
import type { AlertFace } from '../../../views/alerts.ts'
import { alertWords } from '../../../words/alert.ts'
import { alertsWords } from '../../../words/alerts.ts'
import { hrefTo } from '../../address/router.ts'
import { clockMs } from '../../connection/live.ts'
import { duration, valueText, whenText } from '../../format.ts'
import { pageTitle } from '../../frame/page-title.ts'
import { usePageKeys } from '../../keys.ts'
import { lateParts } from '../../late-parts.ts'
import { metricTitle } from '../../metric-title.ts'
import { Fault } from '../../parts/fault.tsx'
import { LateSilenceDialog } from '../../parts/late-dialog.tsx'
import { latePart } from '../../parts/late-part.tsx'
import { NoticeLine } from '../../parts/notice-line.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { Table } from '../../parts/table.tsx'
import { firstView, may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { type AlertAct, AlertActDialog } from '../alerts/alert-acts.tsx'
import { alertColumns } from '../alerts/alert-columns.tsx'
import { notesOf, titleOf } from '../alerts/alert-face.tsx'
import './alert.css'
import { AlertChart } from './alert-chart.tsx'
import { Deliveries, Timeline } from './alert-story.tsx'
import { Why } from './alert-why.tsx'

const t = textsOf({ ...alertsWords, ...alertWords })

/** Few alerts are incidents. */
const incidentMap = latePart(() => lateParts.incidentMap?.())

/** Beforehand, so that the map of the alert that the document brought is there in the first picture. */
export const firstMapIsThere = async (): Promise<void> => {
  const isIncident = firstView?.key.startsWith('alert?') && (firstView.value as AlertView).map !== null
  if (isIncident) await incidentMap.isThere()
}

function sentenceOf(alert: AlertFace): string {
  const { type, metric, unit, series, serverName, lastValue, threshold } = alert
  if (type === 'agent_down') return t('sentence_down', { server: serverName })
  if (lastValue === null || threshold === null || metric === null)
    return t('sentence_other', { what: titleOf(alert), server: serverName })
  const what = [metricTitle(metric), series.replace(/(^| )\w+=/g, '$1')].filter(part => part !== '').join(' ')
  const value = valueText(unit, lastValue)
  return t('sentence_threshold', { what, server: serverName, value, threshold: valueText(unit, threshold) })
}

function lengthOf({ openedAtMs, endedAtMs }: AlertFace, nowMs: number): string {
  const from = whenText(openedAtMs, nowMs)
  if (endedAtMs === null) return t('lasts', { time: from, duration: duration(nowMs - openedAtMs) })
  return t('lasted', { from, to: whenText(endedAtMs, nowMs), duration: duration(endedAtMs - openedAtMs) })
}

const Others = ({ title, alerts }: { readonly title: string; readonly alerts: readonly AlertFace[] }) => (
  <section class="panel">
    <h2>{title}</h2>
    {alerts.length === 0 ? (
      <p class="muted">{t('nothing')}</p>
    ) : (
      <Table isTall label={title} columns={alertColumns} rows={alerts} keyOf={each => each.id} nameOf={titleOf} />
    )}
  </section>
)

function Acts({ data, onAsk }: { readonly data: AlertView; readonly onAsk: (act: AlertAct | 'silence') => void }) {
  const { alert } = data
  if (!may('monitoring.manage')) return null
  const isActive = alert.state === 'open' || alert.state === 'acknowledged'
  return (
    <div class="toolbar">
      {alert.state === 'open' ? (
        <button type="button" class="primary" title="a" onClick={() => onAsk('acknowledge')}>
          {t('acknowledge')}
        </button>
      ) : null}
      <button type="button" title="m" onClick={() => onAsk('silence')}>
        {t('silence')}
      </button>
      <button type="button" title="n" onClick={() => onAsk('comment')}>
        {t('comment')}
      </button>
      {isActive ? (
        <button type="button" title="Shift E" onClick={() => onAsk('close')}>
          {t('close')}
        </button>
      ) : null}
    </div>
  )
}

export function AlertPage() {
  const { data, fault, reload } = usePageView<AlertView>('alert')
  const [asked, setAsked] = useState<AlertAct | 'silence' | null>(null)
  const ask = (act: AlertAct | 'silence'): void => {
    if (may('monitoring.manage')) setAsked(act)
  }
  usePageKeys({ a: () => ask('acknowledge'), m: () => ask('silence'), n: () => ask('comment'), E: () => ask('close') })
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const { alert } = data
  pageTitle.value = titleOf(alert)
  const close = (): void => setAsked(null)
  return (
    <>
      <div class="page-head">
        <h1 class="text">{titleOf(alert)}</h1>
        <StateMark state={alert.severity} isOutlined={alert.state !== 'open'} />
        <span class="muted">{notesOf(alert)}</span>
        <NoticeLine onUndone={reload} />
      </div>
      <p class="alert-sentence text">
        {sentenceOf(alert)} {lengthOf(alert, clockMs.value)}
      </p>
      {data.groupId === null ? null : (
        <p>
          <a href={hrefTo('alert', { alert: data.groupId })}>{t('part_of')}</a>
        </p>
      )}
      <Acts data={data} onAsk={ask} />
      {alert.metric === null || !may('servers.view') ? null : <AlertChart data={data} metric={alert.metric} />}
      <div class="alert-panels">
        <Why data={data} />
        <Deliveries data={data} />
        <Timeline data={data} />
      </div>
      {data.map === null || !may('servers.view') ? null : <incidentMap.LatePart data={data.map} />}
      {data.members.length > 0 ? <Others title={t('members')} alerts={data.members} /> : null}
      <Others title={t('around')} alerts={data.around} />
      <Others title={t('before')} alerts={data.before} />
      {asked === 'silence' ? (
        <LateSilenceDialog
          start={{
            serverIds: [alert.serverId],
            rules: alert.ruleId === null || alert.ruleName === null ? [] : [{ id: alert.ruleId, name: alert.ruleName }],
            hours: 4,
          }}
          onClose={close}
          onDone={reload}
        />
      ) : asked === null ? null : (
        <AlertActDialog
          act={asked}
          target={{ ids: [alert.id], names: [`${titleOf(alert)} · ${alert.serverName}`] }}
          onClose={close}
          onDone={reload}
        />
      )}
    </>
  )
}
