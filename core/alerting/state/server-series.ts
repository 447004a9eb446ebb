// What evaluation keeps of one server: its series in the order in which the agent sends them, and the first state of
// each. A series without a state costs its id and one word.

import type { CompanyRules } from '../rules/rule-set.ts'

/**
 * Values of `head` for a series without a state, beside NO_ROW (no rule covers it). A series with one of these is bound
 * at its next sample. TO_BIND: the rules changed, or its states were removed. UNSEEN: it was not sent since the last
 * check of `dropUnseen`. UNDEFINED: its key is not known.
 */
export const TO_BIND = -2
export const UNSEEN = -3
export const UNDEFINED = -4

type PresenceState = 'unknown' | 'up' | 'down'

/** Presence of the agent that sends for the server. */
export type Presence = {
  agentId: string
  /** The last four bytes of the agent id as on the bus: a cheap check whether the agent is still the same. */
  agentWord: number
  state: PresenceState
  /** Wall time at which the last valid batch was received; 0 = never. */
  lastSeenMs: number
  /** Seconds (decision G-81). */
  intervalSeconds: number
  /** When the agent was declared lost; 0 = it is not lost. */
  downSinceMs: number
  /** The seq of the last agent event. */
  seq: number
}

const GROWTH = 1.25
const noIds = new Uint32Array(0)
const noHeads = new Int32Array(0)

export class ServerSeries {
  count = 0
  /** (lo, hi) of each series. */
  ids = noIds
  /** First state of each series, or why there is none. */
  head = noHeads
  /** The rules that the series are bound to; null = they must be bound again. */
  boundTo: CompanyRules | null = null
  /** The number of states of this server. */
  stateCount = 0
  lastBatchMs = 0
  /** The highest seq of a state that was removed: one that is made anew goes on above it, wherever the clock stands. */
  removedSeq = 0
  readonly presence: Presence

  constructor(
    /** The 16 bytes of the server id as code units, as the bus reader makes them. */
    readonly key: string,
    readonly companyId: string,
    readonly serverId: string,
    readonly shard: number,
    readonly index: number,
    agentId: string,
  ) {
    this.presence = {
      agentId,
      agentWord: -1,
      state: 'unknown',
      lastSeenMs: 0,
      intervalSeconds: 0,
      downSinceMs: 0,
      seq: 0,
    }
  }

  /** Index of a series, or -1; the search begins at `from`. */
  find(lo: number, hi: number, from = 0): number {
    const { ids, count } = this
    for (let step = 0; step < count; step++) {
      const index = (from + step) % count
      if (ids[index * 2] === lo && ids[index * 2 + 1] === hi) return index
    }
    return -1
  }

  /** Adds a series, UNDEFINED until it is bound; returns its index. */
  add(lo: number, hi: number): number {
    const index = this.count++
    if (index === this.head.length) this.grow(Math.max(index + 4, Math.ceil(index * GROWTH)))
    this.ids[index * 2] = lo
    this.ids[index * 2 + 1] = hi
    this.head[index] = UNDEFINED
    return index
  }

  /** Makes room for `count` series in all. */
  reserve(count: number): void {
    if (this.head.length < count) this.grow(count)
  }

  /** Moves a series to a place before it. */
  move(from: number, to: number): void {
    this.ids[to * 2] = this.ids[from * 2]!
    this.ids[to * 2 + 1] = this.ids[from * 2 + 1]!
    this.head[to] = this.head[from]!
  }

  lo(index: number): number {
    return this.ids[index * 2]!
  }

  hi(index: number): number {
    return this.ids[index * 2 + 1]!
  }

  private grow(capacity: number): void {
    const ids = new Uint32Array(capacity * 2)
    ids.set(this.ids)
    this.ids = ids
    const head = new Int32Array(capacity)
    head.set(this.head)
    this.head = head
  }
}
