// InventoryFacts as the hub takes them (document 1 "Inventory ingest"): the names of the contract, 64-bit numbers as
// strings, empty and zero fields left out; and what makes facts invalid (decision G-56).
import { isIP } from 'node:net'
import type { InventoryFacts } from '../../../../proto/gen/svc/agent/v1/agent_pb.ts'

const TEXT_CHARS_MAX = 512
const LIST_ITEMS_MAX = 1024
const CORES_MAX = 65_536
const DAY_MS = 24 * 3_600_000

/** A member of facts that is left out when it is empty. */
type Fact = string | number | Readonly<Record<string, unknown>> | readonly unknown[] | undefined

function compact(members: Readonly<Record<string, Fact>>): Record<string, unknown> | undefined {
  const kept: Record<string, unknown> = {}
  let count = 0
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined || value === '' || value === 0 || (Array.isArray(value) && value.length === 0)) continue
    kept[name] = value
    count++
  }
  return count > 0 ? kept : undefined
}

const bigText = (value: bigint): string => (value === 0n ? '' : value.toString())

/** The facts for the hub. */
export function factsForHub(facts: InventoryFacts): Record<string, unknown> {
  const { os, cpu, agentBuild } = facts
  return (
    compact({
      os: os && compact({ family: os.family, name: os.name, version: os.version, kernel: os.kernel, arch: os.arch }),
      cpu: cpu && compact({ model: cpu.model, cores: cpu.cores, threads: cpu.threads }),
      memory_total_bytes: bigText(facts.memoryTotalBytes),
      disks: facts.disks.flatMap(
        disk => compact({ mount: disk.mount, fstype: disk.fstype, total_bytes: bigText(disk.totalBytes) }) ?? [],
      ),
      nics: facts.nics.flatMap(nic => compact({ name: nic.name, ips: nic.ips }) ?? []),
      boot_time_ms: bigText(facts.bootTimeMs),
      timezone: facts.timezone,
      agent_build:
        agentBuild &&
        compact({ version: agentBuild.version, commit: agentBuild.commit, go_version: agentBuild.goVersion }),
    }) ?? {}
  )
}

const isAddress = (text: string): boolean => {
  const [base = '', bits, rest] = text.split('/')
  return isIP(base.replace(/%.*$/, '')) !== 0 && rest === undefined && (bits === undefined || /^\d{1,3}$/.test(bits))
}

/** The first thing wrong with facts, in words for the agent's log; null when they are valid. */
export function factsFault(facts: InventoryFacts, nowMs: number): string | null {
  const { os, cpu, agentBuild } = facts
  const texts: [string, string][] = [
    ['os.family', os?.family ?? ''],
    ['os.name', os?.name ?? ''],
    ['os.version', os?.version ?? ''],
    ['os.kernel', os?.kernel ?? ''],
    ['os.arch', os?.arch ?? ''],
    ['cpu.model', cpu?.model ?? ''],
    ['timezone', facts.timezone],
    ['agent_build.version', agentBuild?.version ?? ''],
    ['agent_build.commit', agentBuild?.commit ?? ''],
    ['agent_build.go_version', agentBuild?.goVersion ?? ''],
  ]
  for (const disk of facts.disks) texts.push(['disks.mount', disk.mount], ['disks.fstype', disk.fstype])
  for (const nic of facts.nics) texts.push(['nics.name', nic.name])
  for (const [field, text] of texts)
    if (text.length > TEXT_CHARS_MAX) return `${field} is longer than ${TEXT_CHARS_MAX} characters`
  if (facts.disks.length > LIST_ITEMS_MAX) return `disks has more than ${LIST_ITEMS_MAX} items`
  if (facts.nics.length > LIST_ITEMS_MAX) return `nics has more than ${LIST_ITEMS_MAX} items`
  for (const nic of facts.nics) {
    if (nic.ips.length > LIST_ITEMS_MAX) return `nics.ips has more than ${LIST_ITEMS_MAX} items`
    if (!nic.ips.every(isAddress)) return 'nics.ips has an entry that is no IP address'
  }
  if (cpu && (cpu.cores > CORES_MAX || cpu.threads > CORES_MAX)) return `cpu has more than ${CORES_MAX} cores`
  if (facts.bootTimeMs < 0n || facts.bootTimeMs > BigInt(Math.floor(nowMs + DAY_MS)))
    return 'boot_time_ms is no instant of the past'
  return null
}
