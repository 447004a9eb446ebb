// A host map: a cell for each server on a canvas, with a cursor for pointer and keys. What the cursor stands on is said
// by the page; a table beside it says the same to who does not see a picture.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { mapWords } from '../../../words/map.ts'
import { textsOf } from '../../session.ts'
import { paletteVersion } from '../chart/palette.ts'
import { type DrawnGroup, drawMap } from './draw-map.ts'
import {
  captionAt,
  cellAt,
  cellOfNextGroup,
  layoutMap,
  type MapCaption,
  type MapLayout,
  neighbour,
  placeOfCell,
} from './map-layout.ts'
import './host-map.css'

const t = textsOf(mapWords)

type Props = {
  readonly label: string
  readonly groups: readonly (DrawnGroup & { readonly captions: readonly string[] })[]
  /** The cell that is looked at; null: none. */
  readonly cell: number | null
  readonly onCell: (cell: number | null) => void
  readonly onOpen: (cell: number) => void
  /** A caption was pressed: of both keys of the group, or of the first alone. */
  readonly onCaption: (caption: MapCaption) => void
}

const SPACE_BELOW = 24
const HEIGHT_MIN = 320
const steps = { ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up', ArrowDown: 'down' } as const

/** The width that a map has, and the height that is seen of it. */
function useSpace(place: { readonly current: HTMLElement | null }): { width: number; height: number } {
  const [space, setSpace] = useState({ width: 0, height: 0 })
  useLayoutEffect(() => {
    const element = place.current
    if (element === null) return
    const measure = () => {
      const top = element.getBoundingClientRect().top + scrollY
      const [width, height] = [element.clientWidth, Math.max(HEIGHT_MIN, innerHeight - top - SPACE_BELOW)]
      setSpace(before => (before.width === width && before.height === height ? before : { width, height }))
    }
    measure()
    const resized = new ResizeObserver(measure)
    resized.observe(element)
    addEventListener('resize', measure)
    return () => {
      resized.disconnect()
      removeEventListener('resize', measure)
    }
  }, [place])
  return space
}

/** The cell that a key leads to; null: the key means nothing here. */
function movedBy(key: string, layout: MapLayout, cell: number, count: number): number | null {
  if (key in steps) return cell < 0 ? 0 : neighbour(layout, cell, steps[key as keyof typeof steps])
  if (key === 'Home') return 0
  if (key === 'End') return count - 1
  if (key === 'PageUp' || key === 'PageDown')
    return cellOfNextGroup(layout, Math.max(0, cell), key === 'PageUp' ? -1 : 1)
  return null
}

/** Draws when cells or colours have changed. */
function useDrawn(
  canvas: { readonly current: HTMLCanvasElement | null },
  layout: MapLayout,
  groups: readonly DrawnGroup[],
): void {
  const draw = () => {
    if (canvas.current !== null && layout.width > 0) drawMap(canvas.current, layout, groups)
  }
  useLayoutEffect(draw, [layout, groups])
  useEffect(() => paletteVersion.subscribe(draw), [layout, groups])
}

export function HostMap({ label, groups, cell, onCell, onOpen, onCaption }: Props) {
  const place = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const cursor = useRef<HTMLDivElement>(null)
  const { width, height } = useSpace(place)
  const shape = JSON.stringify(groups.map(({ captions, levels }) => [captions, levels.length]))
  const layout = useMemo(
    () =>
      layoutMap(
        groups.map(({ captions, levels }) => ({ captions, count: levels.length })),
        width,
        height,
      ),
    [shape, width, height],
  )
  const count = groups.reduce((sum, { levels }) => sum + levels.length, 0)
  useDrawn(canvas, layout, groups)
  useLayoutEffect(() => showCursor(cursor.current, layout, cell), [layout, cell])
  const at = (event: MouseEvent): { readonly x: number; readonly y: number } => {
    const box = canvas.current?.getBoundingClientRect()
    return { x: event.clientX - (box?.left ?? 0), y: event.clientY - (box?.top ?? 0) }
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const next = movedBy(event.key, layout, cell ?? -1, count)
    if (next !== null) {
      onCell(next)
      requestAnimationFrame(() => cursor.current?.scrollIntoView({ block: 'nearest' }))
    } else if (event.key === 'Enter' && cell !== null) onOpen(cell)
    else if (event.key === 'Escape' && cell !== null) onCell(null)
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div
      class="host-map"
      ref={place}
      role="application"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: an application takes the keys, as arrows move its cursor.
      tabIndex={0}
      aria-label={label}
      aria-roledescription={t('role')}
      aria-describedby="map-cell"
      onKeyDown={onKeyDown}
      onFocus={() => {
        if (cell === null) onCell(0)
      }}
      onMouseMove={event => {
        const { x, y } = at(event)
        const pointed = cellAt(layout, x, y)
        if (pointed !== null) onCell(pointed)
        if (place.current)
          place.current.dataset.over = pointed !== null || captionAt(layout, x, y) !== null ? 'yes' : 'no'
      }}
      onClick={event => {
        const { x, y } = at(event)
        const pressed = cellAt(layout, x, y)
        const caption = captionAt(layout, x, y)
        // A finger points first: what it stands on is said with a link.
        if (pressed !== null && event instanceof PointerEvent && event.pointerType === 'touch') onCell(pressed)
        else if (pressed !== null) onOpen(pressed)
        else if (caption !== null) onCaption(caption)
      }}
    >
      <canvas ref={canvas} />
      <div class="map-cursor" ref={cursor} hidden={cell === null} aria-hidden="true" />
    </div>
  )
}

function showCursor(element: HTMLElement | null, layout: MapLayout, cell: number | null): void {
  const place = cell === null ? null : placeOfCell(layout, cell)
  if (element === null || place === null) return
  element.style.transform = `translate(${place.x}px, ${place.y}px)`
  element.style.width = `${layout.pitch - 1}px`
  element.style.height = `${layout.pitch - 1}px`
}
