// When the hub is taken to be away, and for how long: scan hosts that would wait for it are then answered at once.
import { backoffMs } from '../../../core/backoff.ts'

/** After so many calls in a row without an answer. */
const BREAK_AFTER = 5
const BREAK = { startMs: 1_000, capMs: 10_000 }

export class HubBreaker {
  private failures = 0
  private openUntilMs = 0

  /** True while the hub is not to be waited for. */
  get isOpen(): boolean {
    return performance.now() < this.openUntilMs
  }

  /** What became of a call. */
  note(isAway: boolean): void {
    this.failures = isAway ? this.failures + 1 : 0
    this.openUntilMs =
      this.failures < BREAK_AFTER ? 0 : performance.now() + backoffMs(BREAK, this.failures - BREAK_AFTER + 1)
  }
}
