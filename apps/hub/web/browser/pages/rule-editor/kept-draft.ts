// Drafts kept in the browser, so that a closed tab or a lost session loses nothing that was typed.
import { currentSearch } from '../../address/router.ts'
import { nowMs } from '../../hub-clock.ts'
import { company } from '../../session.ts'
import type { Draft } from './draft.ts'

/** `version`: of the rule that was edited; 0 for a new one. */
type KeptDraft = { readonly draft: Draft; readonly version: number; readonly atMs: number }

/** Of new rules one for each chart that they began from. */
const nameOf = (ruleId: string): string =>
  `rule-draft ${company.id} ${ruleId || ['new', ...currentSearch().toString().split('&').toSorted()].join(' ').trim()}`
/** The form of what is kept: a draft of another form is left alone. */
const FORM = 1

export function keptDraft(ruleId: string): KeptDraft | null {
  try {
    const kept = JSON.parse(localStorage.getItem(nameOf(ruleId)) ?? 'null')
    return kept?.form === FORM ? kept : null
  } catch {
    return null
  }
}

export function keepDraft(ruleId: string, draft: Draft, version: number): void {
  try {
    localStorage.setItem(nameOf(ruleId), JSON.stringify({ form: FORM, draft, version, atMs: nowMs() }))
  } catch {
    // Without storage a draft lasts as long as the page.
  }
}

export function forgetDraft(ruleId: string): void {
  try {
    localStorage.removeItem(nameOf(ruleId))
  } catch {
    // See above.
  }
}
