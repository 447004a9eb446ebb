// A table of any length: only the rows near what is seen are in the document. Where rows come in windows, the table
// asks for the window that is seen. Rows keep their height, so nothing shifts; on a phone each row is a card.
import { computed } from '@preact/signals'
import type { ComponentChildren, JSX, RefObject } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { shellWords } from '../../words/shell.ts'
import { currentPage, currentSearch, param, setParams } from '../address/router.ts'
import { density } from '../frame/preferences.ts'
import { textsOf } from '../session.ts'
import { useColumnWidths } from './column-widths.ts'
import { useHeldRows } from './held-rows.ts'
import type { Selection } from './selection.ts'

const t = textsOf(shellWords)

export type Column<Row> = {
  readonly key: string
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  /** The name by which the view sorts; missing: it does not. */
  readonly sort?: string
  /** Numbers stand at the end of their column. */
  readonly isNumber?: boolean
  /** Left out on narrower screens, and from the cards of a phone: what another page shows as well. */
  readonly from?: 'medium' | 'wide'
  /** On cards all the same, which have place for it. */
  readonly isOnCards?: boolean
  /** The column that names the row: read out as its head, and the head of its card on a phone. */
  readonly isName?: boolean
}

type Props<Row> = {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string
  /** The name of a row, for what is read out about it. */
  readonly nameOf: (row: Row) => string
  /** How many rows there are in all, and where the given ones begin; missing: they are all. */
  readonly total?: number
  readonly offset?: number
  /** Another window is seen. */
  readonly onOffset?: (offset: number) => void
  readonly selection?: Selection | undefined
  /** On a phone a row needs a higher card than usual. */
  readonly isTall?: boolean
  /** New rows are what one waits for: they come unless one is at the list. */
  readonly isEager?: boolean
  /** Opened by Enter while the row has the focus. */
  readonly hrefOf?: (row: Row) => string
}

/** Rows beyond what is seen: where one scrolls to, and where one comes from. */
const AHEAD = 8
const ASTERN = 2
/** Rows come and go by so many: each time the browser lays the table out and paints it, however few they are. */
const STEP = 4
/** The next window is asked for while so many rows of this one are still ahead, */
const NEAR = 30
/** and it begins so many rows before what is seen: most of it lies where one scrolls to. */
const BEHIND = 20
/** Shortly after it is needed, so that a jump asks once; again where an answer stays away. */
const ASK_MS = 30
const ASK_AGAIN_MS = 1_000
/** Who is so many rows further waits for no answer to what was asked before. */
const JUMP_ROWS = 200

/** The height of a row as the style has it, by density and width, and by the table where a card holds more. */
const rowHeight = (body: HTMLElement | null): number =>
  Number.parseFloat(getComputedStyle(body ?? document.documentElement).getPropertyValue('--row')) || 40

const stepDown = (rows: number): number => Math.floor(rows / STEP) * STEP

/**
 * What the elements are, said of each: columns whose widths are kept have another `display`, and some browsers then
 * take the elements for no table's any more.
 */
const role = {
  table: 'table',
  rowgroup: 'rowgroup',
  row: 'row',
  columnheader: 'columnheader',
  rowheader: 'rowheader',
  cell: 'cell',
  presentation: 'presentation',
} as const

type Seen = { readonly from: number; readonly to: number }

/** Which rows are seen, in a document that scrolls as a whole. */
function useSeen(body: { readonly current: HTMLElement | null }, total: number): Seen {
  const [seen, setSeen] = useState<Seen>({ from: 0, to: 30 })
  useEffect(() => {
    let frame = 0
    let topBefore: number | null = null
    let isUp = false
    // Not asked for in each frame: the browser would have to work out all styles first.
    let height = rowHeight(body.current)
    const look = () => {
      frame = 0
      const top = body.current?.getBoundingClientRect().top ?? 0
      if (topBefore !== null && top !== topBefore) isUp = top > topBefore
      topBefore = top
      // Past its end too the page may go on: a spacer that is higher than the rows would push the rest away for ever.
      const from = stepDown(Math.min(total, Math.max(0, -top / height - (isUp ? AHEAD : ASTERN))))
      const to = Math.min(total, stepDown((innerHeight - top) / height + (isUp ? ASTERN : AHEAD)) + STEP)
      setSeen(before => (before.from === from && before.to === to ? before : { from, to: Math.max(from, to) }))
    }
    const later = () => {
      frame ||= requestAnimationFrame(look)
    }
    const anew = () => {
      height = rowHeight(body.current)
      later()
    }
    look()
    addEventListener('scroll', later, { passive: true })
    addEventListener('resize', anew)
    return () => {
      cancelAnimationFrame(frame)
      removeEventListener('scroll', later)
      removeEventListener('resize', anew)
    }
  }, [body, total, density.value])
  return seen
}

type Window = { readonly rows: readonly unknown[]; readonly total: number; readonly offset: number }

/**
 * Asks for the rows that are seen or soon will be. One answer is waited for before the next is asked for, with what is
 * seen by then: who scrolls on and on gets rows all the way.
 */
function useWindows(seen: Seen, { rows, total, offset }: Window, onOffset: Props<unknown>['onOffset']): void {
  const end = offset + rows.length
  const isBefore = offset > 0 && seen.from < offset + NEAR
  const isAfter = end < total && seen.to > end - NEAR
  // Up the list most of the window lies above what is seen; where both ends are near, what is seen decides.
  const isUp = isBefore && seen.to <= end
  const wanted = Math.min(seen.from - BEHIND, isUp ? seen.to + BEHIND - rows.length : seen.from)
  const last = Math.max(0, total - rows.length)
  const ask = useRef(() => {})
  ask.current = () => onOffset?.(Math.min(last, Math.max(0, wanted)))
  const isWanted = onOffset !== undefined && (isBefore || isAfter)
  const far = Math.round(seen.from / JUMP_ROWS)
  useEffect(() => {
    if (!isWanted) return
    const timer = setTimeout(() => ask.current(), ASK_MS)
    const again = setInterval(() => ask.current(), ASK_AGAIN_MS)
    return () => {
      clearTimeout(timer)
      clearInterval(again)
    }
  }, [isWanted, offset, far])
}

/**
 * An empty row as high as the rows that are not drawn. Of one cell: over columns that narrow screens leave out it would
 * make place for these.
 */
function Spacer({ rows }: { readonly rows: number }) {
  const row = useRef<HTMLTableRowElement>(null)
  // Before anything is drawn: rows that go and a spacer that is not yet as high as they were would move the page.
  useLayoutEffect(() => {
    if (row.current) row.current.style.height = `calc(var(--row) * ${rows})`
  }, [rows])
  return rows <= 0 ? null : (
    <tr class="spacer" ref={row} role={role.presentation}>
      <td role={role.presentation} />
    </tr>
  )
}

function SortHead<Row>({ column }: { readonly column: Column<Row> }) {
  const sort = param('sort')
  const { sort: name } = column
  if (name === undefined) return <>{column.title}</>
  const next = sort === name ? `-${name}` : name
  return (
    <button
      type="button"
      class="sort"
      title={t('sort_by', { name: column.title })}
      onClick={() => setParams({ sort: next, offset: null })}
    >
      {column.title}
      <span aria-hidden="true">{sort === name ? ' ↑' : sort === `-${name}` ? ' ↓' : ''}</span>
    </button>
  )
}

const classOf = <Row,>({ key, isNumber, from, isOnCards }: Column<Row>): string | undefined =>
  [
    ...[isNumber ? 'number' : '', key === 'acts' ? 'acts' : '', from === undefined ? '' : `from-${from}`],
    isOnCards ? 'on-cards' : '',
  ]
    .filter(Boolean)
    .join(' ') || undefined

const ariaSort = (sort: string, name: string | undefined) =>
  name === undefined ? undefined : sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined

type WaitingProps = {
  readonly count: number | null
  readonly place: RefObject<HTMLDivElement | null>
  readonly onRelease: () => void
}

/** What waits while somebody is at the list; over the head of the table, so that nothing moves when it comes. */
const Waiting = ({ count, place, onRelease }: WaitingProps) => (
  <div ref={place} class="held" role="status">
    {count === null ? null : (
      <button type="button" class="primary" onClick={onRelease}>
        {count === 0 ? t('rows_changed') : t('new_rows', { count })}
      </button>
    )}
  </div>
)

/** What the rows are asked by: the address, without the window that is seen. */
const question = computed((): string => {
  const search = currentSearch()
  search.delete('offset')
  return `${currentPage.value?.name} ${search}`
})

/**
 * The rows, with those of before in place of what has come anew and says the same: an answer brings all rows, and
 * most of them as they were. What is the same is not drawn again.
 */
function useKnownRows<Row>(rows: readonly Row[], keyOf: (row: Row) => string): readonly Row[] {
  const known = useRef<ReadonlyMap<string, Row>>(new Map())
  return useMemo(() => {
    const shown = rows.map(row => {
      const before = known.current.get(keyOf(row))
      return before !== undefined && JSON.stringify(before) === JSON.stringify(row) ? before : row
    })
    known.current = new Map(shown.map(row => [keyOf(row), row]))
    return shown
  }, [rows])
}

export function Table<Row>(props: Props<Row>) {
  const { columns, keyOf, selection } = props
  const body = useRef<HTMLTableSectionElement>(null)
  const given = {
    rows: useKnownRows(props.rows, keyOf),
    ...{ total: props.total ?? props.rows.length, offset: props.offset ?? 0 },
  }
  // Who goes from a row to the button is at the list all the way.
  const [whole, held] = [useRef<HTMLTableElement>(null), useRef<HTMLDivElement>(null)]
  const { rows, total, offset, waiting, release } = useHeldRows(
    [whole, held],
    given,
    question.value,
    keyOf,
    props.isEager === true,
  )
  const seen = useSeen(body, total)
  const from = Math.max(seen.from, offset)
  const to = Math.max(from, Math.min(seen.to, offset + rows.length))
  useWindows(seen, given, props.onOffset)
  useColumnWidths(whole, {
    ...{ question: question.value, columns: columns.map(({ key }) => key).join(), rows, from },
    given: props.rows,
  })
  const drawn = useDrawnRows(rows.slice(from - offset, to - offset), from + 2, props)
  return (
    <>
      <Waiting count={waiting} place={held} onRelease={release} />
      <table
        ref={whole}
        role={role.table}
        class={props.isTall ? 'table tall' : 'table'}
        aria-label={props.label}
        aria-rowcount={total + 1}
      >
        <Head rows={rows} columns={columns} selection={selection} keyOf={keyOf} />
        <tbody ref={body} role={role.rowgroup}>
          <Spacer rows={from} />
          {drawn}
          <Spacer rows={total - to} />
        </tbody>
      </table>
    </>
  )
}

type HeadProps<Row> = Pick<Props<Row>, 'rows' | 'columns' | 'selection' | 'keyOf'>

const Head = <Row,>({ rows, columns, selection, keyOf }: HeadProps<Row>) => (
  <thead role={role.rowgroup}>
    <tr role={role.row} aria-rowindex={1}>
      {selection ? (
        <th scope="col" role={role.columnheader} class="select">
          <input
            type="checkbox"
            aria-label={t('select_all')}
            checked={rows.length > 0 && rows.every(row => selection.has(keyOf(row)))}
            onChange={event => selection.setAll(rows.map(keyOf), event.currentTarget.checked)}
          />
        </th>
      ) : null}
      {columns.map(column => (
        <th
          key={column.key}
          scope="col"
          role={role.columnheader}
          class={classOf(column)}
          aria-sort={ariaSort(param('sort'), column.sort)}
        >
          <SortHead column={column} />
        </th>
      ))}
    </tr>
  </thead>
)

type RowProps<Row> = Pick<Props<Row>, 'columns' | 'selection' | 'keyOf' | 'nameOf'> & {
  readonly row: Row
  readonly rowIndex: number
  readonly isSelected: boolean
}

/** The rows that are drawn; those that are as before as the same elements, which Preact then leaves alone. */
function useDrawnRows<Row>(rows: readonly Row[], firstIndex: number, table: Props<Row>): JSX.Element[] {
  const { columns, selection, keyOf, nameOf } = table
  const before = useRef<ReadonlyMap<string, { readonly props: RowProps<Row>; readonly element: JSX.Element }>>(
    new Map(),
  )
  const drawn = rows.map((row, index) => {
    const key = keyOf(row)
    const [rowIndex, isSelected] = [firstIndex + index, selection?.has(key) === true]
    const known = before.current.get(key)
    const isSame =
      known?.props.row === row &&
      known.props.rowIndex === rowIndex &&
      known.props.isSelected === isSelected &&
      known.props.columns === columns &&
      known.props.selection === selection
    if (isSame) return [key, known] as const
    const props = { row, rowIndex, isSelected, columns, selection, keyOf, nameOf }
    return [key, { props, element: <TableRow key={key} {...props} /> }] as const
  })
  before.current = new Map(drawn)
  return drawn.map(([, { element }]) => element)
}

function TableRow<Row>({ row, rowIndex, isSelected, columns, selection, keyOf, nameOf }: RowProps<Row>) {
  const key = keyOf(row)
  return (
    <tr role={role.row} aria-rowindex={rowIndex} data-key={key} aria-selected={selection ? isSelected : undefined}>
      {selection ? (
        <td role={role.cell} class="select">
          <input
            type="checkbox"
            aria-label={t('select_row', { name: nameOf(row) })}
            checked={isSelected}
            onChange={event => selection.set(key, event.currentTarget.checked)}
          />
        </td>
      ) : null}
      {columns.map(column =>
        column.isName ? (
          <th key={column.key} scope="row" role={role.rowheader} class="name">
            {column.cell(row)}
          </th>
        ) : (
          <td key={column.key} role={role.cell} class={classOf(column)} data-title={column.title}>
            {column.cell(row)}
          </td>
        ),
      )}
    </tr>
  )
}
