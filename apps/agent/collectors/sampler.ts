// One cycle: every collector that is switched on and every check, together, each failing alone.
import type { Logger } from 'pino'
import type { AgentSettings } from '../../../core/agent/remote-config.ts'
import type { Sample } from '../../../core/agent/requests-of-cycles.ts'
import type { CheckRunner } from './checks-at-a-time.ts'
import type { Collector } from './linux.ts'

/** How long a cycle waits for its checks; results of slower ones go with the next cycle. */
const CHECKS_WAIT_MS = 2_000

export class Sampler {
  readonly #collectors: readonly Collector[]
  readonly #checks: CheckRunner
  readonly #log: Logger
  readonly #failing = new Set<string>()

  constructor(collectors: readonly Collector[], checks: CheckRunner, log: Logger) {
    this.#collectors = collectors
    this.#checks = checks
    this.#log = log
  }

  /** The samples of one cycle. `elapsedMs` is the monotonic clock, which rates are measured with. */
  async sample(elapsedMs: number, settings: AgentSettings): Promise<Sample[]> {
    this.#checks.start(settings.checks)
    const groups = await Promise.all(this.#collectors.map(collector => this.#collect(collector, elapsedMs, settings)))
    await this.#checks.awaitDone(CHECKS_WAIT_MS)
    return [...this.#checks.take(), ...groups.flat()]
  }

  /** Takes the first reading of every counter, so that the first cycle can tell rates. */
  async prime(elapsedMs: number, settings: AgentSettings): Promise<void> {
    await Promise.all(this.#collectors.map(collector => this.#collect(collector, elapsedMs, settings)))
  }

  async #collect(collector: Collector, elapsedMs: number, settings: AgentSettings): Promise<Sample[]> {
    if (!settings.switches[collector.name]) {
      collector.forget()
      return []
    }
    try {
      const samples = await collector.collect(elapsedMs, settings)
      // A host may have no disk and no network that is reported; it has a processor, memory and an uptime.
      const isLacking = samples.length === 0 && collector.name !== 'disk' && collector.name !== 'net'
      if (isLacking) this.#fail(collector, 'the system shows nothing of it')
      else this.#failing.delete(collector.name)
      return samples
    } catch (error) {
      this.#fail(collector, error instanceof Error ? error.message : String(error))
      return []
    }
  }

  /** Told once, until it works again. */
  #fail({ name }: Collector, cause: string): void {
    if (!this.#failing.has(name)) this.#log.error({ collector: name, cause }, 'cannot collect')
    this.#failing.add(name)
  }
}
