// The open alerts: what, where, since when, how bad; acknowledge and close for those who may.
import type { AlertPicture, LiveSnapshot } from '../live-view.ts'
import { post } from './api.ts'
import { el, KeyedList, setAttribute, setText, show } from './elements.ts'
import { ago, count, fullTime, sinceTime, valueText } from './format.ts'
import { mayManage, t } from './page.ts'
import { Pager } from './pager.ts'

/** How long a close waits for its confirmation. */
const CONFIRM_MS = 4_000

function titleOf(alert: AlertPicture): string {
  const name = alert.ruleName ?? alert.metric ?? alert.type
  switch (alert.type) {
    case 'agent_down':
      return t('agent_down')
    case 'group_down':
      return t('group_down', { count: count(alert.groupSize ?? 0) })
    case 'no_data':
      return t('no_data_of', { name })
    case 'threshold':
    case 'check':
      return name
  }
}

/** `97.3 %, threshold 90 %`; empty where an alert has no value, or its title says it. */
function readingOf({ type, metric, lastValue, threshold }: AlertPicture): string {
  if (lastValue === null || type === 'group_down') return ''
  if (type === 'agent_down') return t('silent_for', { seconds: count(lastValue) })
  const value = valueText(metric, lastValue)
  return threshold === null ? value : t('value_and_threshold', { value, threshold: valueText(metric, threshold) })
}

class AlertView {
  readonly root: HTMLElement
  private readonly severity = el('span', { class: 'severity' })
  private readonly title = el('strong', { class: 'alert-title' })
  private readonly server = el('span', { class: 'alert-server' })
  private readonly series = el('span', { class: 'muted series' })
  private readonly value = el('span', { class: 'alert-value' })
  private readonly since = el('time', { class: 'muted' })
  private readonly notes = el('span', { class: 'notes' })
  private readonly acknowledge = el('button', { type: 'button' }, t('acknowledge'))
  private readonly close = el('button', { type: 'button' }, t('close'))
  private readonly fault = el('p', { class: 'fault', role: 'alert', hidden: true })
  private isConfirming = false
  private isAcknowledged = false

  constructor(private readonly id: string) {
    const actions = mayManage ? el('div', { class: 'actions' }, this.acknowledge, this.close) : null
    this.root = el(
      'li',
      { class: 'alert', id: `alert-${id}` },
      el('div', { class: 'alert-head' }, this.severity, this.title),
      el('div', { class: 'alert-where' }, this.server, this.series),
      el('div', { class: 'alert-facts' }, this.value, this.since, this.notes),
      actions,
      this.fault,
    )
    this.acknowledge.addEventListener('click', () => void this.act('acknowledge'))
    this.close.addEventListener('click', () => this.confirmClose())
  }

  update(alert: AlertPicture, nowMs = Date.now()): void {
    const title = titleOf(alert)
    setAttribute(this.root, 'data-severity', alert.severity)
    setAttribute(this.root, 'data-state', this.isAcknowledged ? 'acknowledged' : alert.state)
    setText(this.severity, t(alert.severity))
    setText(this.title, title)
    setText(this.server, alert.serverName)
    const metric = alert.metric === title ? null : alert.metric
    setText(this.series, [metric, alert.series].filter(Boolean).join(' '))
    setText(this.value, readingOf(alert))
    setText(this.since, `${t('since', { time: sinceTime(alert.openedAtMs, nowMs) })} (${ago(alert.openedAtMs, nowMs)})`)
    setAttribute(this.since, 'datetime', new Date(alert.openedAtMs).toISOString())
    setAttribute(this.since, 'title', fullTime(alert.openedAtMs))
    const by = alert.acknowledgedBy
    const notes = [
      alert.state === 'acknowledged' ? (by === null ? t('acknowledged') : t('acknowledged_by', { name: by })) : '',
      alert.isSuppressed ? t('suppressed') : '',
      alert.isFlapping ? t('flapping') : '',
    ]
    setText(this.notes, notes.filter(Boolean).join(' · '))
    show(this.acknowledge, alert.state === 'open' && !this.isAcknowledged)
    const of = { what: title, server: alert.serverName }
    setAttribute(this.acknowledge, 'aria-label', t('acknowledge_of', of))
    setAttribute(this.close, 'aria-label', this.isConfirming ? t('close_confirm') : t('close_of', of))
  }

  /** Closing cannot be undone, and a live list moves under the finger: it takes a second press. */
  private confirmClose(): void {
    if (this.isConfirming) return void this.act('close')
    this.setConfirming(true)
    window.setTimeout(() => this.setConfirming(false), CONFIRM_MS)
  }

  private setConfirming(isConfirming: boolean): void {
    this.isConfirming = isConfirming
    setText(this.close, t(isConfirming ? 'close_confirm' : 'close'))
    this.close.classList.toggle('danger', isConfirming)
    if (isConfirming) setAttribute(this.close, 'aria-label', t('close_confirm'))
  }

  private async act(action: 'acknowledge' | 'close'): Promise<void> {
    for (const button of [this.acknowledge, this.close]) button.disabled = true
    const result = await post(`/monitoring/alerts/${this.id}/${action}`)
    for (const button of [this.acknowledge, this.close]) button.disabled = false
    this.setConfirming(false)
    show(this.fault, !result.ok)
    if (!result.ok) return setText(this.fault, t('act_failed', { message: result.message }))
    // The next snapshot brings what has become of it; until then the page shows what was done.
    if (action === 'close') return show(this.root, false)
    this.isAcknowledged = true
    show(this.acknowledge, false)
    setAttribute(this.root, 'data-state', 'acknowledged')
  }
}

export class AlertsPanel {
  readonly root: HTMLElement
  private readonly total = el('span', { class: 'count' })
  private readonly list = el('ul', { class: 'alerts' })
  private readonly none = el('p', { class: 'muted calm' }, t('no_alerts'))
  private readonly pager: Pager
  private readonly views: KeyedList<AlertPicture>
  private nowMs = Date.now()

  constructor(onPage: (page: number) => void) {
    this.pager = new Pager(t('alerts'), onPage)
    this.views = new KeyedList(this.list, ({ id }) => {
      const view = new AlertView(id)
      return { root: view.root, update: alert => view.update(alert, this.nowMs) }
    })
    this.root = el(
      'section',
      { class: 'panel alerts-panel', 'aria-labelledby': 'alerts-title' },
      el('h2', { id: 'alerts-title' }, t('alerts'), ' ', this.total),
      this.none,
      this.list,
      this.pager.root,
    )
  }

  update(snapshot: LiveSnapshot): void {
    this.nowMs = snapshot.nowMs
    setText(this.total, count(snapshot.alertsTotal))
    setAttribute(this.total, 'data-worst', worstOf(snapshot))
    show(this.none, snapshot.alertsTotal === 0)
    show(this.list, snapshot.alertsTotal > 0)
    this.views.update(snapshot.alerts)
    this.pager.update(snapshot.alertsPage, snapshot.alertsPageSize, snapshot.alertsTotal)
    if (location.hash.startsWith('#alert-')) this.markLinked(location.hash.slice(1))
  }

  /** The alert that a notification linked to. */
  private markLinked(id: string): void {
    const row = document.getElementById(id)
    if (row === null || row.classList.contains('linked')) return
    row.classList.add('linked')
    row.scrollIntoView({ block: 'center' })
  }
}

const worstOf = ({ severities }: LiveSnapshot): string | null =>
  (['critical', 'warning', 'info'] as const).find(severity => severities[severity] > 0) ?? null
