// Memory that the listener threads of a process share: which thread owns an agent's session, when the agent was last
// seen and what waits in its buffer, how many series its company has, and the epoch of registry updates that threads
// must have read. Each value is read and written atomically.
import { assert } from '../../../../core/assert.ts'
import type { CompanySeries } from '../../../../core/wire/agent-series.ts'

/**
 * The maximum number of agents and of companies in one process. Memory of unused slots is never touched, so it costs
 * nothing.
 */
export const DIRECTORY_SLOTS = 1_048_576

/** The buffers that are passed to a thread. */
export type DirectoryBuffers = {
  readonly owners: SharedArrayBuffer
  readonly seen: SharedArrayBuffer
  readonly waiting: SharedArrayBuffer
  readonly companies: SharedArrayBuffer
  readonly epoch: SharedArrayBuffer
}

export const newDirectoryBuffers = (): DirectoryBuffers => ({
  owners: new SharedArrayBuffer(DIRECTORY_SLOTS * 4),
  seen: new SharedArrayBuffer(DIRECTORY_SLOTS * 8),
  waiting: new SharedArrayBuffer(DIRECTORY_SLOTS * 16),
  companies: new SharedArrayBuffer(DIRECTORY_SLOTS * 4),
  epoch: new SharedArrayBuffer(4),
})

export class Directory {
  /** The owner of each agent index: 0 = no thread, else the index of the thread + 1. */
  private readonly owners: Int32Array<SharedArrayBuffer>
  private readonly seen: Float64Array<SharedArrayBuffer>
  /** Bytes and batches that wait at each agent. */
  private readonly waiting: Float64Array<SharedArrayBuffer>
  private readonly companies: Int32Array<SharedArrayBuffer>
  private readonly epochCount: Int32Array<SharedArrayBuffer>

  constructor(readonly buffers: DirectoryBuffers) {
    this.owners = new Int32Array(buffers.owners)
    this.seen = new Float64Array(buffers.seen)
    this.waiting = new Float64Array(buffers.waiting)
    this.companies = new Int32Array(buffers.companies)
    this.epochCount = new Int32Array(buffers.epoch)
  }

  /** Claims an agent if no thread owns it. Returns the thread that owns it now. */
  claim(agent: number, thread: number): number {
    const before = Atomics.compareExchange(this.owners, agent, 0, thread + 1)
    return before === 0 ? thread : before - 1
  }

  /** Gives an agent to a thread, or to none (null). Only the owning thread may call this. */
  assign(agent: number, thread: number | null): void {
    Atomics.store(this.owners, agent, thread === null ? 0 : thread + 1)
  }

  /** When a batch of the agent was last acknowledged, ms; 0 = never. */
  lastSeenAtMs(agent: number): number {
    return this.seen[agent]!
  }

  noteSeen(agent: number, atMs: number): void {
    this.seen[agent] = atMs
  }

  /** Bytes that wait at the agent, as it says; -1: it has not said. */
  bufferBytes(agent: number): number {
    return this.waiting[2 * agent]!
  }

  bufferBatches(agent: number): number {
    return this.waiting[2 * agent + 1]!
  }

  noteBuffer(agent: number, bytes: number, batches: number): void {
    this.waiting[2 * agent] = bytes
    this.waiting[2 * agent + 1] = batches
  }

  seriesOf(company: number): SharedCompanySeries {
    return new SharedCompanySeries(this.companies, company)
  }

  /**
   * The number of registry updates that the main thread has broadcast. A thread that has read fewer must read the rest
   * before it authenticates anybody.
   */
  get epoch(): number {
    return Atomics.load(this.epochCount, 0)
  }

  /** Counts one more registry update and returns its number. */
  nextEpoch(): number {
    return (Atomics.add(this.epochCount, 0, 1) + 1) | 0
  }
}

/** Counts the active series of a company over all threads, atomically. */
export class SharedCompanySeries implements CompanySeries {
  constructor(
    private readonly counts: Int32Array<SharedArrayBuffer>,
    readonly company: number,
  ) {}

  get inUse(): number {
    return Atomics.load(this.counts, this.company)
  }

  take(limit: number): boolean {
    for (;;) {
      const inUse = Atomics.load(this.counts, this.company)
      if (limit > 0 && inUse >= limit) return false
      if (Atomics.compareExchange(this.counts, this.company, inUse, inUse + 1) === inUse) return true
    }
  }

  give(places: number): void {
    const before = Atomics.sub(this.counts, this.company, places)
    assert(before >= places, 'a company gives back places that it has')
  }
}
