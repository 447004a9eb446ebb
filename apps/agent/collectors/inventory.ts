// The inventory: what is installed on this host, reported at the start, every 6 hours and when it changes (document 3
// "Agent to collector" /inventory). MAC addresses are not sent.
import { cpus, networkInterfaces, totalmem, uptime } from 'node:os'
import { create, toBinary, toJsonString } from '@bufbuild/protobuf'
import { compileFilter } from '../../../core/agent/filters.ts'
import { parseCpuInfo, parseProcStat } from '../../../core/agent/proc-cpu.ts'
import { parseMountInfo, reportedMounts } from '../../../core/agent/proc-disk.ts'
import { parseMemInfo } from '../../../core/agent/proc-memory.ts'
import type { AgentSettings } from '../../../core/agent/remote-config.ts'
import { actionFor } from '../../../core/agent/response-action.ts'
import { limits } from '../../../core/limits.ts'
import { sha256Hex } from '../../../core/series/hash.ts'
import { type InventoryFacts, InventoryFactsSchema } from '../../../proto/gen/svc/agent/v1/agent_pb.ts'
import type { AgentParts } from '../agent-parts.ts'
import { agentVersion } from '../config.ts'
import type { CollectorClient } from '../transport/collector-client.ts'
import type { TaskResult } from '../transport/uplink.ts'
import { nicsOf, osInfo } from './host.ts'
import type { HostFiles } from './host-files.ts'
import type { StatFsAsker } from './stat-fs.ts'

/** Set by the build of an executable; absent when run from source. */
declare const SVC_BUILD_COMMIT: string | undefined
const buildCommit = typeof SVC_BUILD_COMMIT === 'string' ? SVC_BUILD_COMMIT : ''

/** How often the facts are compared with what was sent. */
const POLL_MS = 300_000

class HostInventory {
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
  async read(settings: AgentSettings): Promise<InventoryFacts> {
    const { cpu, memoryTotalBytes } = this.#hardware()
    return create(InventoryFactsSchema, {
      os: osInfo(this.#files, this.#platform),
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
const factsHash = (facts: InventoryFacts): string => sha256Hex(toJsonString(InventoryFactsSchema, facts))

export class InventoryReporter {
  readonly #parts: AgentParts
  readonly #client: CollectorClient
  readonly #token: () => string
  readonly #facts: HostInventory
  #sent: { readonly hash: string; readonly atMs: number } | null = null

  constructor(parts: AgentParts, client: CollectorClient, token: () => string) {
    this.#parts = parts
    this.#client = client
    this.#token = token
    this.#facts = new HostInventory(parts.files, parts.makeAsker(), parts.platform, parts.clock.now())
  }

  /** Sends the facts when they are new, changed or six hours old. A refused inventory is not repeated unchanged. */
  async reportWhenDue(): Promise<TaskResult> {
    const { clock, settings, log } = this.#parts
    const facts = await this.#facts.read(settings.current)
    const hash = factsHash(facts)
    const nowMs = clock.elapsed()
    const dueAtMs = this.#sent?.hash === hash ? this.#sent.atMs + limits.inventoryPeriodMs : nowMs
    if (nowMs < dueAtMs) return { action: 'success', reply: null, nextInMs: Math.min(POLL_MS, dueAtMs - nowMs) }
    const body = toBinary(InventoryFactsSchema, facts)
    const reply = await this.#client.call({ method: 'POST', path: '/inventory', token: this.#token(), body })
    const action = actionFor('inventory', reply)
    if (action === 'drop') log.error({ message: reply.message }, 'the collector refuses the inventory')
    if (action === 'success' || action === 'drop') this.#sent = { hash, atMs: nowMs }
    return { action, reply, nextInMs: POLL_MS }
  }
}
