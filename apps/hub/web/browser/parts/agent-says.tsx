// What an agent says of itself: what waits in its buffer, and its last warning.
import type { AgentSays } from '../../views/agent-says.ts'
import { agentSaysWords } from '../../words/agent-says.ts'
import { valueText } from '../format.ts'
import { textsOf } from '../session.ts'
import './agent-says.css'
import { StateMark } from './state-mark.tsx'
import { Time } from './time.tsx'

const t = textsOf(agentSaysWords)

/** How many batches that is stands in the tooltip. */
export function Buffered({ buffer }: { readonly buffer: NonNullable<AgentSays['buffer']> }) {
  const text = valueText('bytes', buffer.bytes)
  return (
    <span title={t('batches', { count: buffer.batches })}>
      {buffer.isFilling ? <StateMark state="warning" text={text} /> : <span class="muted">{text}</span>}
    </span>
  )
}

/** The text over its time: it may be cut off where it stands. */
export const LastWarning = ({ text, atMs }: NonNullable<AgentSays['lastWarning']>) => (
  <span class="agent-said">
    <span class="text" title={text}>
      {text}
    </span>{' '}
    <span class="muted">
      <Time atMs={atMs} />
    </span>
  </span>
)
