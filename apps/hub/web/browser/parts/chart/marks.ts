// What is drawn behind and over the lines of a chart: periods of alerts, time that cannot be read, thresholds.
import { merged, type Period, type Severity } from './lines.ts'
import { palette } from './palette.ts'

export type Threshold = {
  readonly name: string
  readonly value: number
  readonly recoverValue: number | null
  readonly severity: Severity
}

/** Time that is not as the rest: `unreadable` beyond the plan, `locked` kept until a grace ends. */
export type Zone = { readonly untilMs: number; readonly kind: 'unreadable' | 'locked' }

/** From one instant to another. */
export type Span = { readonly fromMs: number; readonly toMs: number }

/** The plot as marks see it: pixels of the canvas. */
export type Canvas = {
  readonly context: CanvasRenderingContext2D
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
  readonly ratio: number
  readonly xOf: (atMs: number) => number
  readonly yOf: (value: number) => number
}

const HATCH_GAP = 8
const STRIP = 4

const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value))

function hatch({ context, left, top, width, height, ratio }: Canvas, toX: number, isDense: boolean): void {
  const right = clamp(toX, left, left + width)
  if (right <= left) return
  context.save()
  context.beginPath()
  context.rect(left, top, right - left, height)
  context.clip()
  context.strokeStyle = palette().hatch
  context.lineWidth = ratio
  const gap = HATCH_GAP * ratio * (isDense ? 1 : 2)
  context.beginPath()
  for (let x = left - height; x < right; x += gap) {
    context.moveTo(x, top + height)
    context.lineTo(x + height, top)
  }
  context.stroke()
  context.restore()
}

/** A dashed strip at the top: the time for which a condition held before its alert opened. */
function drawPending({ context, left, top, width, ratio, xOf }: Canvas, { fromMs, toMs }: Span): void {
  const [from, to] = [clamp(xOf(fromMs), left, left + width), clamp(xOf(toMs), left, left + width)]
  if (to <= from) return
  context.save()
  context.strokeStyle = palette().text
  context.lineWidth = STRIP * ratio
  context.setLineDash([3 * ratio, 3 * ratio])
  context.beginPath()
  context.moveTo(from, top + (STRIP * ratio) / 2)
  context.lineTo(to, top + (STRIP * ratio) / 2)
  context.stroke()
  context.restore()
}

type Behind = {
  readonly periods: readonly Period[]
  readonly pending: Span | null
  readonly zones: readonly Zone[]
  readonly nowMs: number
}

/** Drawn before the lines. A period is a pale band with a strip of full colour at the top, never colour alone. */
export function drawBehind(canvas: Canvas, { periods, pending, zones, nowMs }: Behind): void {
  const { context, left, top, width, height, ratio } = canvas
  for (const { untilMs, kind } of zones) hatch(canvas, canvas.xOf(untilMs), kind === 'unreadable')
  if (pending !== null) drawPending(canvas, pending)
  context.save()
  for (const { fromMs, toMs, severity } of merged(periods, nowMs)) {
    const from = clamp(canvas.xOf(fromMs), left, left + width)
    const to = clamp(canvas.xOf(toMs ?? nowMs), left, left + width)
    if (to <= left || from >= left + width) continue
    const wide = Math.max(ratio, to - from)
    context.fillStyle = palette()[severity]
    context.globalAlpha = 0.1
    context.fillRect(from, top, wide, height)
    context.globalAlpha = 1
    context.fillRect(from, top, wide, STRIP * ratio)
  }
  context.restore()
}

const NAME_CHARS_MAX = 40
const LABEL_PIXELS = 13

/** Drawn over the lines: each threshold with its name on it, where it recovers as a thin dotted line. */
export function drawThresholds(
  canvas: Canvas,
  thresholds: readonly Threshold[],
  textOf: (value: number) => string,
): void {
  const { context, left, top, width, height, ratio } = canvas
  const line = (value: number, dash: readonly number[], colour: string): number | null => {
    const y = Math.round(canvas.yOf(value))
    if (!(y >= top - ratio && y <= top + height + ratio)) return null
    context.strokeStyle = colour
    context.setLineDash(dash.map(each => each * ratio))
    context.beginPath()
    context.moveTo(left, y)
    context.lineTo(left + width, y)
    context.stroke()
    return y
  }
  const placed: { readonly y: number; readonly left: number }[] = []
  context.save()
  context.lineWidth = ratio
  context.font = `${11 * ratio}px ${palette().font}`
  context.textAlign = 'right'
  for (const { name, value, recoverValue, severity } of thresholds) {
    const colour = palette()[severity]
    if (recoverValue !== null) line(recoverValue, [1, 4], colour)
    const y = line(value, [6, 3], colour)
    if (y === null) continue
    const short = name.length > NAME_CHARS_MAX ? `${name.slice(0, NAME_CHARS_MAX)}…` : name
    const isNearTop = y - top < 16 * ratio
    context.textBaseline = isNearTop ? 'top' : 'bottom'
    const label = `${short} ${textOf(value)}`
    const labelY = y + (isNearTop ? 2 : -2) * ratio
    const lineTop = isNearTop ? labelY : labelY - LABEL_PIXELS * ratio
    // Beside the labels that stand at this height already.
    const beside = placed.filter(other => Math.abs(other.y - lineTop) < LABEL_PIXELS * ratio).map(other => other.left)
    const x = Math.min(left + width, ...beside) - 6 * ratio
    placed.push({ y: lineTop, left: x - context.measureText(label).width })
    context.setLineDash([])
    context.strokeStyle = palette().background
    context.lineWidth = 3 * ratio
    context.strokeText(label, x, labelY)
    context.lineWidth = ratio
    context.fillStyle = colour
    context.fillText(label, x, labelY)
  }
  context.restore()
}
