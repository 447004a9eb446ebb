// How far apart commits of the bus are: a commit costs as much as the rest of what ingest does for a batch, so of a
// fleet that sends slowly a few batches share one; of a fast fleet many do anyway, and agents are answered sooner.

/** However many entries come. */
const GROUP_WAIT_MIN_MS = 2
/**
 * On a disk a commit, with the timer before it, costs as much as ingest does for one or two entries: it waits for about
 * twelve, which leaves a tenth of that to each, yet no longer than this. Agents do not mind a few milliseconds.
 */
export const GROUP_ENTRIES = 12
export const GROUP_WAIT_MS = 12
/**
 * Over Redis a commit costs ingest, Redis and the workers together as much as twenty entries in it do, so it waits for
 * about three times as many, yet no longer than this. An agent does not mind that; beside the workers' poll of 50 ms an
 * alert is hardly later.
 */
export const REDIS_GROUP_ENTRIES = 64
export const REDIS_GROUP_WAIT_MS = 25
/** The rate is that of about so long. */
const RATE_MS = 100
/**
 * Senders that wait for their answers before they send more, as the few connections of a proxy or an agent with a
 * backlog do, come right after a commit, and then nobody does. Of a fleet somebody comes all the time. Where so large a
 * part of the wait is silent in its end, of the last ten commits or so, it is waited in vain.
 */
const SILENT_PART_MAX = 0.6
const COMMITS_WEIGHED = 10

export class CommitPace {
  /** Earliest time of the next commit, on the monotonic clock. */
  private fromMs = 0
  private committedAtMs = 0
  private arrivedAtMs = 0
  private entriesAMs = 0
  private silentPart = 0

  /**
   * The time between two commits is that in which about `groupEntries` come, at least 2 ms and at most `groupWaitMs`;
   * entries that come sooner are committed together. Where it is waited in vain, it is 2 ms.
   */
  constructor(
    private readonly groupWaitMs: number,
    private readonly groupEntries: number,
  ) {}

  /** An entry came. */
  arrived(): void {
    this.arrivedAtMs = performance.now()
  }

  /** A commit of so many entries is made. */
  committed(count: number): void {
    const nowMs = performance.now()
    const waitMs = this.fromMs - this.committedAtMs
    const silentMs = Math.max(0, this.fromMs - Math.max(this.arrivedAtMs, this.committedAtMs))
    if (waitMs > 0) this.silentPart += (silentMs / waitMs - this.silentPart) / COMMITS_WEIGHED
    this.entriesAMs = this.entriesAMs * Math.exp((this.committedAtMs - nowMs) / RATE_MS) + count / RATE_MS
    this.committedAtMs = nowMs
    this.fromMs = nowMs + this.nextWaitMs
  }

  private get nextWaitMs(): number {
    const { groupWaitMs, groupEntries, entriesAMs, silentPart } = this
    const enoughMs = silentPart > SILENT_PART_MAX ? 0 : groupEntries / entriesAMs
    return Math.min(groupWaitMs, Math.max(GROUP_WAIT_MIN_MS, enoughMs))
  }

  /** How long the next commit waits. */
  get waitMs(): number {
    return Math.max(0, this.fromMs - performance.now())
  }
}
