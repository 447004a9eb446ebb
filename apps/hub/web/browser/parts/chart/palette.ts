// The colours and dash patterns of charts, read from the style sheet, so that light, dark and forced colours hold.
import { signal } from '@preact/signals'

const COLOURS = 8
/** Lines from the fifth on differ by their pattern too, so that nobody has to tell eight colours apart. */
const DASHES: readonly (readonly number[])[] = [[], [7, 4], [2, 3], [9, 3, 2, 3], [14, 4]]

export type ChartPalette = {
  readonly lines: readonly string[]
  readonly text: string
  readonly strong: string
  readonly grid: string
  readonly hatch: string
  readonly background: string
  readonly critical: string
  readonly warning: string
  readonly info: string
  readonly font: string
  /** The ends of the scale that a host map is filled by. */
  readonly mapLow: string
  readonly mapHigh: string
}

function readPalette(): ChartPalette {
  const style = getComputedStyle(document.documentElement)
  const colour = (name: string): string => style.getPropertyValue(name).trim()
  return {
    lines: Array.from({ length: COLOURS }, (_, index) => colour(`--line-${index + 1}`)),
    text: colour('--muted'),
    strong: colour('--text'),
    grid: colour('--border'),
    hatch: colour('--control'),
    background: colour('--surface'),
    critical: colour('--critical'),
    warning: colour('--warning'),
    info: colour('--info'),
    font: colour('--font'),
    mapLow: colour('--map-low'),
    mapHigh: colour('--map-high'),
  }
}

let known: ChartPalette | null = null
/** Raised when colours have changed: what is drawn is drawn anew. */
export const paletteVersion = signal(0)

export function palette(): ChartPalette {
  if (known !== null) return known
  const forget = () => {
    known = null
    paletteVersion.value++
  }
  if (paletteVersion.peek() === 0) {
    for (const query of ['(prefers-color-scheme: dark)', '(forced-colors: active)', 'print'])
      matchMedia(query).addEventListener('change', forget)
    new MutationObserver(forget).observe(document.documentElement, { attributes: true })
  }
  known = readPalette()
  return known
}

export const lineColour = (index: number): string => palette().lines[index % COLOURS] ?? 'currentColor'
/** Four plain lines, then a pattern each four; after twenty they begin again. */
export const lineDash = (index: number): readonly number[] => DASHES[Math.floor(index / 4) % DASHES.length] ?? []
/** The name of a line's look in the style sheet: the same colour and pattern beside its name. */
export const lineLook = (index: number): { readonly colour: number; readonly dash: number } => ({
  colour: (index % COLOURS) + 1,
  dash: Math.floor(index / 4) % DASHES.length,
})
