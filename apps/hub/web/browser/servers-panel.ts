// The servers: how many in which state (and at the same time the choice of what is shown), search, cards, pages.
import type { LiveSnapshot, ServerPicture, ServerSeries, ServerState } from '../live-view.ts'
import { AddServer } from './add-server.ts'
import { el, KeyedList, setAttribute, setText, show } from './elements.ts'
import { count } from './format.ts'
import { t } from './page.ts'
import { Pager } from './pager.ts'
import { ServerCard } from './server-card.ts'

export type Choice = { readonly search: string; readonly state: ServerState | null; readonly page: number }

const SEARCH_WAIT_MS = 400

const tiles = [
  { state: null, text: 'all', counter: 'all' },
  { state: 'online', text: 'online', counter: 'online' },
  { state: 'down', text: 'down', counter: 'down' },
  { state: 'unknown', text: 'unknown', counter: 'unknown' },
  { state: 'alerts', text: 'with_alerts', counter: 'alerts' },
] as const

export class ServersPanel {
  readonly root: HTMLElement
  private readonly cards = new Map<string, ServerCard>()
  private readonly grid = el('div', { class: 'cards' })
  private readonly views: KeyedList<ServerPicture>
  private readonly search: HTMLInputElement
  private readonly buttons = tiles.map(tile => {
    const number = el('span', { class: 'tile-number' }, '–')
    const root = el(
      'button',
      { type: 'button', class: `tile tile-${tile.counter}` },
      number,
      el('span', {}, t(tile.text)),
    )
    return { ...tile, number, root }
  })
  private readonly none = el('div', { class: 'none-match', hidden: true })
  private readonly adding = new AddServer()
  private readonly controls: HTMLElement
  private readonly pager: Pager
  private searchTimer = 0
  private snapshot: LiveSnapshot | null = null

  constructor(
    private choice: Choice,
    private readonly onChoice: (choice: Choice) => void,
  ) {
    this.search = el('input', {
      type: 'search',
      'aria-label': t('search'),
      placeholder: t('search'),
      title: t('search_title'),
      maxlength: '255',
    })
    this.search.value = choice.search
    this.pager = new Pager(t('servers'), page => {
      this.choose({ page })
      this.root.scrollIntoView({ block: 'start' })
    })
    this.views = new KeyedList(this.grid, server => this.makeCard(server))
    const showAll = el('button', { type: 'button' }, t('show_all'))
    this.none.append(el('p', {}, t('none_match')), showAll)
    this.controls = el(
      'div',
      { class: 'controls' },
      el('div', { class: 'tiles', role: 'group', 'aria-label': t('servers') }, ...this.buttons.map(item => item.root)),
      this.search,
      this.adding.button,
    )
    this.root = el(
      'section',
      { class: 'servers', id: 'servers', tabindex: '-1', 'aria-labelledby': 'servers-title' },
      el('h2', { id: 'servers-title', class: 'visually-hidden' }, t('servers')),
      this.controls,
      this.adding.root,
      this.none,
      this.grid,
      this.pager.root,
    )
    this.listen(showAll)
    this.showChoice()
  }

  private listen(showAll: HTMLButtonElement): void {
    for (const { root, state } of this.buttons) root.addEventListener('click', () => this.choose({ state, page: 1 }))
    this.search.addEventListener('input', () => {
      window.clearTimeout(this.searchTimer)
      this.searchTimer = window.setTimeout(
        () => this.choose({ search: this.search.value.trim(), page: 1 }),
        SEARCH_WAIT_MS,
      )
    })
    showAll.addEventListener('click', () => {
      this.search.value = ''
      this.choose({ search: '', state: null, page: 1 })
      this.search.focus()
    })
    const resize = new ResizeObserver(() => {
      for (const card of this.cards.values()) card.chart.resize()
    })
    resize.observe(this.grid)
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      for (const card of this.cards.values()) card.chart.recolor()
    })
  }

  private makeCard(server: ServerPicture) {
    const card = new ServerCard()
    this.cards.set(server.id, card)
    return {
      root: card.root,
      update: (item: ServerPicture) => {
        if (this.snapshot) card.update(item, this.snapshot.nowMs, this.snapshot.collector)
      },
      remove: () => {
        card.chart.remove()
        this.cards.delete(server.id)
      },
    }
  }

  private choose(change: Partial<Choice>): void {
    const next = { ...this.choice, ...change }
    if (JSON.stringify(next) === JSON.stringify(this.choice)) return
    this.choice = next
    this.showChoice()
    this.onChoice(next)
  }

  private showChoice(): void {
    for (const { root, state } of this.buttons) setAttribute(root, 'aria-pressed', String(state === this.choice.state))
  }

  update(snapshot: LiveSnapshot): void {
    this.snapshot = snapshot
    for (const { number, root, counter } of this.buttons) {
      setText(number, count(snapshot.counts[counter]))
      setAttribute(root, 'data-some', String(snapshot.counts[counter] > 0))
    }
    const isEmpty = snapshot.counts.all === 0
    this.adding.update(isEmpty)
    show(this.controls, !isEmpty)
    show(this.none, !isEmpty && snapshot.matching === 0)
    this.views.update(snapshot.servers)
    this.pager.update(snapshot.page, snapshot.pageSize, snapshot.matching)
  }

  loadSeries(series: ServerSeries): void {
    this.cards.get(series.serverId)?.loadSeries(series)
  }
}
