// What a rule asks of a series, in words: the same of rules and of the alerts that they opened.
import { conditionsWords } from '../words/conditions.ts'
import { duration } from './format.ts'
import { textsOf } from './session.ts'

const t = textsOf(conditionsWords)

/** How each operator is said of a series and a value. */
const operatorWords = {
  '>': 'op_gt',
  '>=': 'op_ge',
  '<': 'op_lt',
  '<=': 'op_le',
  '==': 'op_eq',
  '!=': 'op_ne',
} as const

type Compared = {
  readonly series: string
  readonly operator: keyof typeof operatorWords
  readonly value: string
  readonly forSeconds: number | null | undefined
}

/** `Disk usage / over 95 % for 5m` */
export function conditionPart({ series, operator, value, forSeconds }: Compared): string {
  const compared = t(operatorWords[operator], { series, value })
  return forSeconds ? `${compared} ${t('held_for', { time: duration(forSeconds * 1000) })}` : compared
}
