// What this machine is: its names and addresses for enrolment, its facts for the inventory. MAC addresses stay here.
import { spawnSync } from 'node:child_process'
import { cpus, hostname, networkInterfaces, release, totalmem, uptime, version } from 'node:os'
import { create, toJsonString } from '@bufbuild/protobuf'
import { compileFilter, isInterfaceReported } from '../../core/agent/filters.ts'
import { parseCpuInfo, parseProcStat } from '../../core/agent/proc-cpu.ts'
import { parseMountInfo, reportedMounts } from '../../core/agent/proc-disk.ts'
import { parseMemInfo } from '../../core/agent/proc-memory.ts'
import { parseOsRelease } from '../../core/agent/proc-net.ts'
import type { AgentSettings } from '../../core/agent/remote-config.ts'
import { sha256Hex } from '../../core/series/hash.ts'
import { type InventoryFacts, InventoryFactsSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import type { HostFiles } from './collectors/host-files.ts'
import type { StatFsAsker } from './collectors/stat-fs.ts'
import { agentVersion } from './config.ts'
import type { StateDir } from './state-dir.ts'

/** Set by the build of an executable; absent when run from source. */
declare const SVC_BUILD_COMMIT: string | undefined
const buildCommit = typeof SVC_BUILD_COMMIT === 'string' ? SVC_BUILD_COMMIT : ''

const MACHINE_GUID_KEY = 'HKLM\\SOFTWARE\\Microsoft\\Cryptography'

/** family, name, version, kernel and arch of the operating system. */
export function osFacts(files: HostFiles, platform: string) {
  const family = platform === 'win32' ? 'windows' : platform
  const linux = platform === 'linux' ? parseOsRelease(files.text('etc', 'os-release') ?? '') : null
  return {
    family,
    name: linux?.name || (platform === 'darwin' ? 'macOS' : version()),
    version: linux?.version ?? release(),
    kernel: release(),
    arch: process.arch,
  }
}

/** The machine GUID in what `reg query … /v MachineGuid` prints; null without one. */
export function parseMachineGuid(text: string): string | null {
  return /MachineGuid\s+REG_SZ\s+([0-9A-Fa-f-]{36})/.exec(text)?.[1]?.toLowerCase() ?? null
}

/** machine-id on Linux, machine GUID on Windows; one made and kept where the system has none. */
export function machineId(files: HostFiles, platform: string, dir: StateDir): string {
  if (platform === 'win32') {
    const query = spawnSync('reg', ['query', MACHINE_GUID_KEY, '/v', 'MachineGuid'], {
      encoding: 'utf8',
      timeout: 5_000,
    })
    return parseMachineGuid(query.stdout ?? '') ?? dir.madeMachineId()
  }
  const known = files.text('etc', 'machine-id')?.trim() || files.text('dbus', 'machine-id')?.trim()
  return known && /^[0-9a-f]{32}$/i.test(known) ? known.toLowerCase() : dir.madeMachineId()
}

type Nic = { readonly name: string; readonly ips: string[] }

/** Interfaces with their addresses: no loopback, no container bridges, no link-local addresses, no MAC addresses. */
export function nicsOf(interfaces: ReturnType<typeof networkInterfaces>): Nic[] {
  const all = compileFilter({ include: [], exclude: [] })
  const nics: Nic[] = []
  for (const [name, addresses] of Object.entries(interfaces)) {
    const ips = (addresses ?? [])
      .filter(({ internal, address }) => !internal && !/^(?:fe80:|169\.254\.)/i.test(address))
      .map(({ address }) => address)
    if (ips.length > 0 && isInterfaceReported(name, all)) nics.push({ name, ips })
  }
  return nics.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** The addresses by which the hub may pair this machine with a server it knows. */
export const ipAddresses = (): string[] => nicsOf(networkInterfaces()).flatMap(({ ips }) => ips)

export const machineName = (): string => hostname()

export class Inventory {
  readonly #files: HostFiles
  readonly #asker: StatFsAsker
  readonly #platform: string
  /** Read once: the clock's corrections would move it by a second now and then. */
  readonly #bootAtMs: number
  readonly #knownSizes = new Map<string, number>()

  constructor(files: HostFiles, asker: StatFsAsker, platform: string, nowMs: number) {
    this.#files = files
    this.#asker = asker
    this.#platform = platform
    const stat = platform === 'linux' ? parseProcStat(files.text('proc', 'stat') ?? '', 0) : null
    this.#bootAtMs = stat?.bootAtMs ?? Math.round((nowMs - uptime() * 1000) / 1000) * 1000
  }

  /** What is installed here, as it is now. */
  async facts(settings: AgentSettings): Promise<InventoryFacts> {
    const { cpu, memoryTotalBytes } = this.#hardware()
    return create(InventoryFactsSchema, {
      os: osFacts(this.#files, this.#platform),
      cpu,
      memoryTotalBytes: BigInt(memoryTotalBytes),
      disks: await this.#disks(settings),
      nics: nicsOf(networkInterfaces()),
      bootTimeMs: BigInt(this.#bootAtMs),
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      agentBuild: { version: agentVersion, commit: buildCommit, goVersion: `bun ${Bun.version}` },
    })
  }

  #hardware(): { cpu: { model: string; cores: number; threads: number }; memoryTotalBytes: number } {
    if (this.#platform === 'linux') {
      const cpu = parseCpuInfo(this.#files.text('proc', 'cpuinfo') ?? '')
      const memoryTotalBytes = parseMemInfo(this.#files.text('proc', 'meminfo') ?? '').get('MemTotal') ?? 0
      return { cpu, memoryTotalBytes }
    }
    const threads = cpus().length
    return { cpu: { model: cpus()[0]?.model ?? '', cores: threads, threads }, memoryTotalBytes: totalmem() }
  }

  async #disks(settings: AgentSettings) {
    if (this.#platform !== 'linux') return []
    const filter = compileFilter({ include: settings.diskInclude, exclude: settings.diskExclude })
    const mounts = reportedMounts(parseMountInfo(this.#files.text('proc', 'self/mountinfo') ?? ''), filter)
    const disks = await Promise.all(
      mounts.map(async mount => {
        const size = await this.#asker.size(mount)
        const { mount: path, fstype } = mount
        // A server that does not answer now has not changed its size: without this its silence would be a change.
        const totalBytes = size ? size.blocks * size.bsize : (this.#knownSizes.get(path) ?? 0)
        this.#knownSizes.set(path, totalBytes)
        return { mount: path, fstype, totalBytes: BigInt(totalBytes) }
      }),
    )
    return disks
  }
}

/** The hash by which a change of the facts is seen. */
export const factsHash = (facts: InventoryFacts): string => sha256Hex(toJsonString(InventoryFactsSchema, facts))
