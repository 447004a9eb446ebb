// The title of the tab carries how many alerts are critical and what is shown.
import { effect, signal } from '@preact/signals'
import { shellWords } from '../../words/shell.ts'
import { company, textsOf } from '../session.ts'

const t = textsOf(shellWords)

/** What is shown: the name of an object, or of a page. */
export const pageTitle = signal('')
/** Open critical alerts, as far as the page knows. */
export const criticalCount = signal(0)

effect(() => {
  const name = [pageTitle.value, company.name, t('product')].filter(part => part !== '').join(' · ')
  document.title = criticalCount.value > 0 ? `(${criticalCount.value}) ${name}` : name
})
