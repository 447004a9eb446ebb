// What the collector decides about a series now, in the language of the page; then its own words, which say more.
import type { Decision } from '../../views/decision.ts'
import { decisionsWords } from '../../words/decisions.ts'
import { NOTHING, valueText } from '../format.ts'
import { textsOf } from '../session.ts'

const t = textsOf(decisionsWords)

type Props = { readonly now: Decision; readonly unit: string | null }

function sentenceOf({ now, unit }: Props): string {
  const value = now.lastValue === null ? NOTHING : valueText(unit, now.lastValue)
  const said = [
    t(now.isSilent && now.state === 'firing' ? 'now_silent' : `now_${now.state}`, { value }),
    now.isFlapping ? t('now_flapping') : '',
    now.suppressedBy === null ? '' : t(`now_${now.suppressedBy}`),
  ]
  return said.filter(text => text !== '').join(' ')
}

export const DecisionText = (props: Props) => (
  <>
    <p class="text">{sentenceOf(props)}</p>
    <p class="text muted">
      {t('collector_says')} <span lang="en">{props.now.decision}</span>
    </p>
  </>
)
