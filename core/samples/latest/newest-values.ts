// The newest value of the series that the status of a server shows (document 3 "Hub to collector admin API"),
// maintained while samples are stored, so that a status needs no read of the store. For each server the values are
// complete from some instant on; a caller that needs older ones asks the store and adds its answer (`fill`). Once the
// store has been read for all servers (`load`), a server without an entry has no value. Memory is bounded; beyond the
// bound the store is asked.
import { limits } from '../../limits.ts'
import { metricOf, type SeriesId } from '../../series/series-key.ts'
import type { BlockOwner, ServerPoints, WrittenPoints } from '../block/sample-block.ts'

/** The newest value of a series of a server. */
export type NewestValue = { readonly key: string; readonly value: number; readonly tsMs: number }

/** The maximum number of series keys over all servers: mount names differ between servers, metric names do not. */
export const KEYS_MAX = 200_000
const VALUES_MAX = 2_000_000
const SWEEP_MS = 60_000
/** Values are kept for twice as long as a status shows them, so that none that it may show is missing. */
export const KEPT_MS = 2 * limits.statusValueAgeMs
/**
 * How far a stored sample may be ahead of this clock: ingest admits samples that are somewhat ahead, and its own clock
 * may be ahead by as much.
 */
const AHEAD_MAX_MS = 2 * limits.pointAheadMaxMs
/** The filter has at least this many bits for each key, so that it rejects most series of other metrics at once. */
const BITS_PER_KEY = 64
const FILTER_START = 2 ** 15

/** A series with its id as signed words, which cost half as much to compare. */
type Known = SeriesId & { readonly key: string }

/** The series of a server in the order of their ids, each with its newest value. */
type Server = {
  readonly known: Known[]
  readonly tsMs: number[]
  readonly value: number[]
  /** Values are complete from this instant on: every series with a sample since then has its newest one here. */
  wholeFromMs: number
  /** Wall time at which samples of the server were last taken. */
  seenAtMs: number
}

const SIGN = 0x8000_0000
/** Whether `a` comes first in the order of the ids, which are unsigned. */
const isBefore = (a: SeriesId, hi: number, lo: number): boolean =>
  a.hi === hi ? (a.lo ^ SIGN) < (lo ^ SIGN) : (a.hi ^ SIGN) < (hi ^ SIGN)

/** Names a server of a company. */
export type ServerName = { readonly companyId: string; readonly serverId: string }
/** The newest sample that the store has of a series. */
export type StoredNewest = SeriesId & { readonly value: number; readonly tsMs: number }
const nameOf = ({ companyId, serverId }: ServerName): string => `${companyId}/${serverId}`

export class NewestValues {
  private readonly metrics: ReadonlySet<string>
  private readonly servers = new Map<string, Server>()
  private readonly known = new Map<number, Known[]>()
  /** One bit for the low bits of each known id; small, so that it stays in the processor's cache. */
  private filter = new Uint32Array(FILTER_START / 32)
  private keyCount = 0
  private valueCount = 0
  private sweptAtMs = 0
  /** A server without an entry has no stored sample since this instant. */
  private othersWholeFromMs = Number.POSITIVE_INFINITY
  /**
   * When samples of a server or company were deleted, by the prefix of the names concerned. Only the store knows what
   * is left of these.
   */
  private readonly deletedAtMs = new Map<string, number>()
  private deletions = 0

  constructor(metrics: readonly string[]) {
    this.metrics = new Set(metrics)
  }

  /**
   * Learns keys of series that samples may come for; keys of metrics that a status does not show are ignored. False
   * once there are more than KEYS_MAX.
   */
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

  /**
   * Takes stored samples of a server. `isOwn` says whether all samples of the server pass through here; others are
   * ignored.
   */
  take({ owner, written, begin, end }: ServerPoints, nowMs: number, isOwn: (owner: BlockOwner) => boolean): void {
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

  /** Takes rows of a server; rows and series are both ordered by id and walked side by side. */
  private takeRows(server: Server, written: WrittenPoints, begin: number, end: number): void {
    const { filter } = this
    const mask = filter.length - 1
    const { known, tsMs, value } = server
    const { idLo, idHi } = written
    let at = 0
    for (let index = begin; index < end; index++) {
      const lo = idLo[index]! | 0
      // Of the points of a series only the last counts.
      if (index + 1 < end && (idLo[index + 1]! | 0) === lo && idHi[index + 1] === idHi[index]) continue
      if ((filter[(lo >>> 5) & mask]! & (1 << (lo & 31))) === 0) continue
      const hi = idHi[index]! | 0
      // Nearly always the row belongs to the same series as the row before, or to the next one.
      if (at < known.length && known[at]!.lo !== lo) at++
      if (at >= known.length || known[at]!.lo !== lo || known[at]!.hi !== hi) {
        const place = this.placeOf(server, hi, lo)
        if (place < 0) continue
        at = place
      }
      // Of two samples with one time the later arrival counts.
      const pointMs = written.tsMs[index]!
      if (pointMs < tsMs[at]!) continue
      tsMs[at] = pointMs
      // Turns minus zero into zero, as the store does.
      value[at] = written.value[index]! + 0
    }
  }

  /** The index of a series within the server; adds the series when its key is known, else returns -1. */
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
   * The newest value since `sinceMs` of every series of `metrics` on a server of this worker, in the order of their
   * keys. Null when the caller must ask the store.
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
   * The samples that are of `metrics` and not older than `sinceMs`, with their keys and in the order of these. All keys
   * must have been learnt.
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

  /**
   * The key of a series if it is of this metric, by the words of its id; undefined for any other. Cheap for most series
   * that are of none of the metrics held here.
   */
  keyOf(metric: string): (lo: number, hi: number) => string | undefined {
    const { filter } = this
    const mask = filter.length - 1
    return (lo, hi) => {
      if ((filter[((lo | 0) >>> 5) & mask]! & (1 << (lo & 31))) === 0) return undefined
      const key = this.find(hi | 0, lo | 0)?.key
      return key !== undefined && metricOf(key) === metric ? key : undefined
    }
  }

  /**
   * The servers of a company that have values here; null when the caller must ask the store, because values since
   * `sinceMs` may be missing.
   */
  serversOf(companyId: string, sinceMs: number): string[] | null {
    const start = nameOf({ companyId, serverId: '' })
    if (sinceMs < this.othersWholeFromMs || this.isDeleted(start)) return null
    const found: string[] = []
    for (const [name, server] of this.servers) {
      if (!name.startsWith(start)) continue
      if (sinceMs < server.wholeFromMs) return null
      found.push(name.slice(start.length))
    }
    return found
  }

  /** The newest values of a server's series that have a key. */
  eachNewest(
    server: ServerName,
    keyOf: (lo: number, hi: number) => string | undefined,
    take: (key: string, value: number, tsMs: number) => void,
  ): void {
    const found = this.servers.get(nameOf(server))
    for (const [at, { lo, hi }] of found?.known.entries() ?? []) {
      const key = keyOf(lo, hi)
      if (key !== undefined) take(key, found!.value[at]!, found!.tsMs[at]!)
    }
  }

  /** A ticket for `fill`, which the caller takes before it reads the store. Null when the server has no entry. */
  ticket(name: ServerName): object | null {
    return this.servers.get(nameOf(name)) ?? null
  }

  /**
   * Adds the store's newest samples of all series since `sinceMs`. Does nothing when the server was forgotten after the
   * ticket was taken.
   */
  fill(name: ServerName, ticket: object | null, sinceMs: number, samples: readonly StoredNewest[]): void {
    const server = this.servers.get(nameOf(name))
    if (!server || server !== ticket) return
    for (const sample of samples) this.note(server, sample)
    server.wholeFromMs = Math.min(server.wholeFromMs, sinceMs)
  }

  /** Takes a sample from the store unless a sample at least as new is already here. */
  private note(server: Server, { hi, lo, value, tsMs }: StoredNewest): void {
    const at = this.placeOf(server, hi | 0, lo | 0)
    if (at < 0 || tsMs <= server.tsMs[at]!) return
    server.tsMs[at] = tsMs
    server.value[at] = value
  }

  /** A ticket for `load`, which the caller takes before it reads the store. */
  loadTicket(): number {
    return this.deletions
  }

  /**
   * Adds the store's newest samples of several servers of this worker. 'again': samples were deleted after the ticket
   * was taken, and the caller must read the store again. 'full': there is no room.
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

  /** Notes that all servers were loaded with their samples since `sinceMs`. */
  loaded(sinceMs: number): void {
    this.othersWholeFromMs = sinceMs
    for (const [name, server] of this.servers)
      if (!this.isDeleted(name)) server.wholeFromMs = Math.min(server.wholeFromMs, sinceMs)
  }

  /** Forgets a company, or one server of it, because some or all of its samples were deleted. */
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

  /** Forgets everything, because samples may have been stored without passing through here. */
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

  /** Drops series that no status shows any more, and servers without series. */
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
    // Samples stored before this deletion are too old by now to be kept, even those that were ahead of the clock.
    for (const [name, atMs] of this.deletedAtMs) if (atMs + AHEAD_MAX_MS < keptFromMs) this.deletedAtMs.delete(name)
  }
}

/** The index of a series within the server, or the index at which to insert it. */
function placeIn({ known }: Server, hi: number, lo: number): number {
  let low = 0
  for (let high = known.length; low < high; ) {
    const middle = (low + high) >>> 1
    if (isBefore(known[middle]!, hi, lo)) low = middle + 1
    else high = middle
  }
  return low
}
