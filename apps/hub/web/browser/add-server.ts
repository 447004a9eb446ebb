// Adding a server: its record, a licence that belongs to it, and the command that starts its agent. Open by itself when
// there is no server yet.
import { post, textOf } from './api.ts'
import { el, setText, show } from './elements.ts'
import { agentUrl, mayAdd, t } from './page.ts'

const commandWith = (license: string): string =>
  `SVC_COLLECTOR_URL=${agentUrl} \\\nSVC_LICENSE=${license} \\\n  bun apps/agent/main.ts run --state-dir ./agent-data`

export class AddServer {
  readonly root: HTMLElement
  readonly button = el('button', { type: 'button', class: 'add', 'aria-expanded': 'false' }, t('add_server'))
  private readonly title = el('h3')
  private readonly name = el('input', { id: 'add-name', required: true, maxlength: '255', autocomplete: 'off' })
  private readonly submit = el('button', { type: 'submit', class: 'primary' }, t('add_submit'))
  private readonly fault = el('p', { class: 'fault', role: 'alert', hidden: true })
  private readonly lead = el('p')
  private readonly command = el('code')
  private readonly result: HTMLElement
  private readonly done = el('button', { type: 'button' })
  private isEmpty = false
  private isOpen = false

  constructor() {
    const form = el(
      'form',
      { class: 'add-form' },
      el('label', { for: 'add-name' }, t('add_name')),
      el('div', {}, this.name, this.submit),
    )
    this.result = el(
      'div',
      { class: 'add-result', role: 'status', hidden: true },
      this.lead,
      el('pre', { tabindex: '0' }, this.command),
      el('p', { class: 'muted' }, t('add_after')),
    )
    this.root = el(
      'div',
      { class: 'empty', hidden: true },
      this.title,
      el('p', {}, t(mayAdd ? 'add_text' : 'add_ask')),
      mayAdd ? form : null,
      this.fault,
      this.result,
      this.done,
    )
    form.addEventListener('submit', event => {
      event.preventDefault()
      void this.add(this.name.value.trim())
    })
    this.button.addEventListener('click', () => this.open(!this.isOpen))
    this.done.addEventListener('click', () => this.open(false))
    this.render()
  }

  /** Whether the company has no server at all. */
  update(isEmpty: boolean): void {
    if (this.isEmpty === isEmpty) return
    this.isEmpty = isEmpty
    this.render()
  }

  private open(isOpen: boolean): void {
    this.isOpen = isOpen
    if (!isOpen) show(this.result, false)
    this.render()
    if (isOpen) this.name.focus()
  }

  private render(): void {
    setText(this.title, t(this.isEmpty ? 'empty_title' : 'add_server'))
    show(this.root, this.isEmpty || this.isOpen)
    show(this.done, !this.isEmpty)
    setText(this.done, t(this.result.hidden ? 'add_cancel' : 'add_close'))
    show(this.button, mayAdd)
    this.button.setAttribute('aria-expanded', String(this.isOpen))
  }

  private async add(name: string): Promise<void> {
    if (name === '') return
    this.submit.disabled = true
    const fault = await this.addAndLicense(name)
    this.submit.disabled = false
    show(this.fault, fault !== null)
    setText(this.fault, fault === null ? '' : t('act_failed', { message: fault }))
  }

  /** Null when it worked, else what went wrong. */
  private async addAndLicense(name: string): Promise<string | null> {
    const server = await post('/servers', { name, hostname: name })
    if (!server.ok) return server.message
    // What was added stays open until its command has been read.
    this.isOpen = true
    const license = await post('/monitoring/licenses', {
      name,
      max_uses: 1,
      server_id: textOf(server.body, 'data', 'id'),
    })
    if (!license.ok) return license.message
    setText(this.lead, t('add_command', { name }))
    setText(this.command, commandWith(textOf(license.body, 'token') ?? ''))
    show(this.result, true)
    this.render()
    this.name.value = ''
    return null
  }
}
