// A moment, as people say it; its whole time with the zone stands in the tooltip.
import { computed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { clockMs } from '../connection/live.ts'
import { ago, fullTime, isUtc, whenText } from '../format.ts'

/** `ago`: what has happened, which a clock that is a little behind does not make the future; `until`: what may come. */
type Props = { readonly atMs: number; readonly form?: 'ago' | 'until' | 'when' }

function textOf(atMs: number, form: NonNullable<Props['form']>): string {
  if (form === 'when') return whenText(atMs, clockMs.value)
  return ago(form === 'ago' ? Math.min(atMs, clockMs.value) : atMs, clockMs.value)
}

export function Time({ atMs, form = 'ago' }: Props) {
  // The clock tells every second: what it changes is the text, where that is another by then.
  const text = useMemo(() => computed(() => textOf(atMs, form)), [atMs, form])
  const moment = useMemo(() => ({ dateTime: new Date(atMs).toISOString(), title: fullTime(atMs) }), [atMs, isUtc.value])
  return <time {...moment}>{text}</time>
}
