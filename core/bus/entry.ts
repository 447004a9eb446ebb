// One admitted batch in the format of the bus: identity, columns, and the keys of new series. Little-endian and padded
// to eight bytes, so that a reader uses the columns as views and allocates nothing for a batch.
//
//   offset  size  field
//   0       4     byte length of the entry, padding included
//   4       1     format version (1)
//   5       1     flags: 1 = series have other than one point each, 2 = points have times of their own
//   6       1     shard of the server, 0..63
//   7       1     unused
//   8       16    company id        24  16  server id        40  16  agent id
//   56      8     receive time, ms (float64)
//   64      8     seq of the agent (float64)
//   72      4     series count      76  4   point count
//   80      4     bytes of definitions
//   84      4     interval of the agent, seconds
//   88      8     time of all points, ms (float64), unless flag 2
//   96            series ids: (low, high) words, series count times
//                 with flag 1: points a series (uint32), padded
//                 values (float64), point count times
//                 with flag 2: times, ms (float64), point count times
//                 definitions: series index (uint32), key bytes (uint32), key UTF-8, padded to 4; whole padded to 8
import type { SampleBatch } from '../series/sample-batch.ts'
import { readUuid, writeUuid } from '../series/uuid.ts'
import { shardOfServer } from './shard-of-server.ts'

const ENTRY_VERSION = 1
const HEADER_BYTES = 96
const FLAG_COUNTS = 1
const FLAG_TIMES = 2

/** Who sent a batch and when it came. */
type EntryHeader = {
  readonly companyId: string
  readonly serverId: string
  readonly agentId: string
  readonly receivedAtMs: number
  readonly seq: number
  readonly intervalSeconds: number
}

const padTo = (bytes: number, unit: number): number => Math.ceil(bytes / unit) * unit
const encoder = new TextEncoder()

/** An upper bound of the bytes of an entry, taken before its definitions are encoded in UTF-8. */
function entryBytesMax(batch: SampleBatch): number {
  let bytes = HEADER_BYTES + batch.seriesCount * 12 + 8 + batch.pointCount * 16 + 8
  for (const definition of batch.definitions) bytes += 12 + definition.key.length * 3
  return padTo(bytes, 8)
}

/** Encodes batches into one buffer, which grows to the largest entry seen. One for each thread. */
export class EntryEncoder {
  private bytes = new Uint8Array(0)
  private u32 = new Uint32Array(0)
  private f64 = new Float64Array(0)

  private reserve(byteCount: number): void {
    if (this.bytes.length >= byteCount) return
    const buffer = new ArrayBuffer(Math.max(16 * 1024, 2 ** Math.ceil(Math.log2(byteCount))))
    this.bytes = new Uint8Array(buffer)
    this.u32 = new Uint32Array(buffer)
    this.f64 = new Float64Array(buffer)
  }

  /** Encodes a batch. The result is a view of the buffer and is valid until the next call. */
  encode(header: EntryHeader, batch: SampleBatch): Uint8Array {
    const { seriesCount, pointCount } = batch
    this.reserve(entryBytesMax(batch))
    const { bytes, u32, f64 } = this
    const commonTsMs = pointCount > 0 ? batch.tsMs[0]! : 0
    const flags = formOf(batch)
    bytes[4] = ENTRY_VERSION
    bytes[5] = flags
    bytes[6] = shardOfServer(header.serverId)
    bytes[7] = 0
    writeUuid(bytes, 8, header.companyId)
    writeUuid(bytes, 24, header.serverId)
    writeUuid(bytes, 40, header.agentId)
    f64[7] = header.receivedAtMs
    f64[8] = header.seq
    u32[18] = seriesCount
    u32[19] = pointCount
    u32[21] = header.intervalSeconds
    f64[11] = commonTsMs

    let at = HEADER_BYTES >> 2
    const { idLo, idHi, pointStart } = batch
    for (let series = 0; series < seriesCount; series++) {
      u32[at++] = idLo[series]!
      u32[at++] = idHi[series]!
    }
    if (flags & FLAG_COUNTS) {
      for (let series = 0; series < seriesCount; series++) u32[at++] = pointStart[series + 1]! - pointStart[series]!
      if (at & 1) u32[at++] = 0
    }
    let at64 = at >> 1
    const { value, tsMs } = batch
    for (let point = 0; point < pointCount; point++) f64[at64++] = value[point]!
    if (flags & FLAG_TIMES) for (let point = 0; point < pointCount; point++) f64[at64++] = tsMs[point]!
    const definitionsAt = at64 << 3
    const end = this.definitions(batch, definitionsAt)
    u32[20] = end - definitionsAt
    const length = padTo(end, 8)
    bytes.fill(0, end, length)
    u32[0] = length
    return bytes.subarray(0, length)
  }

  /** Writes the definitions from `start`; returns where they end. */
  private definitions(batch: SampleBatch, start: number): number {
    let end = start
    for (const { seriesIndex, key } of batch.definitions) {
      const { written } = encoder.encodeInto(key, this.bytes.subarray(end + 8))
      const padded = padTo(written, 4)
      this.u32[end >> 2] = seriesIndex
      this.u32[(end >> 2) + 1] = written
      this.bytes.fill(0, end + 8 + written, end + 8 + padded)
      end += 8 + padded
    }
    return end
  }
}

/** The flags of a batch: whether series have other than one point each, and points times of their own. */
function formOf(batch: SampleBatch): number {
  const { seriesCount, pointCount, tsMs, pointStart } = batch
  let flags = pointCount === seriesCount ? 0 : FLAG_COUNTS
  for (let series = 0; series < seriesCount && flags === 0; series++)
    if (pointStart[series] !== series) flags = FLAG_COUNTS
  for (let point = 1; point < pointCount; point++) if (tsMs[point] !== tsMs[0]) return flags | FLAG_TIMES
  return flags
}

/** Encodes one batch into new memory. */
export const encodeEntry = (header: EntryHeader, batch: SampleBatch): Uint8Array =>
  new EntryEncoder().encode(header, batch).slice()

/**
 * Walks the entries of one group of the bus. The views stay valid for the group; `next` moves to the following entry.
 * Series `i` of the entry has points `points(i)`; with one point each and one time, that is value i at commonTsMs.
 */
export class EntryReader {
  private bytes: Uint8Array = new Uint8Array(0)
  /** Views of the whole group; the indexes below are into these. */
  u32: Uint32Array = new Uint32Array(0)
  f64: Float64Array = new Float64Array(0)
  private start = 0
  private end = 0
  shard = 0
  seriesCount = 0
  pointCount = 0
  receivedAtMs = 0
  seq = 0
  intervalSeconds = 0
  commonTsMs = 0
  hasCounts = false
  hasTimes = false
  /** Index into u32 of the first id word; of the first point count (with hasCounts). */
  idsAt = 0
  countsAt = 0
  /** Index into f64 of the first value; of the first time (with hasTimes). */
  valuesAt = 0
  timesAt = 0
  private definitionsAt = 0
  private definitionsBytes = 0

  /** Starts reading a group of entries. Copies it only when its memory is not aligned to eight bytes. */
  open(group: Uint8Array): void {
    const aligned = group.byteOffset % 8 === 0 && group.byteLength % 8 === 0 ? group : new Uint8Array(group)
    this.bytes = aligned
    this.u32 = new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength >> 2)
    this.f64 = new Float64Array(aligned.buffer, aligned.byteOffset, aligned.byteLength >> 3)
    this.start = 0
    this.end = 0
  }

  /**
   * Moves to the next entry; false at the end of the group. Throws on bytes that are not an entry of a known version.
   */
  next(): boolean {
    const start = this.end
    if (start >= this.bytes.length) return false
    const word = start >> 2
    const length = this.u32[word]!
    const version = this.bytes[start + 4]!
    if (version !== ENTRY_VERSION)
      throw new Error(`cannot read bus entry: format version ${version}, expected ${ENTRY_VERSION}`)
    if (length < HEADER_BYTES || start + length > this.bytes.length)
      throw new Error('cannot read bus entry: length out of range')
    const flags = this.bytes[start + 5]!
    const f = start >> 3
    this.start = start
    this.end = start + length
    this.hasCounts = (flags & FLAG_COUNTS) !== 0
    this.hasTimes = (flags & FLAG_TIMES) !== 0
    this.shard = this.bytes[start + 6]!
    this.receivedAtMs = this.f64[f + 7]!
    this.seq = this.f64[f + 8]!
    this.seriesCount = this.u32[word + 18]!
    this.pointCount = this.u32[word + 19]!
    this.definitionsBytes = this.u32[word + 20]!
    this.intervalSeconds = this.u32[word + 21]!
    this.commonTsMs = this.f64[f + 11]!
    this.idsAt = word + (HEADER_BYTES >> 2)
    this.countsAt = this.idsAt + this.seriesCount * 2
    const valuesWord = this.hasCounts ? this.countsAt + padTo(this.seriesCount, 2) : this.countsAt
    this.valuesAt = valuesWord >> 1
    this.timesAt = this.valuesAt + this.pointCount
    this.definitionsAt = (this.timesAt + (this.hasTimes ? this.pointCount : 0)) << 3
    return true
  }

  companyId(): string {
    return readUuid(this.bytes, this.start + 8)
  }
  serverId(): string {
    return readUuid(this.bytes, this.start + 24)
  }
  agentId(): string {
    return readUuid(this.bytes, this.start + 40)
  }

  /** The last four bytes of the agent id as one word: random in every version of UUID in use, unlike the first. */
  agentWord(): number {
    return this.u32[(this.start + 52) >> 2]!
  }

  /** The 16 bytes of the server id as a string of 16 code units: a cheap key for a Map. */
  serverKey(): string {
    const at = this.start + 24
    const b = this.bytes
    // One call, sixteen arguments: no array, no UTF-8.
    return String.fromCharCode(
      b[at]!, b[at + 1]!, b[at + 2]!, b[at + 3]!, b[at + 4]!, b[at + 5]!, b[at + 6]!, b[at + 7]!,
      b[at + 8]!, b[at + 9]!, b[at + 10]!, b[at + 11]!, b[at + 12]!, b[at + 13]!, b[at + 14]!, b[at + 15]!,
    ) // biome-ignore format: four words of four
  }

  /** Copies the 32 bytes of company id and server id. */
  copyIdentity(into: Uint8Array, offset: number): void {
    into.set(this.bytes.subarray(this.start + 8, this.start + 40), offset)
  }

  /** The bytes of the whole entry. */
  entryBytes(): Uint8Array {
    return this.bytes.subarray(this.start, this.end)
  }

  get hasDefinitions(): boolean {
    return this.definitionsBytes > 0
  }

  /** The bytes of the definitions: the same for servers that define the same series in the same places. */
  definitionBytes(): Uint8Array {
    return this.bytes.subarray(this.definitionsAt, this.definitionsAt + this.definitionsBytes)
  }

  /**
   * Calls `visit` for every definition: index of the series in this entry, and its full key. Those that `isKnown` are
   * passed over, and their keys not decoded.
   */
  eachDefinition(
    visit: (seriesIndex: number, key: string) => void,
    isKnown: (seriesIndex: number) => boolean = () => false,
  ): void {
    let at = this.definitionsAt
    const end = at + this.definitionsBytes
    while (at < end) {
      const seriesIndex = this.u32[at >> 2]!
      const keyBytes = this.u32[(at >> 2) + 1]!
      if (!isKnown(seriesIndex)) visit(seriesIndex, decoder.decode(this.bytes.subarray(at + 8, at + 8 + keyBytes)))
      at += 8 + padTo(keyBytes, 4)
    }
  }
}

const decoder = new TextDecoder()
