// The states of all (rule, server, series) of one thread, as a struct of arrays: row `i` is one state (document 2 "Series state
// key"). Rows of one series are linked by `next`; free rows are linked the same way.
import { assert } from '../assert.ts'

export const OK = 0
export const PENDING = 1
export const FIRING = 2
export type Phase = typeof OK | typeof PENDING | typeof FIRING

/** The alert was opened by silence, not by a value. */
export const FLAG_NO_DATA = 1

/** No row. */
export const NO_ROW = -1
const GROWTH = 1.5

export class StateTable {
  capacity: number
  /** Rows in use. */
  count = 0
  private freeRow = NO_ROW
  private top = 0

  phase: Uint8Array
  flags: Uint8Array
  /** Index of the rule in the evaluator's rule slots; -1 marks a free row. */
  rule: Int32Array
  /** The signature of the rule when the state began; another one restarts it. */
  signature: Int32Array
  /** The next state of the same series, NO_ROW at the end. */
  next: Int32Array
  /** Index of the series in its server, and index of the server. */
  series: Int32Array
  server: Int32Array
  /** Sample times and values: last evaluated sample. */
  lastTsMs: Float64Array
  lastValue: Float64Array
  /** Wall time at which the last sample of the series was received; before the first one, at which the state began. */
  lastReceivedMs: Float64Array
  /** PENDING: time of the sample that began the violation. FIRING: time of the sample that began the recovery, NaN = none. */
  sinceTsMs: Float64Array
  /** FIRING: time of the opening, and the peak since. */
  openedTsMs: Float64Array
  peak: Float64Array
  /** FIRING: wall time of the opening or of the last reminder. */
  notifiedAtMs: Float64Array
  /** Of the last event of this key; the next has one more. */
  seq: Float64Array

  constructor(capacity = 1024) {
    this.capacity = capacity
    this.phase = new Uint8Array(capacity)
    this.flags = new Uint8Array(capacity)
    this.rule = new Int32Array(capacity).fill(-1)
    this.signature = new Int32Array(capacity)
    this.next = new Int32Array(capacity)
    this.series = new Int32Array(capacity)
    this.server = new Int32Array(capacity)
    this.lastTsMs = new Float64Array(capacity)
    this.lastValue = new Float64Array(capacity)
    this.lastReceivedMs = new Float64Array(capacity)
    this.sinceTsMs = new Float64Array(capacity)
    this.openedTsMs = new Float64Array(capacity)
    this.peak = new Float64Array(capacity)
    this.notifiedAtMs = new Float64Array(capacity)
    this.seq = new Float64Array(capacity)
  }

  /** One above the highest row ever used: the bound of a walk over all rows; free ones have rule -1. */
  get end(): number {
    return this.top
  }

  /** Makes room for `count` more rows in one go. */
  reserve(count: number): void {
    if (this.top + count > this.capacity) this.grow(this.top + count)
  }

  /** A fresh row in phase OK that has seen no sample. `seq`: the wall time of its creation (decision G-78). */
  add(rule: number, signature: number, server: number, series: number, seq: number): number {
    let row = this.freeRow
    if (row !== NO_ROW) this.freeRow = this.next[row]!
    else {
      if (this.top === this.capacity) this.grow(this.top + 1)
      row = this.top++
    }
    this.count++
    this.rule[row] = rule
    this.signature[row] = signature
    this.next[row] = NO_ROW
    this.server[row] = server
    this.series[row] = series
    this.seq[row] = seq
    this.reset(row)
    return row
  }

  /** Back to the start: OK, nothing seen. Rule, series and seq stay. */
  reset(row: number): void {
    this.phase[row] = OK
    this.flags[row] = 0
    this.lastTsMs[row] = Number.NEGATIVE_INFINITY
    this.lastValue[row] = Number.NaN
    this.lastReceivedMs[row] = 0
    this.sinceTsMs[row] = Number.NaN
    this.openedTsMs[row] = Number.NaN
    this.peak[row] = Number.NaN
    this.notifiedAtMs[row] = 0
  }

  remove(row: number): void {
    assert(this.rule[row] !== -1, 'a state is removed once')
    this.rule[row] = -1
    this.next[row] = this.freeRow
    this.freeRow = row
    this.count--
  }

  private grow(rowsMin: number): void {
    const capacity = Math.max(rowsMin, Math.ceil(this.capacity * GROWTH))
    const bytes = (from: Uint8Array) => {
      const to = new Uint8Array(capacity)
      to.set(from)
      return to
    }
    const words = (from: Int32Array) => {
      const to = new Int32Array(capacity)
      to.set(from)
      return to
    }
    const floats = (from: Float64Array) => {
      const to = new Float64Array(capacity)
      to.set(from)
      return to
    }
    this.phase = bytes(this.phase)
    this.flags = bytes(this.flags)
    this.rule = words(this.rule)
    this.signature = words(this.signature)
    this.next = words(this.next)
    this.series = words(this.series)
    this.server = words(this.server)
    this.lastTsMs = floats(this.lastTsMs)
    this.lastValue = floats(this.lastValue)
    this.lastReceivedMs = floats(this.lastReceivedMs)
    this.sinceTsMs = floats(this.sinceTsMs)
    this.openedTsMs = floats(this.openedTsMs)
    this.peak = floats(this.peak)
    this.notifiedAtMs = floats(this.notifiedAtMs)
    this.seq = floats(this.seq)
    this.capacity = capacity
  }
}
