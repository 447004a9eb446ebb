// Rows of a live list do not move under a pointer, a finger or the focus, nor while somebody has just come or does
// something: what is shown keeps its order, values change in place, and rows that are new wait behind a button. On a
// screen that nobody touches they come by themselves.
import { useEffect, useRef, useState } from 'preact/hooks'
import { changeCount } from '../api.ts'

type Shown<Row> = { readonly rows: readonly Row[]; readonly total: number; readonly offset: number }

type Held<Row> = Shown<Row> & {
  /** Rows that wait; null: nothing waits. 0: the same rows in another order, or fewer. */
  readonly waiting: number | null
  readonly release: () => void
}

/** Where nothing hovers, a finger may be on its way to a row at any time: rows always wait. */
const touched = matchMedia('(hover: none)')

/** Who has just come or done something reads for so long, wherever the pointer is. */
const READING_MS = 10_000
const LOOK_EVERY_MS = 1_000
let lastActMs = performance.now()
for (const act of ['pointermove', 'pointerdown', 'keydown', 'wheel'])
  addEventListener(act, () => (lastActMs = performance.now()), { passive: true, capture: true })

const isReading = (sinceMs: number): boolean =>
  !document.hidden && performance.now() - Math.max(lastActMs, sinceMs) < READING_MS

type Place = { readonly current: HTMLElement | null }

/** Whether the pointer is over one of some elements, or the focus within it. They are the same at every call. */
function useIsBusy(places: readonly Place[]): { current: boolean } {
  const busy = useRef(false)
  const [, draw] = useState(0)
  useEffect(() => {
    const elements = places.map(({ current }) => current).filter(element => element !== null)
    const look = () => {
      const before = busy.current
      busy.current = elements.some(each => each.matches(':hover') || each.contains(document.activeElement))
      // Nobody is at the list any more: what waited comes.
      if (before && !busy.current) draw(times => times + 1)
    }
    const later = () => requestAnimationFrame(look)
    const events = ['pointerenter', 'pointerleave', 'focusin', 'focusout'] as const
    for (const element of elements) for (const name of events) element.addEventListener(name, later)
    return () => {
      for (const element of elements) for (const name of events) element.removeEventListener(name, later)
    }
  }, places)
  return busy
}

/** Draws what waits as soon as nobody reads any more. */
function useEndOfReading(mayCome: () => boolean, draw: () => void): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (mayCome()) draw()
    }, LOOK_EVERY_MS)
    return () => clearInterval(timer)
  }, [])
}

/**
 * What a table shows of what it is given. `question` is what the rows answer, as the filter and the order: the answer
 * to another question, and what comes of an act of one's own, is shown at once. `isEager`: new rows are what one
 * waits for, and wait themselves only for who is at the list.
 */
export function useHeldRows<Row>(
  places: readonly Place[],
  given: Shown<Row>,
  question: string,
  keyOf: (row: Row) => string,
  isEager: boolean,
): Held<Row> {
  const [sinceMs] = useState(() => performance.now())
  const busy = useIsBusy(places)
  const [, draw] = useState(0)
  const asked = `${changeCount.value} ${question}`
  const shown = useRef({ ...given, asked })
  const { current } = shown
  const keys = given.rows.map(keyOf)
  const isReleased = useRef(false)
  const isWaiting = useRef(false)
  useEndOfReading(
    () => isWaiting.current && !busy.current && !touched.matches && !isReading(sinceMs),
    () => draw(times => times + 1),
  )
  const release = () => {
    busy.current = false
    isReleased.current = true
    draw(times => times + 1)
  }
  const isSame = current.rows.length === keys.length && current.rows.every((row, at) => keyOf(row) === keys[at])
  const isHeld = (busy.current || touched.matches || (!isEager && isReading(sinceMs))) && !isReleased.current && !isSame
  const isAnother = current.asked !== asked || current.offset !== given.offset
  isWaiting.current = isHeld && !isAnother
  if (!isWaiting.current) {
    if (!isSame) isReleased.current = false
    // The answer to what was asked meanwhile may be on its way still: it is not held back.
    shown.current = { ...given, asked: isSame ? current.asked : asked }
    return { ...given, waiting: null, release }
  }
  const newest = new Map(given.rows.map((row, at) => [keys[at], row]))
  const known = new Set(current.rows.map(keyOf))
  const rows = current.rows.map(row => newest.get(keyOf(row)) ?? row)
  return { ...current, rows, waiting: keys.filter(key => !known.has(key)).length, release }
}
