// The results of a day as a bar of 24 hours: shape, colour and a text that says the same.
import type { CheckOfServer } from '../../../views/check.ts'
import { checksWords } from '../../../words/checks.ts'
import { textsOf } from '../../session.ts'
import './checks.css'

const t = textsOf(checksWords)

const stateOf = (share: number | null): 'good' | 'failed' | 'unknown' =>
  share === null ? 'unknown' : share < 1 ? 'failed' : 'good'

export function CheckHours({ hours }: Pick<CheckOfServer, 'hours'>) {
  const states = hours.map(stateOf)
  const counted = (state: string) => states.filter(each => each === state).length
  const text = t('day_text', { good: counted('good'), failed: counted('failed'), unknown: counted('unknown') })
  return (
    <span class="hours" role="img" aria-label={text} title={text}>
      {states.map((state, hour) => (
        <i data-state={state} key={hour} />
      ))}
    </span>
  )
}
