// The title and the icon of the tab carry the worst severity that nobody is on, and what is shown. Of a lost connection
// nothing is known.
import { effect, signal } from '@preact/signals'
import type { PulseView } from '../../views/pulse.ts'
import { shellWords } from '../../words/shell.ts'
import { isolated } from '../../words/words.ts'
import { connection, follow } from '../connection/live.ts'
import { company, may, textsOf } from '../session.ts'

const t = textsOf(shellWords)

/** What is shown: the name of an object, or of a page. */
export const pageTitle = signal('')
const pulse = signal<PulseView>({ critical: 0, warning: 0, info: 0 })

type Worst = 'critical' | 'warning' | 'unknown' | null

function worstOf({ critical, warning }: PulseView): Worst {
  if (connection.value === 'lost') return 'unknown'
  return critical > 0 ? 'critical' : warning > 0 ? 'warning' : null
}

/** `3 critical`; empty where nothing is to be said. */
const worstText = (worst: Worst): string =>
  worst === null ? '' : worst === 'unknown' ? t('title_unknown') : t(`title_${worst}`, { count: pulse.value[worst] })

/** Followed on every page over the stream that is there anyway. */
export function startTitle(): void {
  effect(() => {
    const worst = worstOf(pulse.value)
    const parts = [worstText(worst), isolated(pageTitle.value), isolated(company.name), t('product')]
    document.title = parts.filter(part => part !== '').join(' · ')
    const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')
    const path = worst === null ? '/web/icon.svg' : `/web/icon-${worst}.svg`
    if (icon !== null && icon.getAttribute('href') !== path) icon.setAttribute('href', path)
  })
  if (!may('monitoring.view')) return
  follow(`pulse?${new URLSearchParams({ company: company.slug })}`, '', null, message => {
    if (message.type === 'view') pulse.value = message.value as PulseView
  })
}
