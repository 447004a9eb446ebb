// A clock that stands until the test moves it. The agent's two lanes wait on it; a step is taken only when both do, so
// that virtual time and real requests do not overlap.
import type { Clock } from '../../apps/agent/clock.ts'

type Sleeper = { readonly dueAtMs: number; readonly wake: () => void }

/** How long in real time the agent may take for what is due at one instant. */
const STEP_DEADLINE_MS = 20_000

/** Like test/support/until.ts, asking every millisecond: a test takes thousands of virtual steps. */
async function until(condition: () => boolean, what: string): Promise<void> {
  const endMs = performance.now() + STEP_DEADLINE_MS
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`did not come about: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 1))
  }
}

export class TestClock implements Clock {
  readonly startMs: number
  #nowMs: number
  /** How far the wall clock was set away from the one that nobody sets. */
  #setByMs = 0
  readonly #sleepers = new Set<Sleeper>()

  constructor(startMs = 1_790_000_000_000) {
    this.startMs = startMs
    this.#nowMs = startMs
  }

  now(): number {
    return this.#nowMs + this.#setByMs
  }

  elapsed(): number {
    return this.#nowMs - this.startMs
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const wake = () => {
        this.#sleepers.delete(sleeper)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      const sleeper: Sleeper = { dueAtMs: this.#nowMs + Math.max(0, ms), wake }
      this.#sleepers.add(sleeper)
      signal.addEventListener('abort', wake)
      if (signal.aborted) wake()
    })
  }

  /** Sets the wall clock, while what sleeps goes on sleeping. */
  set(byMs: number): void {
    this.#setByMs += byMs
  }

  get sleeperCount(): number {
    return this.#sleepers.size
  }

  /** Waits until so many lanes sleep. */
  async idle(lanes = 2): Promise<void> {
    await until(() => this.#sleepers.size >= lanes, `${lanes} sleeping lanes`)
  }

  /**
   * Moves from due time to due time until `condition` holds and the agent has done what follows from it: `lanesAfter`
   * lanes sleep again. Fails when `withinMs` of virtual time pass without it.
   */
  async runUntil(
    condition: () => boolean,
    what: string,
    withinMs = 3_600_000,
    lanes = 2,
    lanesAfter = lanes,
  ): Promise<void> {
    const endMs = this.#nowMs + withinMs
    for (;;) {
      await until(() => condition() || this.#sleepers.size >= lanes, `${what}, or ${lanes} sleeping lanes`)
      if (condition()) return this.idle(lanesAfter)
      const next = Math.min(...[...this.#sleepers].map(({ dueAtMs }) => dueAtMs))
      if (next > endMs) throw new Error(`did not come about within ${withinMs} ms: ${what}`)
      this.#wakeAt(next)
    }
  }

  /** Lets so much virtual time pass. */
  async runFor(ms: number, lanes = 2): Promise<void> {
    const endMs = this.#nowMs + ms
    for (;;) {
      await this.idle(lanes)
      const next = Math.min(...[...this.#sleepers].map(({ dueAtMs }) => dueAtMs))
      if (next > endMs) break
      this.#wakeAt(next)
    }
    this.#nowMs = endMs
  }

  #wakeAt(atMs: number): void {
    this.#nowMs = Math.max(this.#nowMs, atMs)
    for (const sleeper of [...this.#sleepers]) if (sleeper.dueAtMs <= this.#nowMs) sleeper.wake()
  }
}
