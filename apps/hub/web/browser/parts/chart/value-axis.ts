// From where to where the value axis of a chart goes.

const PERCENT_WHOLE_FROM = 25

/** What of a plot decides its axis. */
type Axis = {
  /** As the catalogue names it. */
  readonly unit: string | null
  readonly thresholds: readonly { readonly value: number }[]
  /** The scale reaches at least that far. */
  readonly scaleMax: number
}

/** From zero, unless values are below; percent ends at 100 unless all of it happens far below. */
export function valueRange(
  { unit, thresholds, scaleMax }: Axis,
  min: number | null,
  max: number | null,
): [number, number] {
  const [low, high] = [Math.min(0, min ?? 0), Math.max(scaleMax, max ?? 1)]
  if (unit === 'percent' && (high > PERCENT_WHOLE_FROM || thresholds.length > 0)) return [low, Math.max(100, high)]
  if (unit === 'bool') return [0, 1]
  // A threshold that is near is shown with its line; one far above would press the line to the ground.
  const near = thresholds.map(({ value }) => value).filter(value => value > high && value <= high * 2.5)
  const top = Math.max(high, ...near)
  return [low, top > low ? top + (top - low) * 0.06 : low + 1]
}
