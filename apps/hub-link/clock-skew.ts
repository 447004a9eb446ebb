// When a process that serves the hub warns that its clock and the hub's differ, and how often.
import { limits } from '../../core/limits.ts'

const WARN_PERIOD_MS = 10 * 60_000

export class ClockComparison {
  private toldAtMs = Number.NEGATIVE_INFINITY

  /** The hub's time is compared with the middle of the call. Null where it cannot be read. */
  compare(
    serverTime: string,
    sentAtMs: number,
    gotAtMs: number,
  ): { readonly skewMs: number; readonly isToBeTold: boolean } | null {
    const hubMs = Date.parse(serverTime)
    if (Number.isNaN(hubMs)) return null
    const skewMs = hubMs - (sentAtMs + gotAtMs) / 2
    const isToBeTold = Math.abs(skewMs) > limits.clockSkewWarnMs && gotAtMs - this.toldAtMs >= WARN_PERIOD_MS
    if (isToBeTold) this.toldAtMs = gotAtMs
    return { skewMs, isToBeTold }
  }
}
