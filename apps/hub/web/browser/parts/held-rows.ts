// Rows of a live list do not move under a pointer, a finger or the focus: while somebody is at the list, what is shown
// keeps its order, values change in place, and rows that are new wait behind a button.
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

/**
 * What a table shows of what it is given. `question` is what the rows answer, as the filter and the order: the answer
 * to another question, and what comes of an act of one's own, is shown at once.
 */
export function useHeldRows<Row>(
  places: readonly Place[],
  given: Shown<Row>,
  question: string,
  keyOf: (row: Row) => string,
): Held<Row> {
  const busy = useIsBusy(places)
  const [, draw] = useState(0)
  const asked = `${changeCount.value} ${question}`
  const shown = useRef({ ...given, asked })
  const { current } = shown
  const keys = given.rows.map(keyOf)
  const isReleased = useRef(false)
  const release = () => {
    busy.current = false
    isReleased.current = true
    draw(times => times + 1)
  }
  if (current.rows.length === keys.length && current.rows.every((row, at) => keyOf(row) === keys[at])) {
    // The answer to what was asked meanwhile may be on its way still: it is not held back.
    shown.current = { ...given, asked: current.asked }
    return { ...given, waiting: null, release }
  }
  const isHeld = (busy.current || touched.matches) && !isReleased.current
  if (current.asked !== asked || current.offset !== given.offset || !isHeld) {
    isReleased.current = false
    shown.current = { ...given, asked }
    return { ...given, waiting: null, release }
  }
  const newest = new Map(given.rows.map((row, at) => [keys[at], row]))
  const known = new Set(current.rows.map(keyOf))
  const rows = current.rows.map(row => newest.get(keyOf(row)) ?? row)
  return { ...current, rows, waiting: keys.filter(key => !known.has(key)).length, release }
}
