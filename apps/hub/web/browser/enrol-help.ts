// What a newcomer does when there is no server yet: make a licence, start an agent with it.
import { post, textOf } from './api.ts'
import { el, setText, show } from './elements.ts'
import { mayManage, t } from './page.ts'

const LICENSES_USES = 10
const commandWith = (license: string): string =>
  `SVC_COLLECTOR_URL=http://127.0.0.1:8081 \\\nSVC_LICENSE=${license} \\\n  bun apps/agent/main.ts run`

export class EnrolHelp {
  readonly root: HTMLElement
  private readonly create = el('button', { type: 'button', class: 'primary' }, t('empty_create'))
  private readonly fault = el('p', { class: 'fault', role: 'alert', hidden: true })
  private readonly lead = el('p', {}, t('empty_command'))
  private readonly command = el('code', {}, commandWith('lic_…'))

  constructor() {
    this.root = el(
      'div',
      { class: 'empty', hidden: true },
      el('h3', {}, t('empty_title')),
      el('p', {}, t('empty_text')),
      mayManage ? this.create : el('p', {}, t('empty_ask')),
      this.fault,
      this.lead,
      el('pre', { tabindex: '0' }, this.command),
      el('p', { class: 'muted' }, t('empty_after')),
    )
    this.create.addEventListener('click', () => void this.createLicense())
  }

  private async createLicense(): Promise<void> {
    this.create.disabled = true
    const result = await post('/monitoring/licenses', { name: t('empty_name'), max_uses: LICENSES_USES })
    this.create.disabled = false
    const token = result.ok ? textOf(result.body, 'token') : null
    show(this.fault, token === null)
    if (token === null) return setText(this.fault, t('act_failed', { message: result.ok ? '' : result.message }))
    show(this.create, false)
    setText(this.lead, t('empty_created'))
    setText(this.command, commandWith(token))
  }
}
