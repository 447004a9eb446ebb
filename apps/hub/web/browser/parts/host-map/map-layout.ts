// Where the cells of a host map lie: groups as boxes that flow from left to right, boxes of the same first key below
// one heading, cells as great as the space allows. Nothing here draws.

/** What is laid out: how many cells, and the texts of the group's keys. */
type LaidOutGroup = { readonly captions: readonly string[]; readonly count: number }

/** The cells of a group: the first at `x`, `y`, then row by row. */
export type MapBox = {
  readonly group: number
  /** The number of the first cell, in the order of all groups. */
  readonly from: number
  readonly count: number
  readonly columns: number
  readonly x: number
  readonly y: number
  readonly caption: MapCaption | null
}

/** A text above cells; `isHeading`: of the first key of two. */
export type MapCaption = {
  readonly text: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly isHeading: boolean
  readonly group: number
}

export type MapLayout = {
  readonly width: number
  readonly height: number
  /** From one cell to the next, in CSS pixels. */
  readonly pitch: number
  readonly boxes: readonly MapBox[]
  readonly headings: readonly MapCaption[]
}

/** How high a caption is, with the space below it. */
export const CAPTION_HEIGHT = 20
export const HEADING_HEIGHT = 26
const PITCHES = [40, 36, 32, 28, 24, 20, 18, 16, 14, 12, 11, 10, 9, 8, 7, 6]
const BOX_GAP = 12
/** So that the value of a key can be read above a group of two servers. */
const BOX_WIDTH_MIN = 84
/** How many times as wide as high the cells of a box may lie: what leaves the least space unused is taken. */
const BOX_SHAPES = [1.8, 1.2, 2.6, 3.8, 5.5, 8]

type Run = { readonly heading: string | null; readonly groups: readonly (readonly [LaidOutGroup, number])[] }

/** Groups of the same first key, where there are two; else all in one run without a heading. */
function runsOf(groups: readonly LaidOutGroup[]): Run[] {
  const runs: { heading: string | null; groups: [LaidOutGroup, number][] }[] = []
  for (const [index, group] of groups.entries()) {
    const heading = group.captions.length > 1 ? (group.captions[0] ?? null) : null
    const last = runs.at(-1)
    if (last !== undefined && last.heading === heading) last.groups.push([group, index])
    else runs.push({ heading, groups: [[group, index]] })
  }
  return runs
}

function columnsOf(count: number, pitch: number, width: number, shape: number): number {
  const most = Math.max(1, Math.floor(width / pitch))
  return Math.min(most, count, Math.max(1, Math.ceil(Math.sqrt(count * shape)), Math.floor(BOX_WIDTH_MIN / pitch)))
}

function layoutAt(groups: readonly LaidOutGroup[], width: number, pitch: number, shape: number): MapLayout {
  const boxes: MapBox[] = []
  const headings: MapCaption[] = []
  let [y, from] = [0, 0]
  for (const run of runsOf(groups)) {
    if (run.heading !== null) {
      const group = run.groups[0]?.[1] ?? 0
      headings.push({ text: run.heading, x: 0, y, width, isHeading: true, group })
      y += HEADING_HEIGHT
    }
    let [x, rowHeight] = [0, 0]
    for (const [{ captions, count }, group] of run.groups) {
      const columns = columnsOf(count, pitch, width, shape)
      const boxWidth = Math.min(width, Math.max(columns * pitch, BOX_WIDTH_MIN))
      if (x > 0 && x + boxWidth > width) {
        y += rowHeight + BOX_GAP
        x = 0
        rowHeight = 0
      }
      const text = captions.at(-1)
      const caption = text === undefined ? null : { text, x, y, width: boxWidth, isHeading: false, group }
      const top = caption === null ? y : y + CAPTION_HEIGHT
      boxes.push({ group, from, count, columns, x, y: top, caption })
      from += count
      rowHeight = Math.max(rowHeight, top - y + Math.ceil(count / columns) * pitch)
      x += boxWidth + BOX_GAP
    }
    y += rowHeight + BOX_GAP
  }
  return { width, height: Math.max(pitch, y - BOX_GAP), pitch, boxes, headings }
}

/** The lowest of the layouts with cells of that size. */
function lowestAt(groups: readonly LaidOutGroup[], width: number, pitch: number): MapLayout {
  // A single group takes the whole width.
  const shapes = groups.length > 1 ? BOX_SHAPES : [Number.MAX_SAFE_INTEGER]
  const layouts = shapes.map(shape => layoutAt(groups, width, pitch, shape))
  return layouts.reduce((lowest, layout) => (layout.height < lowest.height ? layout : lowest))
}

/** The greatest cells with which the map is at most `heightWanted` high; the smallest where none are small enough. */
export function layoutMap(groups: readonly LaidOutGroup[], width: number, heightWanted: number): MapLayout {
  const smallest = PITCHES.at(-1) ?? 6
  const fitting = PITCHES.find(pitch => lowestAt(groups, width, pitch).height <= heightWanted)
  return lowestAt(groups, width, fitting ?? smallest)
}

/** The box of a cell, by bisection; undefined for no cell of the map. */
export function boxOfCell({ boxes }: MapLayout, cell: number): MapBox | undefined {
  let [low, high] = [0, boxes.length - 1]
  while (low <= high) {
    const middle = (low + high) >> 1
    const box = boxes[middle]
    if (box === undefined) return undefined
    if (cell < box.from) high = middle - 1
    else if (cell >= box.from + box.count) low = middle + 1
    else return box
  }
  return undefined
}

/** Where a cell lies, by its upper left corner. */
export function placeOfCell(layout: MapLayout, cell: number): { readonly x: number; readonly y: number } | null {
  const box = boxOfCell(layout, cell)
  if (box === undefined) return null
  const at = cell - box.from
  return { x: box.x + (at % box.columns) * layout.pitch, y: box.y + Math.floor(at / box.columns) * layout.pitch }
}

/** The cell at a place; null between cells. */
export function cellAt({ boxes, pitch }: MapLayout, x: number, y: number): number | null {
  for (const box of boxes) {
    const [column, row] = [Math.floor((x - box.x) / pitch), Math.floor((y - box.y) / pitch)]
    if (column < 0 || row < 0 || column >= box.columns) continue
    const at = row * box.columns + column
    if (at < box.count) return box.from + at
  }
  return null
}

/** The caption at a place. */
export function captionAt({ boxes, headings }: MapLayout, x: number, y: number): MapCaption | null {
  const all = [...headings, ...boxes.map(({ caption }) => caption).filter(caption => caption !== null)]
  const isAt = (caption: MapCaption): boolean =>
    x >= caption.x && x < caption.x + caption.width && y >= caption.y && y < caption.y + CAPTION_HEIGHT
  return all.find(isAt) ?? null
}

/** The cell that an arrow leads to: the next in the row, or the nearest one of the next row that has cells below. */
export function neighbour(layout: MapLayout, cell: number, direction: 'left' | 'right' | 'up' | 'down'): number {
  const count = layout.boxes.reduce((sum, box) => sum + box.count, 0)
  if (direction === 'left') return Math.max(0, cell - 1)
  if (direction === 'right') return Math.min(count - 1, cell + 1)
  const place = placeOfCell(layout, cell)
  if (place === null) return 0
  const step = direction === 'down' ? layout.pitch : -layout.pitch
  // Within the box at once; else line by line, so that headings and the gaps between boxes are passed over.
  for (let y = place.y + step; y >= 0 && y < layout.height; y += step) {
    const found = nearestInLine(layout, place.x, y + layout.pitch / 2)
    if (found !== null) return found
  }
  return cell
}

function nearestInLine({ boxes, pitch }: MapLayout, x: number, y: number): number | null {
  let [nearest, distance]: [number | null, number] = [null, Number.POSITIVE_INFINITY]
  for (const box of boxes) {
    const row = Math.floor((y - box.y) / pitch)
    if (row < 0 || row * box.columns >= box.count) continue
    const columns = Math.min(box.columns, box.count - row * box.columns)
    const column = Math.min(columns - 1, Math.max(0, Math.round((x - box.x) / pitch)))
    const away = Math.abs(box.x + column * pitch - x)
    if (away < distance) [nearest, distance] = [box.from + row * box.columns + column, away]
  }
  return nearest
}

/** The first cell of the group before (-1) or after (1) that of a cell. */
export function cellOfNextGroup(layout: MapLayout, cell: number, step: -1 | 1): number {
  const box = boxOfCell(layout, cell)
  const at = box === undefined ? 0 : layout.boxes.indexOf(box)
  return layout.boxes[Math.min(layout.boxes.length - 1, Math.max(0, at + step))]?.from ?? 0
}
