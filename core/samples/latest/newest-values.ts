// The newest value of the series that the status of a server shows (document 3 "Hub to collector admin API"), kept
// while samples are stored, so that a status needs no read of the store. What is kept of a server is whole from some
// instant on; who asks for older values asks the store, and hands over what it said (`fill`). Once the store was read
// for all servers (`load`), one that is not here has no value. Memory is bounded: beyond, the store is asked.
import { limits } from '../../limits.ts'
import type { SeriesId } from '../../series/series-key.ts'
import type { BlockOwner, ServerRows, WrittenRows } from '../block/sample-block.ts'

/** The newest value of a series of a server. */
export type NewestValue = { readonly key: string; readonly value: number; readonly tsMs: number }

/** Keys of series, over all servers: names of mounts differ from server to server, names of metrics do not. */
export const KEYS_MAX = 200_000
const VALUES_MAX = 2_000_000
const SWEEP_MS = 60_000
/** Values are kept for longer than a status shows them, so that none is missing at its old end. */
export const KEPT_MS = 2 * limits.statusValueAgeMs
/**
 * How far ahead of this clock a sample may be that is stored already: as far as it may be admitted, by a clock that is
 * as far ahead.
 */
const AHEAD_MAX_MS = 2 * limits.pointAheadMaxMs
/** The filter has so many bits a key, or more, so that it tells at once of most series that they are none of these. */
const BITS_PER_KEY = 64
const FILTER_START = 2 ** 15

/** A series by its id, here as signed words, which cost half as much to compare. */
type Known = SeriesId & { readonly key: string }

const metricOf = (key: string): string => {
  const brace = key.indexOf('{')
  return brace < 0 ? key : key.slice(0, brace)
}

/** The series of a server in the order of their ids, each with its newest value. */
type Server = {
  readonly known: Known[]
  readonly tsMs: number[]
  readonly value: number[]
  /** Of every series the newest sample is here that is not older than this. */
  wholeFromMs: number
  /** When it sent last. */
  seenAtMs: number
}

const SIGN = 0x8000_0000
/** Whether `a` comes first in the order of the ids, which are unsigned. */
const isBefore = (a: SeriesId, hi: number, lo: number): boolean =>
  a.hi === hi ? (a.lo ^ SIGN) < (lo ^ SIGN) : (a.hi ^ SIGN) < (hi ^ SIGN)

/** By company and server. */
export type ServerName = { readonly companyId: string; readonly serverId: string }
/** The newest sample of a series as the store has it. */
export type StoredNewest = SeriesId & { readonly value: number; readonly tsMs: number }
const nameOf = ({ companyId, serverId }: ServerName): string => `${companyId}/${serverId}`

export class NewestValues {
  private readonly metrics: ReadonlySet<string>
  private readonly servers = new Map<string, Server>()
  private readonly known = new Map<number, Known[]>()
  /** A bit for the low bits of each id; small, so that it stays in the processor's cache. */
  private filter = new Uint32Array(FILTER_START / 32)
  private keyCount = 0
  private valueCount = 0
  private sweptAtMs = 0
  /** Of servers that are not here, nothing is stored that is not older than this. */
  private othersWholeFromMs = Number.POSITIVE_INFINITY
  /**
   * Servers and companies whose samples were deleted, by the start of their names, each with when: what is left of
   * these the store knows.
   */
  private readonly deletedAtMs = new Map<string, number>()
  private deletions = 0

  constructor(metrics: readonly string[]) {
    this.metrics = new Set(metrics)
  }

  /** Keys of series that may come, those of other metrics included. False once there are too many to know them all. */
  learn(keys: Iterable<SeriesId & { readonly key: string }>): boolean {
    if (this.keyCount > KEYS_MAX) return false
    for (const { lo: low, hi: high, key } of keys) {
      const lo = low | 0
      const hi = high | 0
      if (!this.metrics.has(metricOf(key)) || this.find(hi, lo)) continue
      const same = this.known.get(lo)
      if (same) same.push({ lo, hi, key })
      else this.known.set(lo, [{ lo, hi, key }])
      this.keyCount++
      if (this.keyCount * BITS_PER_KEY > this.filter.length * 32) this.growFilter()
      else this.admit(lo)
    }
    return this.keyCount <= KEYS_MAX
  }

  private admit(lo: number): void {
    this.filter[(lo >>> 5) & (this.filter.length - 1)]! |= 1 << (lo & 31)
  }

  private growFilter(): void {
    this.filter = new Uint32Array(this.filter.length * 4)
    for (const lo of this.known.keys()) this.admit(lo)
  }

  private find(hi: number, lo: number): Known | undefined {
    return this.known.get(lo)?.find(known => known.hi === hi)
  }

  /** Takes samples of a server that are stored, if it is one that `isOwn`: all of theirs come here. */
  take({ owner, written, begin, end }: ServerRows, nowMs: number, isOwn: (owner: BlockOwner) => boolean): void {
    if (Math.abs(nowMs - this.sweptAtMs) >= SWEEP_MS) this.sweep(nowMs)
    const server = this.servers.get(nameOf(owner)) ?? this.add(owner, nowMs, isOwn)
    if (!server) return
    server.seenAtMs = nowMs
    this.takeRows(server, written, begin, end)
  }

  private add(owner: BlockOwner, nowMs: number, isOwn: (owner: BlockOwner) => boolean): Server | undefined {
    return isOwn(owner) ? this.addOwn(owner, nowMs) : undefined
  }

  private addOwn(serverName: ServerName, nowMs: number): Server | undefined {
    if (this.valueCount >= VALUES_MAX) {
      this.othersWholeFromMs = Number.POSITIVE_INFINITY
      return undefined
    }
    const name = nameOf(serverName)
    const wholeFromMs = Math.min(
      nowMs + AHEAD_MAX_MS,
      this.isDeleted(name) ? Number.POSITIVE_INFINITY : this.othersWholeFromMs,
    )
    const server: Server = { known: [], tsMs: [], value: [], wholeFromMs, seenAtMs: nowMs }
    this.servers.set(name, server)
    return server
  }

  /** Rows and series of the server are both ordered by id. */
  private takeRows(server: Server, written: WrittenRows, begin: number, end: number): void {
    const { filter } = this
    const mask = filter.length - 1
    const { known, tsMs, value } = server
    const { rows, idLo, idHi } = written
    let at = 0
    for (let index = begin; index < end; index++) {
      const row = rows[index]!
      const lo = idLo[row]! | 0
      if ((filter[(lo >>> 5) & mask]! & (1 << (lo & 31))) === 0) continue
      const hi = idHi[row]! | 0
      // Nearly always it is the series after the last one, or the same.
      if (at < known.length && known[at]!.lo !== lo) at++
      if (at >= known.length || known[at]!.lo !== lo || known[at]!.hi !== hi) {
        const place = this.placeOf(server, hi, lo)
        if (place < 0) continue
        at = place
      }
      // Whole milliseconds, as the store has them. Of two samples of one time the one that comes later counts.
      const rowMs = Math.floor(written.tsMs[row]!)
      if (rowMs < tsMs[at]!) continue
      tsMs[at] = rowMs
      // The store has no minus zero.
      value[at] = written.value[row]! + 0
    }
  }

  /** The place of a series among those of the server, which gets it if it is one to be kept; -1 where it is not. */
  private placeOf(server: Server, hi: number, lo: number): number {
    const at = placeIn(server, hi, lo)
    const there = server.known[at]
    if (there?.lo === lo && there.hi === hi) return at
    const series = this.find(hi, lo)
    if (!series) return -1
    this.insert(server, at, series)
    return at
  }

  private insert(server: Server, at: number, series: Known): void {
    server.known.splice(at, 0, series)
    server.tsMs.splice(at, 0, Number.NEGATIVE_INFINITY)
    server.value.splice(at, 0, 0)
    this.valueCount++
  }

  /**
   * The newest value of every series of `metrics` on a server of this worker, of those that have one since `sinceMs`,
   * in the order of their keys. Null where the store is to be asked.
   */
  values(serverName: ServerName, metrics: readonly string[], sinceMs: number): NewestValue[] | null {
    if (metrics.some(metric => !this.metrics.has(metric))) return null
    const name = nameOf(serverName)
    const server = this.servers.get(name)
    if (!server) return sinceMs < this.othersWholeFromMs || this.isDeleted(name) ? null : []
    if (sinceMs < server.wholeFromMs) return null
    const samples = server.known.map(({ lo, hi }, at) => ({
      lo,
      hi,
      value: server.value[at]!,
      tsMs: server.tsMs[at]!,
    }))
    return this.named(samples, metrics, sinceMs)
  }

  /**
   * Those of samples that are of `metrics` and not older than `sinceMs`, by key, in the order of the keys. All keys
   * must have been learned.
   */
  named(samples: readonly StoredNewest[], metrics: readonly string[], sinceMs: number): NewestValue[] {
    const found: NewestValue[] = []
    for (const { hi, lo, value, tsMs } of samples) {
      const key = this.find(hi | 0, lo | 0)?.key
      if (key === undefined || !Number.isFinite(value)) continue
      if (tsMs >= sinceMs && metrics.includes(metricOf(key))) found.push({ key, value, tsMs })
    }
    return found.sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  /** To be asked for before the store is read, for `fill`. Null where nothing is kept of the server. */
  ticket(name: ServerName): object | null {
    return this.servers.get(nameOf(name)) ?? null
  }

  /**
   * What the store said of all series since `sinceMs`. Nothing happens where the server was forgotten since the ticket
   * was given.
   */
  fill(name: ServerName, ticket: object | null, sinceMs: number, samples: readonly StoredNewest[]): void {
    const server = this.servers.get(nameOf(name))
    if (!server || server !== ticket) return
    for (const sample of samples) this.note(server, sample)
    server.wholeFromMs = Math.min(server.wholeFromMs, sinceMs)
  }

  /** Takes what the store said, unless as new a sample came since. */
  private note(server: Server, { hi, lo, value, tsMs }: StoredNewest): void {
    const at = this.placeOf(server, hi | 0, lo | 0)
    if (at < 0 || tsMs <= server.tsMs[at]!) return
    server.tsMs[at] = tsMs
    server.value[at] = value
  }

  /** To be asked for before the store is read, for `load`. */
  loadTicket(): number {
    return this.deletions
  }

  /**
   * Takes what the store said of several servers of this worker. 'again': samples were deleted since the ticket was
   * given, so that the store is to be asked again; 'full': no room.
   */
  load(ticket: number, samples: Iterable<ServerName & StoredNewest>, nowMs: number): 'taken' | 'again' | 'full' {
    if (ticket !== this.deletions) return 'again'
    for (const sample of samples) {
      const server = this.servers.get(nameOf(sample)) ?? this.addOwn(sample, nowMs)
      if (!server) return 'full'
      this.note(server, sample)
    }
    return 'taken'
  }

  /** All servers were loaded with what they have since `sinceMs`. */
  loaded(sinceMs: number): void {
    this.othersWholeFromMs = sinceMs
    for (const [name, server] of this.servers)
      if (!this.isDeleted(name)) server.wholeFromMs = Math.min(server.wholeFromMs, sinceMs)
  }

  /** Samples of a company, or of one server of it, were deleted, or only some of them. */
  forget(companyId: string, serverId: string | null, nowMs: number): void {
    const start = nameOf({ companyId, serverId: serverId ?? '' })
    for (const name of serverId === null ? this.servers.keys() : [start]) if (name.startsWith(start)) this.drop(name)
    this.deletedAtMs.set(start, nowMs)
    this.deletions++
  }

  private isDeleted(name: string): boolean {
    if (this.deletedAtMs.size === 0) return false
    return this.deletedAtMs.has(name) || this.deletedAtMs.has(name.slice(0, name.indexOf('/') + 1))
  }

  /** Samples may be stored that do not come here. */
  forgetAll(): void {
    this.servers.clear()
    this.valueCount = 0
    this.othersWholeFromMs = Number.POSITIVE_INFINITY
    this.deletions++
  }

  private drop(name: string): void {
    this.valueCount -= this.servers.get(name)?.known.length ?? 0
    this.servers.delete(name)
  }

  /** Lets go of series that no status shows any more, and of servers without any. */
  private sweep(nowMs: number): void {
    this.sweptAtMs = nowMs
    const keptFromMs = nowMs - KEPT_MS
    for (const [name, server] of this.servers) {
      const { known, tsMs, value } = server
      for (let at = known.length - 1; at >= 0; at--) {
        if (tsMs[at]! >= keptFromMs) continue
        known.splice(at, 1)
        tsMs.splice(at, 1)
        value.splice(at, 1)
        this.valueCount--
      }
      server.wholeFromMs = Math.max(server.wholeFromMs, keptFromMs)
      if (known.length === 0 && server.seenAtMs < keptFromMs) this.drop(name)
    }
    this.othersWholeFromMs = Math.max(this.othersWholeFromMs, keptFromMs)
    // What was stored before is too old by now to be kept, even if it was ahead of the clock.
    for (const [name, atMs] of this.deletedAtMs) if (atMs + AHEAD_MAX_MS < keptFromMs) this.deletedAtMs.delete(name)
  }
}

/** Where a series stands among those of the server, or would. */
function placeIn({ known }: Server, hi: number, lo: number): number {
  let low = 0
  for (let high = known.length; low < high; ) {
    const middle = (low + high) >>> 1
    if (isBefore(known[middle]!, hi, lo)) low = middle + 1
    else high = middle
  }
  return low
}
