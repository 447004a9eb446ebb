// CPU, memory and uptime where there is no /proc: what the runtime knows of any operating system. Only metrics that the
// catalogue has for all platforms leave here, so load averages stay a matter of Linux (metrics.md).
import { cpus, freemem, totalmem, uptime } from 'node:os'
import { keptReading } from '../../../core/agent/counter-rates.ts'
import { type CpuReading, cpuSamples } from '../../../core/agent/proc-cpu.ts'
import { plain, type Sample } from '../../../core/agent/requests-of-cycles.ts'
import { metricByName } from '../../../core/series/catalogue.ts'
import type { Collector } from './linux.ts'

function cpuReading(elapsedMs: number): CpuReading {
  const bySubject = new Map<string, number[]>()
  const host = [0, 0, 0, 0, 0, 0, 0, 0]
  cpus().forEach(({ times }, core) => {
    const ticks = [times.user, times.nice, times.sys, times.idle, 0, times.irq, 0, 0]
    bySubject.set(String(core), ticks)
    ticks.forEach((value, mode) => {
      host[mode] = (host[mode] ?? 0) + value
    })
  })
  const cores = bySubject.size
  bySubject.set('', host)
  return { elapsedMs, bySubject, cores, bootAtMs: null }
}

class PortableCpu implements Collector {
  readonly name = 'cpu'
  readonly #perCore: boolean
  #last: CpuReading | null = null

  constructor(perCore: boolean) {
    this.#perCore = perCore
  }

  async collect(elapsedMs: number): Promise<Sample[]> {
    const reading = cpuReading(elapsedMs)
    const samples = cpuSamples(this.#last, reading, this.#perCore)
    if (keptReading(this.#last, reading) === reading) this.#last = reading
    return samples.filter(({ name }) => metricByName(name)?.platform === 'all')
  }

  forget(): void {
    this.#last = null
  }
}

const portableMemory: Collector = {
  name: 'memory',
  async collect() {
    const total = totalmem()
    const free = freemem()
    return [
      plain('mem_total_bytes', total),
      plain('mem_used_bytes', total - free),
      plain('mem_available_bytes', free),
      plain('mem_free_bytes', free),
      plain('mem_used_percent', (100 * (total - free)) / total),
      plain('mem_available_percent', (100 * free) / total),
    ]
  },
  forget() {},
}

const portableUptime: Collector = {
  name: 'uptime',
  async collect() {
    return [plain('uptime_seconds', uptime())]
  },
  forget() {},
}

export const portableCollectors = (perCore: boolean): Collector[] => [
  portableUptime,
  portableMemory,
  new PortableCpu(perCore),
]
