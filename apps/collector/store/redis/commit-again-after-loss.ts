// What a worker committed of a shard in the last minute. A Redis that comes back without its newest writes has
// forgotten alerts of which the hub was told already: they would stay open there for ever. So the worker commits again
// what is missing, under the same event ids; the hub drops what it has.
import type { JournalRecord } from '../../../../core/alerting/durability/journal-record.ts'
import type { AlertEvent } from '../../../../core/alerting/evaluate/event.ts'

const KEPT_MS = 60_000
const COMMITS_MAX = 5_000

/** Events and the states behind them, as they were handed over; `mark` is the number of the last journal record. */
type Commit = {
  readonly events: readonly AlertEvent[]
  readonly journal: readonly JournalRecord[]
  readonly position: number
  readonly nowMs: number
  readonly mark: number
}

export class RecentCommits {
  private commits: Commit[] = []
  private readonly begun = new Set<Commit>()

  /** A commit that is on its way. */
  begin(commit: Commit): void {
    this.begun.add(commit)
  }

  /** A commit that Redis has acknowledged. */
  add(commit: Commit): void {
    this.begun.delete(commit)
    this.commits.push(commit)
    if (this.commits.length > COMMITS_MAX || commit.nowMs - this.commits[0]!.nowMs > 2 * KEPT_MS)
      this.commits = this.commits.slice(-COMMITS_MAX).filter(({ nowMs }) => commit.nowMs - nowMs <= KEPT_MS)
  }

  /** A tenant was purged: what is known of it must not come back. */
  clear(): void {
    this.commits = []
    this.begun.clear()
  }

  /**
   * For a Redis that has lost all: what it acknowledged in the minute before the evaluation ended, and what it never
   * did; they are forgotten.
   */
  takeBefore(endedAtMs: number): readonly Commit[] {
    const all = [...this.commits, ...this.begun].filter(({ nowMs }) => nowMs >= endedAtMs - KEPT_MS)
    this.clear()
    return all
  }

  /**
   * The commits after journal record `mark`, the last one that Redis has; they are forgotten, and so is what Redis
   * never acknowledged: what led to it is on the bus.
   */
  takeAfter(mark: number): readonly Commit[] {
    this.begun.clear()
    const missing = this.commits.filter(commit => commit.mark > mark)
    if (missing.length > 0) this.commits = this.commits.filter(commit => commit.mark <= mark)
    return missing
  }
}
