// Rates of one agent (document 3 "Limits"; decision G-55): a token bucket kept as one number, the instant at which it
// would be full again. A bucket starts full and refills evenly, so the wait of a refused request is known exactly.

/** A rate: `perMinute` requests (or bytes) a minute, `capacity` of them at once. */
export class RateLimit {
  readonly periodMs: number
  readonly windowMs: number

  constructor(perMinute: number, capacity: number) {
    this.periodMs = 60_000 / perMinute
    this.windowMs = this.periodMs * capacity
  }
}

export class RateBucket {
  private fullAt = 0

  /** The bucket as one number, for another thread; `restore` takes it there. 0 = full. */
  get fullAtMs(): number {
    return this.fullAt
  }

  restore(fullAtMs: number): void {
    this.fullAt = fullAtMs
  }

  /** Takes one request. Returns 0, or the whole seconds until the next one would be taken. */
  take(limit: RateLimit, nowMs: number): number {
    // A clock that was set back must not lock an agent out for longer than an empty bucket does.
    const fullAtMs = Math.min(Math.max(this.fullAt, nowMs), nowMs + limit.windowMs)
    this.fullAt = fullAtMs
    const waitMs = fullAtMs + limit.periodMs - limit.windowMs - nowMs
    if (waitMs > 0) return Math.max(1, Math.ceil(waitMs / 1000))
    this.fullAt = fullAtMs + limit.periodMs
    return 0
  }
  /**
   * Charges an amount that is known only afterwards, such as the size of a body. The bucket may go into debt, at most
   * by a full bucket (see `debtSeconds`).
   */
  charge(limit: RateLimit, amount: number, nowMs: number): void {
    const fullAtMs = Math.min(Math.max(this.fullAt, nowMs), nowMs + limit.windowMs)
    this.fullAt = fullAtMs + Math.min(amount * limit.periodMs, limit.windowMs)
  }

  /** 0, or the whole seconds until the debt is paid. Takes nothing. */
  debtSeconds(limit: RateLimit, nowMs: number): number {
    const debtMs = this.fullAt - nowMs - limit.windowMs
    if (debtMs <= 0) return 0
    // More debt than `charge` allows: the clock was set back, or the rate changed.
    if (debtMs > limit.windowMs) this.fullAt = nowMs + limit.windowMs
    return debtMs > limit.windowMs ? 0 : Math.max(1, Math.ceil(debtMs / 1000))
  }
}
