// The collectors of a Linux host: each reads its files, keeps its last reading, and leaves the arithmetic to
// core/agent.
import type { CounterReading } from '../../../core/agent/counter-rates.ts'
import { keptReading } from '../../../core/agent/counter-rates.ts'
import { filterCompiler, isBlockDeviceReported, isInterfaceReported } from '../../../core/agent/filters.ts'
import { type CpuReading, cpuSamples, loadSamples, parseProcStat, uptimeSamples } from '../../../core/agent/proc-cpu.ts'
import {
  type DiskReading,
  diskIoSamples,
  fileSystemSamples,
  parseDiskStats,
  parseMountInfo,
  reportedMounts,
  silentMountsWarning,
  withSystemReadonly,
} from '../../../core/agent/proc-disk.ts'
import { memorySamples, pageBytesOfAuxv, parseVmStat, swapSamples } from '../../../core/agent/proc-memory.ts'
import { isInterfaceUp, netSamples, parseNetDev } from '../../../core/agent/proc-net.ts'
import type { AgentSettings, CollectorSwitches } from '../../../core/agent/remote-config.ts'
import type { Sample } from '../../../core/agent/requests-of-cycles.ts'
import type { HostFiles } from './host-files.ts'
import type { StatFsAsker } from './stat-fs.ts'

/** One group of metrics. `collect` may be slow, and may throw; `forget` is called while the group is switched off. */
export type Collector = {
  readonly name: keyof CollectorSwitches
  collect(elapsedMs: number, settings: AgentSettings): Promise<Sample[]>
  forget(): void
}

/** Replaces what the operator is told about the group. */
type Warn = (warnings: readonly string[]) => void

class LinuxCpu implements Collector {
  readonly name = 'cpu'
  readonly #files: HostFiles
  readonly #perCore: boolean
  #last: CpuReading | null = null

  constructor(files: HostFiles, perCore: boolean) {
    this.#files = files
    this.#perCore = perCore
  }

  async collect(elapsedMs: number): Promise<Sample[]> {
    const reading = parseProcStat(this.#files.text('proc', 'stat') ?? '', elapsedMs)
    const samples = cpuSamples(this.#last, reading, this.#perCore)
    if (keptReading(this.#last, reading) === reading) this.#last = reading
    return [...samples, ...loadSamples(this.#files.text('proc', 'loadavg') ?? '', reading.cores)]
  }

  forget(): void {
    this.#last = null
  }
}

class LinuxMemory implements Collector {
  readonly name = 'memory'
  readonly #files: HostFiles
  readonly #pageBytes: number
  #last: CounterReading | null = null

  constructor(files: HostFiles) {
    this.#files = files
    this.#pageBytes = pageBytesOfAuxv(files.bytes('proc', 'self/auxv') ?? new Uint8Array())
  }

  async collect(elapsedMs: number): Promise<Sample[]> {
    const reading = parseVmStat(this.#files.text('proc', 'vmstat') ?? '', elapsedMs)
    const swap = swapSamples(this.#last, reading, this.#pageBytes)
    this.#last = keptReading(this.#last, reading)
    return [...memorySamples(this.#files.text('proc', 'meminfo') ?? ''), ...swap]
  }

  forget(): void {
    this.#last = null
  }
}

class LinuxDisk implements Collector {
  readonly name = 'disk'
  readonly #files: HostFiles
  readonly #asker: StatFsAsker
  readonly #filterOf = filterCompiler()
  readonly #warn: Warn
  #last: DiskReading | null = null

  constructor(files: HostFiles, asker: StatFsAsker, warn: Warn) {
    this.#files = files
    this.#asker = asker
    this.#warn = warn
  }

  async collect(elapsedMs: number, settings: AgentSettings): Promise<Sample[]> {
    const filter = this.#filterOf({ include: settings.diskInclude, exclude: settings.diskExclude })
    const reading = parseDiskStats(this.#files.text('proc', 'diskstats') ?? '', elapsedMs)
    // Partitions are not in /sys/block; a name with a slash is written with an exclamation mark there.
    const whole = new Set(this.#files.names('sys', 'block').map(name => name.replaceAll('!', '/')))
    const io = diskIoSamples(
      this.#last,
      reading,
      device => (whole.size === 0 || whole.has(device)) && isBlockDeviceReported(device, filter),
    )
    if (keptReading(this.#last, reading) === reading) this.#last = reading
    const own = parseMountInfo(this.#files.text('proc', 'self/mountinfo') ?? '')
    const system = parseMountInfo(this.#files.text('proc', '1/mountinfo') ?? '')
    const mounts = reportedMounts(withSystemReadonly(own, system), filter)
    const sizes = await Promise.all(
      mounts.map(async mount => {
        const size = await this.#asker.size(mount)
        return size ? fileSystemSamples(mount, size) : []
      }),
    )
    // Without a word their series would just end.
    this.#warn(silentMountsWarning(mounts.filter(mount => this.#asker.isSilent(mount))))
    return [...sizes.flat(), ...io]
  }

  forget(): void {
    this.#last = null
    this.#warn([])
  }
}

class LinuxNet implements Collector {
  readonly name = 'net'
  readonly #files: HostFiles
  readonly #filterOf = filterCompiler()
  #last: CounterReading | null = null

  constructor(files: HostFiles) {
    this.#files = files
  }

  async collect(elapsedMs: number, settings: AgentSettings): Promise<Sample[]> {
    const filter = this.#filterOf({ include: settings.netInclude, exclude: settings.netExclude })
    const isReported = (name: string) => isInterfaceReported(name, filter)
    const reading = parseNetDev(this.#files.text('proc', 'net/dev') ?? '', elapsedMs)
    const samples = netSamples(this.#last, reading, isReported)
    this.#last = keptReading(this.#last, reading)
    for (const name of reading.bySubject.keys()) {
      if (!isReported(name)) continue
      const state = this.#files.text('sys', `class/net/${name}/operstate`)
      const carrier = this.#files.text('sys', `class/net/${name}/carrier`)
      const value = isInterfaceUp(state, carrier) ? 1 : 0
      samples.push({ name: 'net_interface_up', labels: { interface: name }, value })
    }
    return samples
  }

  forget(): void {
    this.#last = null
  }
}

class LinuxUptime implements Collector {
  readonly name = 'uptime'
  readonly #files: HostFiles

  constructor(files: HostFiles) {
    this.#files = files
  }

  async collect(): Promise<Sample[]> {
    return uptimeSamples(this.#files.text('proc', 'uptime') ?? '')
  }

  forget(): void {}
}

/** `warnOfDisks` hears after every cycle what there is to say of disks, so that it also hears when that is nothing. */
export function linuxCollectors(
  files: HostFiles,
  asker: StatFsAsker,
  perCore: boolean,
  warnOfDisks: Warn,
): Collector[] {
  return [
    new LinuxUptime(files),
    new LinuxMemory(files),
    new LinuxCpu(files, perCore),
    new LinuxDisk(files, asker, warnOfDisks),
    new LinuxNet(files),
  ]
}
