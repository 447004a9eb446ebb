// How far apart commits of the bus are: a commit costs as much as the rest of what ingest does for a batch, so of a
// fleet that sends slowly a few batches share one; of a fast fleet many do anyway, and agents are answered sooner.

/** The minimum time between two commits that suits a host. */
export const GROUP_WAIT_MS = 5
/** From this rate on many entries share a commit anyway, and agents are answered sooner. */
const FAST_ENTRIES_A_MS = 0.6
const FAST_GROUP_WAIT_MS = 2
/** The rate is that of about so long. */
const RATE_MS = 100

export class CommitPace {
  /** Earliest time of the next commit, on the monotonic clock. */
  private fromMs = 0
  private committedAtMs = 0
  private entriesAMs = 0

  /**
   * `groupWaitMs` is the minimum time between two commits; entries that come sooner are committed together. At high
   * rates it is at most 2 ms.
   */
  constructor(private readonly groupWaitMs: number) {}

  /** A commit of so many entries is made. */
  committed(count: number): void {
    const nowMs = performance.now()
    this.entriesAMs = this.entriesAMs * Math.exp((this.committedAtMs - nowMs) / RATE_MS) + count / RATE_MS
    this.committedAtMs = nowMs
    const isFast = this.entriesAMs >= FAST_ENTRIES_A_MS
    this.fromMs = nowMs + (isFast ? Math.min(this.groupWaitMs, FAST_GROUP_WAIT_MS) : this.groupWaitMs)
  }

  /** How long the next commit waits. */
  get waitMs(): number {
    return Math.max(0, this.fromMs - performance.now())
  }
}
