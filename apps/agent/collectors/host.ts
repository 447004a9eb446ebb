// What this host is called: operating system, machine id, addresses. MAC addresses are not read into anything.
import { spawnSync } from 'node:child_process'
import { hostname, networkInterfaces, release, version } from 'node:os'
import { compileFilter, isInterfaceReported } from '../../../core/agent/filters.ts'
import { parseOsRelease } from '../../../core/agent/proc-net.ts'
import type { StateDir } from '../state/state-dir.ts'
import type { HostFiles } from './host-files.ts'

const MACHINE_GUID_KEY = 'HKLM\\SOFTWARE\\Microsoft\\Cryptography'

/** family, name, version, kernel and arch of the operating system. */
export function osInfo(files: HostFiles, platform: string) {
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

/** The addresses by which the hub may pair this host with a server it knows. */
export const ipAddresses = (): string[] => nicsOf(networkInterfaces()).flatMap(({ ips }) => ips)

export const hostName = (): string => hostname()
