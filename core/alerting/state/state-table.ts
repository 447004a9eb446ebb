// The states of all (rule, server, series) of one thread, as a struct of arrays: row `i` is one state (document 2
// "Series state key"). Rows of one series are linked by `next`; free rows are linked the same way. 56 bytes a state;
// what only PENDING and FIRING need stands in rows of its own (ActiveTable).
import { assert } from '../../assert.ts'
import { ActiveTable } from './active-table.ts'

export const OK = 0
export const PENDING = 1
export const FIRING = 2

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
  /** Number of the rule's signature when the state began (RuleSlot); another one restarts it. */
  signature: Uint16Array
  /** Index of the rule in the evaluator's rule slots; -1 marks a free row. */
  rule: Int32Array
  /** The next state of the same series, NO_ROW at the end. */
  next: Int32Array
  /** Index of the series in its server, and index of the server. */
  series: Int32Array
  server: Int32Array
  /** Row of the active table; NO_ROW in OK. */
  activeRow: Int32Array
  /** Sample time and value of the last evaluated sample; -Infinity and NaN before the first. */
  lastTsMs: Float64Array
  lastValue: Float64Array
  /**
   * Wall time at which the last sample of the series was received; before the first sample, the time at which the state
   * was created.
   */
  lastReceivedMs: Float64Array
  /** The seq of the state's last event; the next event has one more. */
  seq: Float64Array
  readonly active = new ActiveTable()

  constructor(capacity = 1024) {
    this.capacity = capacity
    this.phase = new Uint8Array(capacity)
    this.flags = new Uint8Array(capacity)
    this.signature = new Uint16Array(capacity)
    this.rule = new Int32Array(capacity)
    this.next = new Int32Array(capacity)
    this.series = new Int32Array(capacity)
    this.server = new Int32Array(capacity)
    this.activeRow = new Int32Array(capacity)
    this.lastTsMs = new Float64Array(capacity)
    this.lastValue = new Float64Array(capacity)
    this.lastReceivedMs = new Float64Array(capacity)
    this.seq = new Float64Array(capacity)
  }

  /** One above the highest row ever used: the bound of a walk over all rows; free ones have rule -1. */
  get end(): number {
    return this.top
  }

  /** Makes room for `count` more rows in one go. */
  reserve(count: number): void {
    const rows = this.top + count
    if (rows > this.capacity) this.grow(Math.max(rows, Math.ceil(this.capacity * GROWTH)))
  }

  /** A fresh row in phase OK that has seen no sample. `seq`: the wall time of its creation (decision G-78). */
  add(rule: number, signature: number, server: number, series: number, seq: number): number {
    let row = this.freeRow
    if (row !== NO_ROW) this.freeRow = this.next[row]!
    else {
      if (this.top === this.capacity) this.grow(Math.ceil(this.capacity * GROWTH))
      row = this.top++
    }
    this.count++
    this.phase[row] = OK
    this.flags[row] = 0
    this.activeRow[row] = NO_ROW
    this.rule[row] = rule
    this.signature[row] = signature
    this.next[row] = NO_ROW
    this.server[row] = server
    this.series[row] = series
    this.seq[row] = seq
    this.reset(row)
    return row
  }

  /** Resets a state to OK without any sample. Rule, series and seq stay. */
  reset(row: number): void {
    this.toOk(row)
    this.lastTsMs[row] = Number.NEGATIVE_INFINITY
    this.lastValue[row] = Number.NaN
    this.lastReceivedMs[row] = 0
  }

  remove(row: number): void {
    assert(this.rule[row] !== -1, 'a state is removed once')
    this.toOk(row)
    this.rule[row] = -1
    this.next[row] = this.freeRow
    this.freeRow = row
    this.count--
  }

  /** Sets the phase to PENDING or FIRING; a state that comes from OK gets an empty row of the active table. */
  toActive(row: number, phase: typeof PENDING | typeof FIRING): void {
    this.phase[row] = phase
    if (this.activeRow[row] === NO_ROW) this.activeRow[row] = this.active.add()
  }

  /**
   * Sets the phase to OK and frees the active row. The caller emits the closing event before, since opening and peak
   * are lost here.
   */
  toOk(row: number): void {
    this.phase[row] = OK
    this.flags[row] = 0
    const activeRow = this.activeRow[row]!
    if (activeRow === NO_ROW) return
    this.active.remove(activeRow)
    this.activeRow[row] = NO_ROW
  }

  /** PENDING: time of the sample that began the violation. FIRING: of the one that began the recovery. NaN = none. */
  sinceTsMs(row: number): number {
    const activeRow = this.activeRow[row]!
    return activeRow === NO_ROW ? Number.NaN : this.active.sinceTsMs[activeRow]!
  }

  /** FIRING: sample time of the opening. */
  openedTsMs(row: number): number {
    const activeRow = this.activeRow[row]!
    return activeRow === NO_ROW ? Number.NaN : this.active.openedTsMs[activeRow]!
  }

  /** FIRING: the worst value since the opening; NaN when it was opened by silence. */
  peak(row: number): number {
    const activeRow = this.activeRow[row]!
    return activeRow === NO_ROW ? Number.NaN : this.active.peak[activeRow]!
  }

  /** FIRING: wall time of the opening or of the last reminder. */
  notifiedAtMs(row: number): number {
    const activeRow = this.activeRow[row]!
    return activeRow === NO_ROW ? 0 : this.active.notifiedAtMs[activeRow]!
  }

  private grow(capacity: number): void {
    this.phase = copied(this.phase, new Uint8Array(capacity))
    this.flags = copied(this.flags, new Uint8Array(capacity))
    this.signature = copied(this.signature, new Uint16Array(capacity))
    this.rule = copied(this.rule, new Int32Array(capacity))
    this.next = copied(this.next, new Int32Array(capacity))
    this.series = copied(this.series, new Int32Array(capacity))
    this.server = copied(this.server, new Int32Array(capacity))
    this.activeRow = copied(this.activeRow, new Int32Array(capacity))
    this.lastTsMs = copied(this.lastTsMs, new Float64Array(capacity))
    this.lastValue = copied(this.lastValue, new Float64Array(capacity))
    this.lastReceivedMs = copied(this.lastReceivedMs, new Float64Array(capacity))
    this.seq = copied(this.seq, new Float64Array(capacity))
    this.capacity = capacity
  }
}

function copied<T extends { set(from: ArrayLike<number>): void }>(from: ArrayLike<number>, to: T): T {
  to.set(from)
  return to
}
