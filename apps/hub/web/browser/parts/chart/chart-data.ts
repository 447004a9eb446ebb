// What a chart is given to show.
import type { ChartLine, TimeGrid } from './lines.ts'

export type ChartData = TimeGrid & {
  readonly fromMs: number
  readonly toMs: number
  readonly lines: readonly ChartLine[]
  /** What the lines were so many days before, by their keys, on the same grid. */
  readonly past: { readonly days: number; readonly lines: ReadonlyMap<string, readonly (number | null)[]> } | null
  readonly readableFromMs: number | null
  readonly lockedBeforeMs: number | null
}
