// Runs the checks of every cycle: at most ten at a time, none twice at once, each result stamped with when it was ready
// (decision G-62).
import pTimeout from 'p-timeout'
import type { Logger } from 'pino'
import type { Check } from '../../../core/agent/check.ts'
import type { Sample } from '../../../core/agent/requests-of-cycles.ts'
import { type ProbeContext, probe } from './check-kinds.ts'

export const CHECKS_AT_A_TIME = 10

export class CheckRunner {
  readonly #context: ProbeContext
  readonly #log: Logger
  readonly #running = new Map<string, Promise<void>>()
  #waiting: Check[] = []
  #results: Sample[] = []

  constructor(context: ProbeContext, log: Logger) {
    this.#context = context
    this.#log = log
  }

  /** Starts the checks of a cycle. Those still under way or waiting from the last cycle are not started again. */
  start(checks: readonly Check[]): void {
    this.#waiting = this.#waiting.filter(waiting => checks.some(({ id }) => id === waiting.id))
    for (const check of checks) {
      const isPending = this.#running.has(check.id) || this.#waiting.some(({ id }) => id === check.id)
      if (!isPending) this.#waiting.push(check)
    }
    this.#fill()
  }

  /** Resolves when all checks are done, or after `ms`. */
  async awaitDone(ms: number): Promise<void> {
    if (this.#running.size === 0) return
    await pTimeout(this.#drained(), { milliseconds: ms, fallback: () => {} })
  }

  /** The results that are ready, each once. */
  take(): Sample[] {
    const results = this.#results
    this.#results = []
    return results
  }

  get runningCount(): number {
    return this.#running.size
  }

  async #drained(): Promise<void> {
    while (this.#running.size > 0) await Promise.race(this.#running.values())
  }

  #fill(): void {
    while (this.#running.size < CHECKS_AT_A_TIME) {
      const check = this.#waiting.shift()
      if (!check) return
      this.#running.set(check.id, this.#run(check))
    }
  }

  async #run(check: Check): Promise<void> {
    try {
      const samples = await probe(check, this.#context)
      const tsMs = this.#context.now()
      this.#results.push(...samples.map(sample => ({ ...sample, tsMs })))
    } catch (error) {
      this.#log.error(
        { check: check.id, error: error instanceof Error ? error.message : String(error) },
        'check failed to run',
      )
    } finally {
      this.#running.delete(check.id)
      this.#fill()
    }
  }
}
