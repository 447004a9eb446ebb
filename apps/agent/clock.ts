// Time and waiting as the agent sees them. The system clock is one form; tests drive another, so that a backoff of five
// minutes is checked without waiting for it.

export type Clock = {
  /** Milliseconds since the UTC epoch: what is written on points. */
  now(): number
  /** Milliseconds of a clock that nobody sets: what waits and rates are measured with. */
  elapsed(): number
  /** Resolves after `ms`, or as soon as the signal aborts; it never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

/** Timers overflow above 2^31 ms; every loop looks again after a wake-up, so an hour at a time is enough. */
const SLEEP_MAX_MS = 3_600_000

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise(resolve => {
      if (signal.aborted) {
        resolve()
        return
      }
      const finish = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', finish)
        resolve()
      }
      const timer = setTimeout(finish, Math.min(Math.max(0, ms), SLEEP_MAX_MS))
      signal.addEventListener('abort', finish)
    }),
}

/** A wait that others can cut short. One waiter at a time. */
export class Alarm {
  #controller = new AbortController()

  /** Ends the current wait, or the next one at once when nobody waits. */
  ring(): void {
    this.#controller.abort()
  }

  /** Waits `ms` or until the alarm rings; a ring is used up by the wait that it ends. */
  async wait(clock: Clock, ms: number): Promise<void> {
    await clock.sleep(ms, this.#controller.signal)
    if (this.#controller.signal.aborted) this.#controller = new AbortController()
  }
}
