// The live page: one stream of snapshots, and the address that says which part of the company is shown.
import { connectivities, type LiveSnapshot, type ServerState } from '../live-view.ts'
import { AlertsPanel } from './alerts-panel.ts'
import { el, setAttribute, setText, show } from './elements.ts'
import { LiveStream, type StreamState } from './live-stream.ts'
import { byId, companyId, t } from './page.ts'
import { type Choice, ServersPanel } from './servers-panel.ts'

const states: readonly string[] = [...connectivities, 'alerts']
const isState = (text: string | null): text is ServerState => text !== null && states.includes(text)

/** What the page's address asks for. */
function choiceOfAddress(): { choice: Choice; alertsPage: number } {
  const search = new URLSearchParams(location.search)
  const number = (name: string) => Math.max(1, Math.floor(Number(search.get(name)) || 1))
  const state = search.get('state')
  return {
    choice: { search: search.get('search') ?? '', state: isState(state) ? state : null, page: number('page') },
    alertsPage: number('alerts_page'),
  }
}

const start = choiceOfAddress()
let { choice, alertsPage } = start

const banner = el('p', { class: 'banner', role: 'status', hidden: true })
const servers = new ServersPanel(choice, next => {
  choice = next
  open()
})
const alerts = new AlertsPanel(page => {
  alertsPage = page
  open()
})
const connection = byId('connection')
const title = document.title

function showConnection(state: StreamState): void {
  setAttribute(connection, 'data-state', state)
  setText(connection, t(state))
}

function showPicture(snapshot: LiveSnapshot): void {
  const isMissing = snapshot.collector !== 'ok' && snapshot.counts.all > 0
  show(banner, isMissing)
  if (snapshot.collector === 'unavailable') setText(banner, t('collector_unavailable'))
  if (snapshot.collector === 'not_configured') setText(banner, t('collector_not_configured'))
  servers.update(snapshot)
  alerts.update(snapshot)
  document.title = snapshot.alertsTotal > 0 ? `(${snapshot.alertsTotal}) ${title}` : title
}

const stream = new LiveStream({
  snapshot: showPicture,
  series: series => servers.loadSeries(series),
  state: showConnection,
  ended: () => location.reload(),
})

/** The address of what is shown, for the stream and for the browser; what is as usual is left out. */
function addressSearch(): URLSearchParams {
  const search = new URLSearchParams()
  if (choice.search !== '') search.set('search', choice.search)
  if (choice.state !== null) search.set('state', choice.state)
  if (choice.page > 1) search.set('page', String(choice.page))
  if (alertsPage > 1) search.set('alerts_page', String(alertsPage))
  return search
}

function open(): void {
  const search = addressSearch()
  const own = new URLSearchParams(location.search).get('company')
  if (own !== null) search.set('company', own)
  const shown = search.toString()
  history.replaceState(null, '', `/${shown === '' ? '' : `?${shown}`}${location.hash}`)
  search.set('company', companyId)
  stream.open(`/web/live?${search}`)
}

const company = document.getElementById('company')
if (company instanceof HTMLSelectElement)
  company.addEventListener('change', () => location.assign(`/?company=${encodeURIComponent(company.value)}`))

byId('live').replaceChildren(banner, el('main', { class: 'columns' }, servers.root, alerts.root))
open()
