import { BITS, splitDecimal } from '../../core/samples/block/decimal.ts'

export type Point = readonly [tsMs: number, value: number]

/** Runs of points of every form: short decimals, whole numbers large and small, doubles, with and without a step. */
export function randomRuns(random: () => number, startMs: number, count: number, pointsMax: number): Point[][] {
  const below = (bound: number): number => Math.floor(random() * bound)
  const values: readonly (() => number)[] = [
    () => below(100) / 100,
    () => below(20),
    () => 7,
    () => below(2 ** (8 * (1 + below(4)))),
    () => 1e12 + below(70_000),
    () => -below(70_000) / 10_000,
    () => below(2 ** 31) * 2 ** 22,
    () => (random() < 0.5 ? -1 : 1) * (2 ** 53 - below(3)),
    () => random() * 10 ** (below(600) - 300),
    () => 0.000001 * below(10),
  ]
  return Array.from({ length: count }, () => {
    const kinds = Array.from({ length: 1 + below(2) }, () => values[below(values.length)]!)
    const stepMs = random() < 0.7 ? 1 + below(60_000) : 0
    let tsMs = startMs + below(1_000)
    return Array.from({ length: 1 + below(random() < 0.01 ? pointsMax : Math.min(30, pointsMax)) }, () => {
      tsMs += stepMs || 1 + below(90_000)
      return [tsMs, kinds[below(kinds.length)]!()] as const
    })
  })
}

/** The points as a row had them before 0006_shapes.sql. */
export function olderPoints(points: readonly Point[]): Uint8Array {
  const more = points.length - 1
  const digits = new Float64Array(points.length)
  const decimals = points.map(([, value], at) => splitDecimal(value, at, digits))
  const places = Math.max(...decimals)
  const whole = decimals.map((own, at) => (places === BITS ? 0 : Math.round(digits[at]! * 10 ** (places - own))))
  const isBits = places === BITS || whole.some(value => Math.abs(value) > 2 ** 52)
  const changes = isBits ? [] : whole.slice(1).map((value, at) => value - whole[at]!)
  const fits = (bits: number): boolean =>
    changes.every(change => change >= -(2 ** (bits - 1)) && change < 2 ** (bits - 1))
  const width = changes.every(change => change === 0) ? 0 : ([1, 2, 4].find(bytes => fits(8 * bytes)) ?? 8)
  const valueBytes = isBits ? 8 : width
  const steps = new Set(points.slice(1).map(([tsMs], at) => tsMs - points[at]![0]))
  const step = steps.size === 1 ? [...steps][0]! : 0
  const view = new DataView(new ArrayBuffer(more === 0 ? 9 : 16 + more * (valueBytes + (step === 0 ? 4 : 0))))
  view.setUint8(0, isBits ? BITS : places)
  if (isBits) view.setFloat64(1, points[0]![1], true)
  else view.setBigInt64(1, BigInt(whole[0]!), true)
  if (more === 0) return new Uint8Array(view.buffer)
  view.setUint8(9, isBits ? BITS : width)
  view.setUint16(10, more, true)
  view.setUint32(12, step, true)
  for (let point = 1; point <= more; point++) {
    const at = 16 + (point - 1) * valueBytes
    const change = changes[point - 1] ?? 0
    if (isBits) view.setFloat64(at, points[point]![1], true)
    else if (width === 1) view.setInt8(at, change)
    else if (width === 2) view.setInt16(at, change, true)
    else if (width === 4) view.setInt32(at, change, true)
    else if (width === 8) view.setBigInt64(at, BigInt(change), true)
    if (step === 0) view.setUint32(16 + more * valueBytes + (point - 1) * 4, points[point]![0] - points[0]![0], true)
  }
  return new Uint8Array(view.buffer)
}
