// Network interfaces and local sockets of a Linux host, from /proc/net/dev, /sys/class/net and /proc/net/{tcp,udp}
// (metrics.md 44-52, 55).
import { type CounterReading, counterDeltas, fieldsOfLines, numbersFrom, windowSeconds } from './counter-rates.ts'
import type { Sample } from './requests-of-cycles.ts'

/** Metric -> column of /proc/net/dev after the colon. */
const RATES: readonly (readonly [string, number])[] = [
  ['net_rx_bytes_per_second', 0],
  ['net_tx_bytes_per_second', 8],
  ['net_rx_packets_per_second', 1],
  ['net_tx_packets_per_second', 9],
  ['net_rx_errors_per_second', 2],
  ['net_tx_errors_per_second', 10],
  ['net_rx_dropped_per_second', 3],
  ['net_tx_dropped_per_second', 11],
]
const COLUMNS = 16
const LISTEN = '0A'

/** Counters of /proc/net/dev by interface. */
export function parseNetDev(text: string, elapsedMs: number): CounterReading {
  const bySubject = new Map<string, number[]>()
  for (const line of text.split('\n')) {
    const colon = line.lastIndexOf(':')
    if (colon < 0) continue
    const numbers = numbersFrom(
      line
        .slice(colon + 1)
        .trim()
        .split(/\s+/),
      0,
    )
    if (numbers.length >= COLUMNS) bySubject.set(line.slice(0, colon).replace(/^ +/, ''), numbers.slice(0, COLUMNS))
  }
  return { elapsedMs, bySubject }
}

/** net_*_per_second of the interfaces that `isReported` lets through. */
export function netSamples(
  previous: CounterReading | null,
  current: CounterReading,
  isReported: (name: string) => boolean,
): Sample[] {
  const seconds = windowSeconds(previous, current)
  if (seconds === null) return []
  const samples: Sample[] = []
  for (const name of current.bySubject.keys()) {
    const deltas = isReported(name) ? counterDeltas(previous, current, name) : null
    if (!deltas) continue
    for (const [metric, column] of RATES)
      samples.push({ name: metric, labels: { interface: name }, value: deltas[column]! / seconds })
  }
  return samples
}

/** net_interface_up: the state says up, or says nothing (tunnels, some drivers) while there is a carrier. */
export function isInterfaceUp(operstate: string | null, carrier: string | null): boolean {
  const state = operstate?.trim() ?? 'unknown'
  return state === 'up' || (state === 'unknown' && carrier?.trim() === '1')
}

/**
 * Whether /proc/net/{tcp,tcp6,udp,udp6} shows a local socket on the port: listening for tcp, bound for udp.
 * A udp socket that is connected to a peer is a client's, and does not count.
 */
export function isPortOpen(tables: readonly string[], port: number, proto: 'tcp' | 'udp'): boolean {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0')
  for (const table of tables) {
    for (const fields of fieldsOfLines(table)) {
      const local = fields[1]
      const remote = fields[2]
      if (!local?.endsWith(`:${wanted}`) || !remote) continue
      if (proto === 'tcp' ? fields[3] === LISTEN : remote.endsWith(':0000')) return true
    }
  }
  return false
}

/** KEY=value lines of /etc/os-release, without their quotes. */
export function parseOsRelease(text: string): { name: string; version: string } {
  const values = new Map<string, string>()
  for (const [, key, value] of text.matchAll(/^([A-Z_]+)=(.*)$/gm))
    values.set(key!, value!.trim().replace(/^(["'])(.*)\1$/, '$2'))
  return { name: values.get('NAME') ?? values.get('ID') ?? '', version: values.get('VERSION_ID') ?? '' }
}
