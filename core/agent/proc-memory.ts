// Memory and swap of a Linux host, from the text of /proc/meminfo and /proc/vmstat (metrics.md 16-28).
// Memory used = total - available.
import { type CounterReading, counterDeltas, fieldsOfLines, windowSeconds } from './counter-rates.ts'
import { plain, type Sample } from './requests-of-cycles.ts'

const KIB = 1024
const AUXV_PAGE_SIZE = 6n
const PAGE_BYTES_DEFAULT = 4096

/** The entries of /proc/meminfo in bytes. */
export function parseMemInfo(text: string): Map<string, number> {
  const bytes = new Map<string, number>()
  for (const [, name, value, unit] of text.matchAll(/^([^:\s]+):\s+(\d+)(?: (kB))?/gm))
    bytes.set(name!, Number(value) * (unit ? KIB : 1))
  return bytes
}

const share = (part: number, whole: number): number => (whole > 0 ? (100 * part) / whole : 0)

/** mem_* and swap_*; nothing when the text names no total. */
export function memorySamples(meminfo: string): Sample[] {
  const bytes = parseMemInfo(meminfo)
  const total = bytes.get('MemTotal')
  if (!total) return []
  const free = bytes.get('MemFree') ?? 0
  const cached = bytes.get('Cached') ?? 0
  const buffers = bytes.get('Buffers') ?? 0
  // Kernels before 3.14 do not estimate what is available.
  const available = Math.min(total, bytes.get('MemAvailable') ?? free + cached + buffers)
  const used = total - available
  const swapTotal = bytes.get('SwapTotal') ?? 0
  const swapUsed = Math.max(0, swapTotal - (bytes.get('SwapFree') ?? 0))
  return [
    plain('mem_total_bytes', total),
    plain('mem_used_bytes', used),
    plain('mem_available_bytes', available),
    plain('mem_free_bytes', free),
    plain('mem_cached_bytes', cached),
    plain('mem_buffers_bytes', buffers),
    plain('mem_used_percent', share(used, total)),
    plain('mem_available_percent', share(available, total)),
    plain('swap_total_bytes', swapTotal),
    plain('swap_used_bytes', swapUsed),
    plain('swap_used_percent', share(swapUsed, swapTotal)),
  ]
}

/** Pages swapped in and out since the boot, from /proc/vmstat. */
export function parseVmStat(text: string, elapsedMs: number): CounterReading {
  const pages: [number, number] = [Number.NaN, Number.NaN]
  for (const [name, value] of fieldsOfLines(text)) {
    if (name === 'pswpin') pages[0] = Number(value)
    if (name === 'pswpout') pages[1] = Number(value)
  }
  return { elapsedMs, bySubject: new Map([['', pages]]) }
}

/** swap_in_bytes_per_second and swap_out_bytes_per_second between two readings. */
export function swapSamples(previous: CounterReading | null, current: CounterReading, pageBytes: number): Sample[] {
  const seconds = windowSeconds(previous, current)
  const deltas = counterDeltas(previous, current, '')
  if (seconds === null || !deltas) return []
  return [
    plain('swap_in_bytes_per_second', (deltas[0]! * pageBytes) / seconds),
    plain('swap_out_bytes_per_second', (deltas[1]! * pageBytes) / seconds),
  ]
}

/** The page size of the host from /proc/self/auxv (pairs of little-endian 64-bit words); 4096 when it does not say. */
export function pageBytesOfAuxv(auxv: Uint8Array): number {
  const view = new DataView(auxv.buffer, auxv.byteOffset, auxv.byteLength)
  for (let at = 0; at + 16 <= auxv.byteLength; at += 16) {
    if (view.getBigUint64(at, true) !== AUXV_PAGE_SIZE) continue
    const size = Number(view.getBigUint64(at + 8, true))
    return size >= 1024 && size <= 2 ** 24 ? size : PAGE_BYTES_DEFAULT
  }
  return PAGE_BYTES_DEFAULT
}
