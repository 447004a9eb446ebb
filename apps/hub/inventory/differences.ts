// Inventory against the server record: what differs, by the contract's own comparisons (document 1 "Inventory ingest").
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import type { Server } from '../servers/server-list.ts'

export const inventoryFields = [
  'operating_system',
  'cpu_cores',
  'memory_mb',
  'disk_gb',
  'ip_address',
  'hostname',
] as const
export type InventoryField = (typeof inventoryFields)[number]

type Difference = {
  readonly field: InventoryField
  readonly server_value: string | number | null
  readonly inventory_value: string | number | readonly string[] | null
}

const MIB = 1_048_576
const GIB = 1_073_741_824
/** Sizes within 5% count as equal: what firmware and file systems keep for themselves is no difference. */
const TOLERANCE = 0.05

const toText = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)
const toNumber = (value: unknown): number | null => {
  const number =
    typeof value === 'number' ? value : typeof value === 'string' && value !== '' ? Number(value) : Number.NaN
  return Number.isFinite(number) && number > 0 ? number : null
}

/** The addresses of a server's network interfaces, in their order, without prefix lengths. */
function inventoryAddresses(facts: Unchecked): string[] {
  const nics = Array.isArray(facts.nics) ? facts.nics : []
  return nics.flatMap((nic: unknown) => {
    const ips = isObject(nic) && Array.isArray(nic.ips) ? nic.ips : []
    return ips.filter(ip => typeof ip === 'string').map(ip => ip.split('/')[0] ?? ip)
  })
}

/** What the inventory says of each field; null where it says nothing. `hostname` is the agent's at its enrollment. */
export function inventoryValues(facts: Unchecked, hostname: string | null) {
  const os = isObject(facts.os) ? facts.os : {}
  const cpu = isObject(facts.cpu) ? facts.cpu : {}
  const memoryBytes = toNumber(facts.memory_total_bytes)
  const disks = Array.isArray(facts.disks) ? facts.disks : []
  let diskBytes = 0
  for (const disk of disks) if (isObject(disk)) diskBytes += toNumber(disk.total_bytes) ?? 0
  return {
    operating_system: toText(os.name),
    cpu_cores: toNumber(cpu.cores),
    memory_mb: memoryBytes === null ? null : Math.round(memoryBytes / MIB),
    disk_gb: diskBytes === 0 ? null : Math.round(diskBytes / GIB),
    addresses: inventoryAddresses(facts),
    hostname,
  }
}

const isClose = (a: number | null, b: number): boolean => a !== null && Math.abs(a - b) <= TOLERANCE * Math.max(a, b)

/** The fields in which the inventory says something else than the server record. */
export function differencesOf(server: Server, facts: Unchecked, hostname: string | null): Difference[] {
  const found = inventoryValues(facts, hostname)
  const differences: Difference[] = []
  const add = (
    field: InventoryField,
    server_value: string | number | null,
    inventory_value: Difference['inventory_value'],
  ) => differences.push({ field, server_value, inventory_value })
  if (found.operating_system !== null && found.operating_system !== server.operatingSystem)
    add('operating_system', server.operatingSystem, found.operating_system)
  if (found.cpu_cores !== null && found.cpu_cores !== server.cpuCores)
    add('cpu_cores', server.cpuCores, found.cpu_cores)
  if (found.memory_mb !== null && !isClose(server.memoryMb, found.memory_mb))
    add('memory_mb', server.memoryMb, found.memory_mb)
  if (found.disk_gb !== null && !isClose(server.diskGb, found.disk_gb)) add('disk_gb', server.diskGb, found.disk_gb)
  if (found.addresses.length > 0 && !found.addresses.includes(server.ipAddress ?? ''))
    add('ip_address', server.ipAddress, found.addresses)
  if (found.hostname !== null && found.hostname !== server.hostname) add('hostname', server.hostname, found.hostname)
  return differences
}
