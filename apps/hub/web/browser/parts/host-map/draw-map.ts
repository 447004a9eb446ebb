// Draws a host map on a canvas: fills of all cells level by level, then their marks kind by kind, so that a hundred
// thousand cells are a few hundred changes of colour.
import { LEVELS } from '../../../cell-characters.ts'
import { palette } from '../chart/palette.ts'
import { CAPTION_HEIGHT, type MapBox, type MapCaption, type MapLayout } from './map-layout.ts'

/** A character a cell: its level (`cell-characters.ts`), and its mark. */
export type DrawnGroup = { readonly levels: string; readonly marks: string }

const LEVEL_COUNT = LEVELS.length
const levelOfCode = new Int8Array(128).fill(-1)
for (let level = 0; level < LEVEL_COUNT; level++) levelOfCode[LEVELS.charCodeAt(level)] = level

/** Cells that are smaller show a mark as a plain shape that fills more of them. */
const SHAPES_FROM = 10

const channels = (hex: string): number[] => (hex.match(/[\da-f]{2}/gi) ?? []).map(pair => Number.parseInt(pair, 16))

/** The colours of the levels, from the lowest to the highest. */
function levelColours(low: string, high: string): string[] {
  const [from, to] = [channels(low), channels(high)]
  return Array.from({ length: LEVEL_COUNT }, (_, level) => {
    const share = level / (LEVEL_COUNT - 1)
    return `rgb(${from.map((channel, at) => Math.round(channel + ((to[at] ?? 0) - channel) * share)).join(' ')})`
  })
}

const gapOf = (pitch: number): number => (pitch >= 14 ? 2 : 1)

type Place = { readonly x: number; readonly y: number }
const placeIn = ({ x, y, columns }: MapBox, pitch: number, at: number): Place => ({
  x: x + (at % columns) * pitch,
  y: y + Math.floor(at / columns) * pitch,
})

function drawFills(
  context: CanvasRenderingContext2D,
  { boxes, pitch }: MapLayout,
  groups: readonly DrawnGroup[],
): void {
  const size = pitch - gapOf(pitch)
  const places: number[][] = Array.from({ length: LEVEL_COUNT }, () => [])
  const empty: number[] = []
  for (const box of boxes) {
    const levels = groups[box.group]?.levels ?? ''
    let [x, y, column] = [box.x, box.y, 0]
    for (let at = 0; at < box.count; at++) {
      const level = levelOfCode[levels.charCodeAt(at)] ?? -1
      ;(places[level] ?? empty).push(x, y)
      x += pitch
      if (++column === box.columns) {
        column = 0
        x = box.x
        y += pitch
      }
    }
  }
  const { mapLow, mapHigh, hatch } = palette()
  for (const [level, colour] of levelColours(mapLow, mapHigh).entries()) {
    const own = places[level] ?? []
    context.fillStyle = colour
    for (let at = 0; at < own.length; at += 2) context.fillRect(own[at]!, own[at + 1]!, size, size)
  }
  // Not known is hollow: nothing that could be taken for a low value.
  context.strokeStyle = hatch
  context.lineWidth = 1
  context.beginPath()
  for (let at = 0; at < empty.length; at += 2) context.rect(empty[at]! + 0.5, empty[at + 1]! + 0.5, size - 1, size - 1)
  context.stroke()
}

type Shape = (context: CanvasRenderingContext2D, x: number, y: number, size: number) => void

const octagon: Shape = (context, x, y, size) => {
  const cut = size * 0.3
  context.moveTo(x + cut, y)
  context.lineTo(x + size - cut, y)
  context.lineTo(x + size, y + cut)
  context.lineTo(x + size, y + size - cut)
  context.lineTo(x + size - cut, y + size)
  context.lineTo(x + cut, y + size)
  context.lineTo(x, y + size - cut)
  context.lineTo(x, y + cut)
  context.closePath()
}
const triangle: Shape = (context, x, y, size) => {
  context.moveTo(x + size / 2, y)
  context.lineTo(x + size, y + size)
  context.lineTo(x, y + size)
  context.closePath()
}
const circle: Shape = (context, x, y, size) => {
  context.moveTo(x + size, y + size / 2)
  context.arc(x + size / 2, y + size / 2, size / 2, 0, 2 * Math.PI)
}
/** Out of service: struck through. */
const stroke: Shape = (context, x, y, size) => {
  context.moveTo(x, y + size)
  context.lineTo(x + size, y)
}

type Mark = { readonly shape: Shape; readonly colour: 'critical' | 'warning' | 'info' | 'text' }
const marks: Readonly<Record<string, Mark>> = {
  c: { shape: octagon, colour: 'critical' },
  d: { shape: octagon, colour: 'critical' },
  w: { shape: triangle, colour: 'warning' },
  i: { shape: circle, colour: 'info' },
  m: { shape: stroke, colour: 'text' },
}

/** A mark has an edge in the colour of the ground, so that it stands out from any fill; a silenced one is hollow. */
function drawMarks(
  context: CanvasRenderingContext2D,
  { boxes, pitch }: MapLayout,
  groups: readonly DrawnGroup[],
): void {
  const found = new Map<string, Place[]>()
  for (const box of boxes) {
    const own = groups[box.group]?.marks ?? ''
    for (let at = 0; at < box.count; at++) {
      const mark = own[at] ?? '.'
      if (mark === '.') continue
      const place = placeIn(box, pitch, at)
      const known = found.get(mark)
      if (known) known.push(place)
      else found.set(mark, [place])
    }
  }
  const size = pitch - gapOf(pitch)
  const inner = pitch >= SHAPES_FROM ? Math.max(6, size * 0.6) : size
  const inset = (size - inner) / 2
  if (pitch < SHAPES_FROM) {
    // Too small for an edge: the mark stands on the ground instead of the fill.
    context.fillStyle = palette().background
    for (const { x, y } of [...found.values()].flat()) context.fillRect(x, y, size, size)
  }
  for (const [mark, places] of found) {
    const known = marks[mark.toLowerCase()]
    if (known === undefined) continue
    const isHollow = mark !== mark.toLowerCase() || known.shape === stroke
    context.beginPath()
    for (const { x, y } of places) known.shape(context, x + inset, y + inset, inner)
    const colour = palette()[known.colour]
    context.strokeStyle = palette().background
    context.lineWidth = isHollow ? 4 : 2
    if (pitch >= SHAPES_FROM) context.stroke()
    context.fillStyle = colour
    context.strokeStyle = colour
    context.lineWidth = pitch >= SHAPES_FROM ? 2 : 1
    if (isHollow) context.stroke()
    else context.fill()
  }
}

function shortened(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text
  let kept = text.length
  while (kept > 1 && context.measureText(`${text.slice(0, kept)}…`).width > width) kept--
  return `${text.slice(0, kept)}…`
}

function drawCaption(context: CanvasRenderingContext2D, { text, x, y, width, isHeading }: MapCaption): void {
  context.font = `${isHeading ? '600 13px' : '12px'} ${palette().font}`
  context.fillStyle = isHeading ? palette().strong : palette().text
  context.fillText(shortened(context, text, width - 2), x, y + CAPTION_HEIGHT / 2)
}

/** Draws all of it; the canvas takes the size of the layout. */
export function drawMap(canvas: HTMLCanvasElement, layout: MapLayout, groups: readonly DrawnGroup[]): void {
  const ratio = devicePixelRatio
  const [width, height] = [Math.round(layout.width * ratio), Math.round(layout.height * ratio)]
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width
    canvas.height = height
    canvas.style.width = `${layout.width}px`
    canvas.style.height = `${layout.height}px`
  }
  const context = canvas.getContext('2d', { alpha: true })
  if (context === null) return
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, layout.width, layout.height)
  context.textBaseline = 'middle'
  drawFills(context, layout, groups)
  drawMarks(context, layout, groups)
  for (const heading of layout.headings) drawCaption(context, heading)
  for (const { caption } of layout.boxes) if (caption !== null) drawCaption(context, caption)
}
