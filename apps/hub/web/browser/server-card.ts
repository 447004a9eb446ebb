// One server: its state, its newest values, its sparkline.
import { type CollectorState, chartMinutes, type ServerPicture, type ServerSeries } from '../live-view.ts'
import { Chart } from './chart.ts'
import { el, setAttribute, setText, show } from './elements.ts'
import { ago, count, fullTime, load, percent } from './format.ts'
import { t } from './page.ts'

const [HIGH, FULL] = [80, 90]
const levelOf = (value: number | null): string | null =>
  value === null ? null : value >= FULL ? 'full' : value >= HIGH ? 'high' : 'fine'

/** A named value; one in percent has a bar. */
class Gauge {
  readonly root: HTMLElement
  private readonly number = el('span', { class: 'number' })
  private readonly bar = el('progress', { max: '100', 'aria-hidden': 'true' })

  constructor(name: string, key: string, hasBar: boolean, title: string | null = null) {
    this.root = el(
      'div',
      { class: `gauge gauge-${key}`, title },
      el('span', { class: 'muted name' }, name),
      this.number,
      hasBar ? this.bar : null,
    )
  }

  update(value: number | null, text: string): void {
    setText(this.number, text)
    setAttribute(this.root, 'data-level', levelOf(value))
    this.bar.value = Math.min(100, Math.max(0, value ?? 0))
  }
}

export class ServerCard {
  readonly root: HTMLElement
  private readonly name = el('h3')
  private readonly hostname = el('span', { class: 'hostname' })
  private readonly state = el('span', { class: 'state' })
  private readonly status = el('span', { class: 'tag', hidden: true })
  private readonly alerts = el('span', { class: 'tag tag-alerts', hidden: true })
  private readonly seen = el('time', { class: 'muted' })
  private readonly cpu = new Gauge(t('cpu'), 'cpu', true)
  private readonly memory = new Gauge(t('memory'), 'memory', true)
  private readonly disk = new Gauge(t('disk'), 'disk', true)
  private readonly load = new Gauge(t('load'), 'load', false, t('load_title'))
  private readonly place = el('div', { class: 'plot' })
  private readonly readout = el('p', { class: 'readout', 'aria-hidden': 'true' })
  private readonly missing = el('p', { class: 'muted chart-missing', hidden: true })
  private readonly figure = el('div', { class: 'chart', role: 'img' }, this.place, this.missing, this.readout)
  readonly chart = new Chart(this.place, this.readout)

  constructor() {
    this.root = el(
      'article',
      { class: 'card' },
      el('header', {}, this.name, el('div', { class: 'tags' }, this.alerts, this.status, this.state)),
      el('p', { class: 'muted where' }, this.hostname, this.seen),
      el('div', { class: 'gauges' }, this.cpu.root, this.memory.root, this.disk.root, this.load.root),
      this.figure,
    )
  }

  update(server: ServerPicture, nowMs: number, collector: CollectorState): void {
    const { latest, lastSeenAtMs } = server
    setText(this.name, server.name)
    setText(this.hostname, server.hostname ?? '')
    setAttribute(this.root, 'data-state', server.connectivity)
    setText(this.state, t(server.connectivity))
    show(this.status, server.status !== 'active')
    if (server.status !== 'active') setText(this.status, t(server.status))
    show(this.alerts, server.openAlerts > 0)
    const key = server.openAlerts === 1 ? 'open_alerts_one' : 'open_alerts_many'
    setText(this.alerts, t(key, { count: count(server.openAlerts) }))
    setText(this.seen, lastSeenAtMs === null ? t('never_seen') : t('seen', { time: ago(lastSeenAtMs, nowMs) }))
    setAttribute(this.seen, 'title', lastSeenAtMs === null ? null : fullTime(lastSeenAtMs))
    this.cpu.update(latest?.cpu ?? null, percent(latest?.cpu ?? null))
    this.memory.update(latest?.memory ?? null, percent(latest?.memory ?? null))
    this.disk.update(latest?.disk ?? null, percent(latest?.disk ?? null))
    this.load.update(null, load(latest?.load1 ?? null))
    setAttribute(this.figure, 'aria-label', t('chart_label', { name: server.name, minutes: chartMinutes }))
    this.chart.advance(nowMs, latest)
    this.showMissing(collector)
  }

  loadSeries(series: ServerSeries): void {
    this.chart.load(series)
    this.showMissing('ok')
  }

  /** What stands in place of a sparkline that is not there. */
  private showMissing(collector: CollectorState): void {
    const { isLoaded, isEmpty } = this.chart
    show(this.missing, isLoaded ? isEmpty : collector !== 'ok')
    setText(this.missing, isLoaded ? t('chart_empty', { minutes: chartMinutes }) : t('chart_missing'))
  }
}
