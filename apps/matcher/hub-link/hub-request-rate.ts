// At most 590 requests a minute to the hub, whatever minute is looked at (MAT-170): the hub takes 600. Events leave
// some of them to what people and agents wait for, and what the hub is told in passing leaves some to events.
import { assert } from '../../../core/assert.ts'

const WINDOW_MS = 60_000
const REQUESTS_MAX = 590

/** How many of the requests of a minute there may be before one of this kind waits. */
const shares = { waited: REQUESTS_MAX, events: 560, passing: 480 } as const
export type PaceKind = keyof typeof shares

export class Pace {
  /** When the last requests were, by performance.now(); a ring. */
  private readonly times = new Float64Array(REQUESTS_MAX).fill(Number.NEGATIVE_INFINITY)
  private next = 0

  constructor(private readonly nowMs: () => number = () => performance.now()) {}

  /** Takes a request: 0, or the ms until one of this kind may be made. */
  take(kind: PaceKind): number {
    const nowMs = this.nowMs()
    const share = shares[kind]
    // The request that was `share` requests ago must lie a minute back.
    const before = this.times[(this.next - share + 2 * REQUESTS_MAX) % REQUESTS_MAX]
    assert(before !== undefined, 'the ring has a place for each request of a minute')
    const waitMs = before + WINDOW_MS - nowMs
    if (waitMs > 0) return Math.ceil(waitMs)
    this.times[this.next] = nowMs
    this.next = (this.next + 1) % REQUESTS_MAX
    return 0
  }
}
