// A moment, as people say it; its whole time with the zone stands in the tooltip.
import { clockMs } from '../connection/live.ts'
import { ago, fullTime, whenText } from '../format.ts'

type Props = { readonly atMs: number; readonly form?: 'ago' | 'when' }

export function Time({ atMs, form = 'ago' }: Props) {
  const text = form === 'ago' ? ago(atMs, clockMs.value) : whenText(atMs, clockMs.value)
  return (
    <time dateTime={new Date(atMs).toISOString()} title={fullTime(atMs)}>
      {text}
    </time>
  )
}
