// How far apart commits of the bus are: a commit costs as much as the rest of what ingest does for a batch, so of a
// fleet that sends slowly a few batches share one; of a fast fleet many do anyway, and agents are answered sooner.

/** The minimum time between two commits that suits a host. */
export const GROUP_WAIT_MS = 5
/** From this rate on many entries share a commit anyway, and agents are answered sooner. */
const FAST_ENTRIES_A_MS = 0.6
const FAST_GROUP_WAIT_MS = 2
/**
 * Over Redis a commit costs ingest and Redis together as much as eight entries in it do, so it waits for about so many,
 * yet no longer than this. An agent does not mind that; beside the workers' poll of 50 ms an alert is hardly later.
 */
export const REDIS_GROUP_ENTRIES = 8
export const REDIS_GROUP_WAIT_MS = 15
/** The rate is that of about so long. */
const RATE_MS = 100

export class CommitPace {
  /** Earliest time of the next commit, on the monotonic clock. */
  private fromMs = 0
  private committedAtMs = 0
  private entriesAMs = 0

  /**
   * `groupWaitMs` is the minimum time between two commits; entries that come sooner are committed together. At high
   * rates it is at most 2 ms, or with `groupEntries` the time in which so many come, but no less than 2 ms.
   */
  constructor(
    private readonly groupWaitMs: number,
    private readonly groupEntries: number | null = null,
  ) {}

  /** A commit of so many entries is made. */
  committed(count: number): void {
    const nowMs = performance.now()
    this.entriesAMs = this.entriesAMs * Math.exp((this.committedAtMs - nowMs) / RATE_MS) + count / RATE_MS
    this.committedAtMs = nowMs
    this.fromMs = nowMs + this.nextWaitMs
  }

  private get nextWaitMs(): number {
    const { groupWaitMs, groupEntries, entriesAMs } = this
    const isFast = entriesAMs >= FAST_ENTRIES_A_MS
    const enoughMs = groupEntries === null ? (isFast ? 0 : groupWaitMs) : groupEntries / entriesAMs
    return Math.min(groupWaitMs, Math.max(FAST_GROUP_WAIT_MS, enoughMs))
  }

  /** How long the next commit waits. */
  get waitMs(): number {
    return Math.max(0, this.fromMs - performance.now())
  }
}
