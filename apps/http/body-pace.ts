// How fast a body must come. Each byte shows that the client is there, so a client that sends a byte now and then would
// keep its connection, and what the request holds, for ever.

/** Less than this on the average is no client that anybody waits for: a modem of 1990 is faster. */
const BYTES_PER_SECOND_MIN = 512

export class BodyPace {
  private bytes = 0
  private pausedAtMs: number | null = null

  /** The pace counts from `graceMs` after the start on, and not while the body is not read. */
  constructor(
    private readonly graceMs: number,
    private startedAtMs: number,
  ) {}

  /** So many bytes have come by now. */
  came(bytes: number): void {
    this.bytes += bytes
  }

  /** Nobody reads on. */
  pause(nowMs: number): void {
    this.pausedAtMs ??= nowMs
  }

  resume(nowMs: number): void {
    if (this.pausedAtMs !== null) this.startedAtMs += nowMs - this.pausedAtMs
    this.pausedAtMs = null
  }

  isTooSlow(nowMs: number): boolean {
    const seconds = ((this.pausedAtMs ?? nowMs) - this.startedAtMs - this.graceMs) / 1000
    return seconds > 0 && this.bytes < seconds * BYTES_PER_SECOND_MIN
  }
}
