// `1–15 of 2,000`, with a step back and a step on. Not there when everything fits.
import { el, setText, show } from './elements.ts'
import { count } from './format.ts'
import { t } from './page.ts'

export class Pager {
  readonly root: HTMLElement
  private readonly range = el('span', { class: 'muted' })
  private readonly previous = el('button', { type: 'button' }, t('previous'))
  private readonly next = el('button', { type: 'button' }, t('next'))
  private page = 1

  constructor(label: string, onPage: (page: number) => void) {
    this.root = el('nav', { class: 'pager', 'aria-label': label, hidden: true }, this.previous, this.range, this.next)
    this.previous.addEventListener('click', () => onPage(this.page - 1))
    this.next.addEventListener('click', () => onPage(this.page + 1))
  }

  update(page: number, pageSize: number, total: number): void {
    this.page = page
    show(this.root, total > pageSize)
    const from = (page - 1) * pageSize + 1
    const to = Math.min(page * pageSize, total)
    setText(this.range, t('range', { from: count(from), to: count(to), total: count(total) }))
    this.previous.disabled = page <= 1
    this.next.disabled = to >= total
  }
}
