// The widths of a table's columns, as the browser finds them for the rows that are shown, and then kept: columns stand
// still when values change, and a row that comes is laid out and painted by itself instead of with the whole table.
// They are found anew when the table shows something else, when the screen changes, and for who has scrolled to a row
// that would be cut off. What comes by itself is cut off rather than that columns move; only a number never is.
import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { density } from '../frame/preferences.ts'
import { fittedWidths } from './fitted-widths.ts'

/** On a phone a row is a card. */
const isOfCards = matchMedia('(max-width: 760px)')
/** Who scrolls does not see columns move; who has stopped for so long sees nothing cut off. */
const REST_MS = 300

type Widths = {
  /** Finds the widths that suit the rows which are drawn now. */
  find: () => void
  /** Finds them anew where a cell is cut off and its column may be wider; `isLive`: only where that is a number. */
  mend: (isLive: boolean) => void
}

const isCut = (cell: Element): boolean => cell.scrollWidth > cell.clientWidth + 1
const cellsOf = (row: Element): Element[] => [...row.children].filter(cell => cell.clientWidth > 0)

function widthsOf(table: HTMLTableElement): Widths {
  /** Columns that are as wide as they get, and cut off all the same. */
  let full = new Set<number>()
  /** Cells that do not fit, by their columns. */
  const cutCells = (): [number, Element][] =>
    [...table.querySelectorAll('tbody tr[data-key]')].flatMap(row =>
      cellsOf(row).flatMap((cell, column): [number, Element][] => (isCut(cell) ? [[column, cell]] : [])),
    )
  // Only these are clipped: each cell that is costs as much to paint as a row.
  const clip = (cells: readonly [number, Element][]): void => {
    for (const [, cell] of cells) cell.setAttribute('data-cut', '')
  }
  const find = (): void => {
    delete table.dataset.kept
    if (isOfCards.matches || table.tHead === null || table.querySelector('tbody tr[data-key]') === null) return
    const heads = [...(table.tHead.rows[0]?.cells ?? [])].filter(head => head.getBoundingClientRect().width > 0)
    const found = heads.map(head => head.getBoundingClientRect().width)
    table.dataset.kept = ''
    // Kept, the table is as wide as its place; one of chosen columns is scrolled instead.
    const place = table.closest('.wide-table') === null ? table.clientWidth : Number.POSITIVE_INFINITY
    const widths = fittedWidths(found, place, column => heads[column]?.matches('.number, .select, .acts') === false)
    table.style.setProperty('--columns', widths.map(width => `${width}px`).join(' '))
    table.style.setProperty('--columns-width', `${widths.reduce((sum, width) => sum + width, 0)}px`)
    const cut = cutCells()
    full = new Set(cut.map(([column]) => column))
    clip(cut)
  }
  const mend = (isLive: boolean): void => {
    const cut = 'kept' in table.dataset ? cutCells() : null
    const mayGrow = ([column, cell]: [number, Element]): boolean =>
      !full.has(column) && (!isLive || cell.classList.contains('number'))
    if (cut === null || cut.some(mayGrow)) find()
    else clip(cut)
  }
  return { find, mend }
}

type Shown = {
  /** What the rows answer. */
  readonly question: string
  /** The names of the columns. */
  readonly columns: string
  readonly rows: readonly unknown[]
  /** The rows of the newest answer, which may wait; the same ones until another answer comes. */
  readonly given: readonly unknown[]
  /** The first row that is drawn. */
  readonly from: number
}

/**
 * Whether the rows are of what is asked now: the address asks another question at once, and until its answer comes,
 * what waited of the one before may be shown.
 */
function useIsAnswered(question: string, given: readonly unknown[]): boolean {
  const last = useRef({ question, given, isAnswered: true })
  const before = last.current
  const isAnswered = given !== before.given || (question === before.question && before.isAnswered)
  last.current = { question, given, isAnswered }
  return isAnswered
}

/** Keeps the widths of the columns of a table. */
export function useColumnWidths(
  table: RefObject<HTMLTableElement | null>,
  { question, columns, rows, given, from }: Shown,
): void {
  const widths = useRef<Widths | null>(null)
  const found = useRef(question)
  const isResting = useRef(true)
  const isAnswered = useIsAnswered(question, given)
  useLayoutEffect(() => {
    const { current } = table
    if (current === null) return
    const its = widthsOf(current)
    widths.current = its
    // The place of the table changes with the screen, and with what stands beside it.
    let before: number | null = null
    const resized = new ResizeObserver(([entry]) => {
      const width = entry?.contentRect.width ?? 0
      if (before !== null && width !== before) its.find()
      before = width
    })
    if (current.parentElement) resized.observe(current.parentElement)
    return () => resized.disconnect()
  }, [])
  useLayoutEffect(() => widths.current?.find(), [columns, density.value])
  useLayoutEffect(() => {
    if (found.current !== question && isAnswered) {
      widths.current?.find()
      found.current = question
      // Each cell is looked at, which costs who scrolls a frame or two; the rest that follows looks at them anyway.
    } else if (isResting.current) widths.current?.mend(true)
  }, [rows])
  useEffect(() => {
    isResting.current = false
    const rest = setTimeout(() => {
      isResting.current = true
      widths.current?.mend(false)
    }, REST_MS)
    return () => clearTimeout(rest)
  }, [from])
}
