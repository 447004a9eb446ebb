// How often an address may enroll and be wrong, and how often a host may call (MAT-041).
import { type ApiError, rateLimited } from '../../http/api-error.ts'
import { FixedWindows } from '../../http/fixed-windows.ts'
import type { MatcherConfig } from '../config.ts'

const MINUTE_MS = 60_000
const FAILURES_WINDOW_MS = 10 * MINUTE_MS

type LimitKeys = Pick<MatcherConfig, 'limits.enroll_per_minute' | 'limits.enroll_failures' | 'limits.host_per_minute'>

export class CallRates {
  private readonly enrollments: FixedWindows
  private readonly wrongCodes: FixedWindows
  private readonly calls: FixedWindows

  constructor(
    private readonly config: LimitKeys,
    nowMs: () => number,
  ) {
    this.enrollments = new FixedWindows(MINUTE_MS, nowMs)
    this.wrongCodes = new FixedWindows(FAILURES_WINDOW_MS, nowMs)
    this.calls = new FixedWindows(MINUTE_MS, nowMs)
  }

  /** Counts an enrollment of an address. */
  enrollmentFault(address: string): ApiError | null {
    const failures = this.wrongCodes.peek(address, this.config['limits.enroll_failures'])
    if (!failures.allowed) return rateLimited(failures.retryAfterSeconds)
    const taken = this.enrollments.take(address, this.config['limits.enroll_per_minute'])
    return taken.allowed ? null : rateLimited(taken.retryAfterSeconds)
  }

  /** The hub does not know the code. */
  countWrongCode(address: string): void {
    this.wrongCodes.take(address, this.config['limits.enroll_failures'])
  }

  /** Counts a call that a host has signed. */
  callFault(hostId: string): ApiError | null {
    const taken = this.calls.take(hostId, this.config['limits.host_per_minute'])
    return taken.allowed ? null : rateLimited(taken.retryAfterSeconds)
  }
}
