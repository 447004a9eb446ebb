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

  /** A commit that Redis has acknowledged. */
  add(commit: Commit): void {
    this.commits.push(commit)
    if (this.commits.length > COMMITS_MAX || commit.nowMs - this.commits[0]!.nowMs > 2 * KEPT_MS)
      this.commits = this.commits.slice(-COMMITS_MAX).filter(({ nowMs }) => commit.nowMs - nowMs <= KEPT_MS)
  }

  /** A tenant was purged: what is known of it must not come back. */
  clear(): void {
    this.commits = []
  }

  /** The commits after journal record `mark`, the last one that Redis has; they are forgotten. */
  takeAfter(mark: number): readonly Commit[] {
    const missing = this.commits.filter(commit => commit.mark > mark)
    if (missing.length > 0) this.commits = this.commits.filter(commit => commit.mark <= mark)
    return missing
  }
}
