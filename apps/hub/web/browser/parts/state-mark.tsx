// A state as colour, shape and word, always all three. While the connection is lost nothing is said to be of now.
import { shellWords } from '../../words/shell.ts'
import { connection } from '../connection/live.ts'
import { textsOf } from '../session.ts'
import { Icon, type IconName } from './icons.tsx'

const t = textsOf(shellWords)

export type MarkedState =
  | 'critical'
  | 'warning'
  | 'info'
  | 'ok'
  | 'online'
  | 'down'
  | 'unknown'
  | 'maintenance'
  | 'decommissioned'
  | 'draft'
  | 'silenced'

const icons: Readonly<Record<MarkedState, IconName>> = {
  critical: 'critical',
  warning: 'warning',
  info: 'info',
  ok: 'ok',
  online: 'ok',
  down: 'critical',
  unknown: 'unknown',
  maintenance: 'maintenance',
  decommissioned: 'maintenance',
  draft: 'unknown',
  silenced: 'silenced',
}

type Props = {
  readonly state: MarkedState
  /** An acknowledged one is outlined instead of filled. */
  readonly isOutlined?: boolean
  /** Said instead of the state's own word. */
  readonly text?: string
}

export function StateMark({ state, isOutlined = false, text }: Props) {
  const isStale = connection.value === 'lost'
  const word = text ?? t(`state_${state}`)
  return (
    <span class={`mark${isOutlined ? ' outlined' : ''}${isStale ? ' stale' : ''}`} data-state={state}>
      <Icon name={icons[state]} />
      <span class="mark-word">{word}</span>
    </span>
  )
}
