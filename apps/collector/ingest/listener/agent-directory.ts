// What the listener threads of a process share in memory: which thread has an agent, when it was last seen, how many
// series its company sends, and how far the threads must be with the news of the registry. Plain words that are read
// and written in one step each.
import { assert } from '../../../../core/assert.ts'
import type { CompanySeries } from '../../../../core/wire/agent-series.ts'

/** Agents and companies that one process can tell apart; the memory of places that are not in use is never touched. */
export const DIRECTORY_SLOTS = 1_048_576

/** What is handed to a thread. */
export type DirectoryBuffers = {
  readonly owners: SharedArrayBuffer
  readonly seen: SharedArrayBuffer
  readonly companies: SharedArrayBuffer
  readonly epoch: SharedArrayBuffer
}

export const newDirectoryBuffers = (): DirectoryBuffers => ({
  owners: new SharedArrayBuffer(DIRECTORY_SLOTS * 4),
  seen: new SharedArrayBuffer(DIRECTORY_SLOTS * 8),
  companies: new SharedArrayBuffer(DIRECTORY_SLOTS * 4),
  epoch: new SharedArrayBuffer(4),
})

export class Directory {
  /** By agentIndex of an agent: 0 = no thread has it, else the index of the thread + 1. */
  private readonly owners: Int32Array<SharedArrayBuffer>
  private readonly seen: Float64Array<SharedArrayBuffer>
  private readonly companies: Int32Array<SharedArrayBuffer>
  private readonly epochCount: Int32Array<SharedArrayBuffer>

  constructor(readonly buffers: DirectoryBuffers) {
    this.owners = new Int32Array(buffers.owners)
    this.seen = new Float64Array(buffers.seen)
    this.companies = new Int32Array(buffers.companies)
    this.epochCount = new Int32Array(buffers.epoch)
  }

  /** Takes an agent that no thread has. Returns the thread that has it now. */
  claim(agent: number, thread: number): number {
    const before = Atomics.compareExchange(this.owners, agent, 0, thread + 1)
    return before === 0 ? thread : before - 1
  }

  /** Names the thread that is to have an agent, or nobody (null). Only for the thread that has it. */
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

  seriesOf(company: number): SharedCompanySeries {
    return new SharedCompanySeries(this.companies, company)
  }

  /**
   * How many pieces of news the main thread has sent: a thread that has read fewer reads on before it lets anybody in.
   */
  get epoch(): number {
    return Atomics.load(this.epochCount, 0)
  }

  /** Counts a piece of news. Returns its number. */
  nextEpoch(): number {
    return (Atomics.add(this.epochCount, 0, 1) + 1) | 0
  }
}

/** Series of a company over all threads: a agentIndex is taken or it is not, whoever asks at the same time. */
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
