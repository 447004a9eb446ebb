// MetricsBatch bytes -> SampleBatch, by hand. The fast path of a known series hashes its raw key, finds its id, and
// copies its points; it parses nothing into text and allocates nothing. Everything unusual takes the slow path.
// protobuf-es is the oracle: test/fuzz compares the two.

import { limits as requestLimits } from '../limits.ts'
import type { SampleBatch } from '../series/sample-batch.ts'
import { seriesId } from '../series/series-key.ts'
import type { AdmissionLimits, AdmissionReport, DropReason } from './admission-report.ts'
import { type AgentSeries, NONE, RAW_KEY_WORDS, SERIES_WORDS } from './agent-series.ts'
import { normaliseSeries } from './normalise-series.ts'
import { ProtoCursor } from './proto-reader.ts'
import { RawHash } from './raw-hash.ts'
import { type ParsedSeries, RawSeriesCache } from './raw-series-cache.ts'

const TAG_BATCH_SEQ = 0x08
const TAG_BATCH_SENT_AT = 0x10
const TAG_BATCH_SERIES = 0x1a
const TAG_BATCH_STATS = 0x22
const TAG_SERIES_NAME = 0x0a
const TAG_SERIES_LABEL = 0x12
const TAG_SERIES_POINT = 0x1a
const TAG_ENTRY_KEY = 0x0a
const TAG_ENTRY_VALUE = 0x12
const TAG_POINT_TS = 0x08
const TAG_POINT_VALUE = 0x11
const TAG_STATS_BUFFER_BYTES = 0x10
const TAG_STATS_BUFFER_BATCHES = 0x18
const TAG_STATS_INTERVAL = 0x30
const TAG_STATS_WARNING = 0x52

/**
 * Length of a plain point: its tag and length, the tag and six bytes of its time, the tag and eight bytes of its value.
 */
const PLAIN_POINT_BYTES = 18
/** The shortest series: its tag and length, a name of one byte, and a plain point. */
const PLAIN_SERIES_BYTES_MIN = 2 + 1 + PLAIN_POINT_BYTES
/**
 * The bits that all plain points share in their first ten bytes (three little-endian words): the tags, and the
 * continuation bits of the time.
 */
const PLAIN_POINT_A = 0x8008101a | 0
const PLAIN_POINT_A_MASK = 0x80ffffff | 0
const CONTINUES = 0x80808080 | 0
const PLAIN_POINT_C = 0x1100

/** Why a whole request is refused. */
export type DecodeRefusal = 'malformed' | 'too_many_points' | 'too_many_series'

/** The fields of a batch beside its samples. */
type BatchHeader = {
  /** A uint64: `seq` is exact below 2^53, `seqLow` and `seqHigh` always. */
  seq: number
  seqLow: number
  seqHigh: number
  sentAtMs: number
  intervalSeconds: number
  /** What the agent's buffer holds, with what this batch brings; -1: the agent says nothing of itself. */
  bufferBytes: number
  bufferBatches: number
  /** Where the last warning of the agent stands in the bytes of the batch; 0: it has none. */
  warningAt: number
  warningBytes: number
}

const emptyHeader = (): BatchHeader => ({
  ...{ seq: 0, seqLow: 0, seqHigh: 0, sentAtMs: 0, intervalSeconds: 0 },
  ...{ bufferBytes: -1, bufferBatches: 0, warningAt: 0, warningBytes: 0 },
})

/** A series whose name and labels were parsed, and whether a label was removed or cut; or why it is refused. */
type ParsedOrRefused = (ParsedSeries & { readonly isNoted?: boolean }) | { readonly refused: DropReason }

/** Keeps a leading U+FEFF as text. Bytes that are not UTF-8 become U+FFFD, which the grammar of names then refuses. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Decodes and admits one request after the other. One for each thread. */
export class BatchDecoder {
  private readonly cursor = new ProtoCursor()
  private readonly hash = new RawHash()
  private readonly cache = new RawSeriesCache()
  private pointsSeen = 0
  /**
   * How many series and fields the request may still have. Below zero when it had too many; `cursor.failed` is then set
   * too.
   */
  private seriesLeft = 0
  private fieldsLeft = 0
  private oldestMs = 0
  private newestMs = 0
  /**
   * The first ten bytes of the last admitted plain point as words, and its time. 0 = none, since no point starts with a
   * zero byte.
   */
  private lastPointA = 0
  private lastPointB = 0
  private lastPointC = 0
  private lastPointMs = 0
  readonly header = emptyHeader()

  /** A request may have at most as many series as points, since a series without a point is useless. */
  private readonly seriesMax: number

  constructor(
    private readonly batch: SampleBatch,
    private readonly limits: AdmissionLimits,
  ) {
    this.seriesMax = Math.max(limits.pointsMax, requestLimits.pointsPerRequestMax)
  }

  /**
   * Decodes `bytes` of an agent into the batch, which is cleared first. Returns null, or why the whole request is
   * refused, in which case the agent's table is unchanged. `report` receives what was dropped.
   */
  decode(bytes: Uint8Array, agent: AgentSeries, nowMs: number, report: AdmissionReport): DecodeRefusal | null {
    const { batch, cursor, header } = this
    batch.clear()
    cursor.open(bytes)
    this.clearHeader()
    this.pointsSeen = 0
    this.seriesLeft = this.seriesMax
    this.fieldsLeft = requestLimits.fieldsPerRequestMax
    this.oldestMs = nowMs - this.limits.pointAgeMaxMs
    this.newestMs = nowMs + this.limits.pointAheadMaxMs
    this.lastPointA = 0
    const nowSeconds = Math.floor(nowMs / 1000)
    const seriesBefore = agent.count
    const end = bytes.length
    if (seriesBefore === 0) {
      const seriesCount = this.countSeries(end)
      if (seriesCount > this.seriesMax) return 'too_many_series'
      agent.reserve(Math.min(seriesCount, this.limits.seriesPerAgentMax))
    }
    agent.startBatch()
    while (cursor.position < end && !cursor.failed && this.pointsSeen <= this.limits.pointsMax) {
      const tag = cursor.tag()
      if (tag === TAG_BATCH_SERIES) {
        const seriesEnd = cursor.lengthEnd(end)
        if (--this.seriesLeft < 0) cursor.failed = true
        if (!cursor.failed) this.series(seriesEnd, agent, nowSeconds, report)
        this.decodeCachedSeries(end, agent, nowSeconds)
      } else if (tag === TAG_BATCH_SEQ) {
        this.countField()
        header.seqLow = cursor.varint64()
        header.seqHigh = cursor.high
        header.seq = header.seqHigh * 4_294_967_296 + header.seqLow
      } else if (tag === TAG_BATCH_SENT_AT) {
        this.countField()
        header.sentAtMs = cursor.int64()
      } else if (tag === TAG_BATCH_STATS) {
        this.countField()
        this.stats(cursor.lengthEnd(end))
      } else this.skip(tag, end)
    }
    batch.pointStart[batch.seriesCount] = batch.pointCount
    const refusal = this.refusal(end)
    if (refusal) {
      agent.rollback(seriesBefore)
      agent.announcesAll = true
      batch.clear()
    }
    return refusal
  }

  private clearHeader(): void {
    const { header } = this
    header.seq = 0
    header.seqLow = 0
    header.seqHigh = 0
    header.sentAtMs = 0
    header.intervalSeconds = 0
    header.bufferBytes = -1
    header.bufferBatches = 0
    header.warningAt = 0
    header.warningBytes = 0
  }

  private refusal(end: number): DecodeRefusal | null {
    const { cursor } = this
    if (this.seriesLeft < 0 || this.fieldsLeft < 0) return 'too_many_series'
    if (cursor.failed || cursor.position > end) return 'malformed'
    return this.pointsSeen > this.limits.pointsMax ? 'too_many_points' : null
  }

  /**
   * Counts the series of a batch, at most to one beyond the bound. Malformed bytes make the count too small; decoding
   * then refuses them. The cursor is back at the start afterwards.
   */
  private countSeries(end: number): number {
    const { cursor } = this
    let count = 0
    for (let fields = 0; cursor.position < end && !cursor.failed && fields <= this.fieldsLeft; fields++) {
      if (count > this.seriesMax) break
      const tag = cursor.tag()
      if (tag === TAG_BATCH_SERIES) count++
      cursor.skip(tag, end)
    }
    cursor.position = 0
    cursor.failed = false
    return count
  }

  /** Counts one of the fields that a request may have. */
  private countField(): void {
    if (--this.fieldsLeft < 0) this.cursor.failed = true
  }

  /** Steps over an unknown field. */
  private skip(tag: number, end: number): void {
    this.countField()
    this.cursor.skip(tag, end)
  }

  /** What the agent says of itself. Of its warnings the place of the last one: text is made of it by who needs it. */
  private stats(end: number): void {
    const { cursor, header } = this
    if (header.bufferBytes < 0) header.bufferBytes = 0
    while (cursor.position < end && !cursor.failed) {
      const tag = cursor.tag()
      this.countField()
      if (tag === TAG_STATS_INTERVAL) header.intervalSeconds = cursor.uint32()
      else if (tag === TAG_STATS_BUFFER_BYTES) header.bufferBytes = cursor.uint64()
      else if (tag === TAG_STATS_BUFFER_BATCHES) header.bufferBatches = cursor.uint32()
      else if (tag === TAG_STATS_WARNING) {
        const warningEnd = cursor.lengthEnd(end)
        header.warningAt = cursor.position
        header.warningBytes = warningEnd - cursor.position
        cursor.position = warningEnd
      } else cursor.skip(tag, end)
    }
    if (cursor.position !== end) cursor.failed = true
  }

  /** Decodes one series; the cursor is at its first byte. */
  private series(end: number, agent: AgentSeries, nowSeconds: number, report: AdmissionReport): void {
    const { cursor, batch } = this
    const start = cursor.position
    const { bytes } = cursor
    // Every encoder writes name and labels first, then the points.
    let tag = 0
    while (cursor.position < end) {
      tag = bytes[cursor.position]!
      if (tag !== TAG_SERIES_NAME && tag !== TAG_SERIES_LABEL) break
      cursor.position++
      cursor.position = cursor.lengthEnd(end)
      if (cursor.failed) return
    }
    const pointsBefore = batch.pointCount
    if (cursor.position >= end || tag !== TAG_SERIES_POINT) {
      this.unusualSeries(start, end, pointsBefore, agent, nowSeconds, report)
      return
    }
    const keyEnd = cursor.position
    this.hash.of(bytes, cursor.view, start, keyEnd)
    const isPlain = this.points(end, report)
    if (cursor.failed) return
    if (!isPlain) {
      this.unusualSeries(start, end, pointsBefore, agent, nowSeconds, report)
      return
    }
    let series = agent.find(this.hash.a, this.hash.b)
    if (batch.pointCount === pointsBefore) {
      // No point of the series was admitted, so nothing of it is kept; malformed bytes must be refused all the same.
      if (series < 0) this.checkKey(start, keyEnd)
      return
    }
    if (series < 0) {
      series = this.newSeries(start, keyEnd, agent, nowSeconds, report, pointsBefore)
      if (series < 0) {
        batch.pointCount = pointsBefore
        return
      }
    } else {
      agent.seen(series, nowSeconds)
      if (agent.announces(series)) this.define(start, keyEnd, report)
    }
    this.push(agent, series, pointsBefore)
  }

  /**
   * Decodes series as long as they come in the order of the last batch, each with one plain point that has the time of
   * the point before: nearly all that agents send. The name and labels are not parsed, because bytes with the hash of a
   * known raw key count as that raw key, which was parsed when it was added. Leaves the cursor at the first series that
   * does not fit, or is to be announced again.
   */
  private decodeCachedSeries(end: number, agent: AgentSeries, nowSeconds: number): void {
    const { cursor, batch, hash, lastPointA, lastPointB, lastPointC, lastPointMs } = this
    if (cursor.failed || lastPointA === 0 || agent.announcesAll) return
    const { bytes, view } = cursor
    const { words, tableAt } = agent
    const { idLo, idHi, pointStart, tsMs, value } = batch
    let series = batch.seriesCount
    let point = batch.pointCount
    const seriesMax = series + Math.min(idLo.length - 1 - series, value.length - point)
    let rawKey = agent.expectedRawKey()
    let last = NONE
    let at = cursor.position
    while (
      series < seriesMax &&
      rawKey !== NONE &&
      at + PLAIN_SERIES_BYTES_MIN <= end &&
      bytes[at] === TAG_BATCH_SERIES
    ) {
      const low = bytes[at + 1]!
      const high = low < 0x80 ? 0 : bytes[at + 2]!
      const start = low < 0x80 ? at + 2 : at + 3
      const next = start + (low & 0x7f) + (high << 7)
      const keyEnd = next - PLAIN_POINT_BYTES
      if (
        high >= 0x80 ||
        next > end ||
        keyEnd <= start ||
        view.getInt32(keyEnd, true) !== lastPointA ||
        view.getInt32(keyEnd + 4, true) !== lastPointB ||
        view.getInt16(keyEnd + 8, true) !== lastPointC
      )
        break
      const pointValue = view.getFloat64(keyEnd + 10, true)
      hash.of(bytes, view, start, keyEnd)
      const rawKeyAt = rawKey * RAW_KEY_WORDS
      if (pointValue - pointValue !== 0 || words[rawKeyAt] !== hash.a || words[rawKeyAt + 1] !== hash.b) break
      const links = words[rawKeyAt + 2]!
      if (agent.announces(links & NONE)) break
      const place = tableAt + (links & NONE) * SERIES_WORDS
      idLo[series] = words[place]!
      idHi[series] = words[place + 1]!
      words[place + 2] = nowSeconds
      pointStart[series++] = point
      tsMs[point] = lastPointMs
      value[point++] = pointValue
      last = rawKey
      rawKey = links >>> 16
      at = next
    }
    if (last === NONE) return
    this.pointsSeen += point - batch.pointCount
    batch.seriesCount = series
    batch.pointCount = point
    cursor.position = at
    agent.cameInOrder(last)
  }

  private push(agent: AgentSeries, series: number, firstPoint: number): void {
    const { batch } = this
    if (batch.seriesCount + 1 >= batch.idLo.length) batch.growSeries()
    const at = batch.seriesCount++
    batch.idLo[at] = agent.lo(series)
    batch.idHi[at] = agent.hi(series)
    batch.pointStart[at] = firstPoint
  }

  /** Reads points until `end` and adds the admitted ones to the batch; false at the first field that is not a point. */
  private points(end: number, report: AdmissionReport): boolean {
    const { cursor, batch } = this
    const { bytes } = cursor
    while (cursor.position < end) {
      const start = cursor.position
      if (this.pointLikeLast(start, end)) continue
      if (bytes[start] !== TAG_SERIES_POINT) return false
      cursor.position++
      const pointEnd = cursor.lengthEnd(end)
      if (cursor.failed) return true
      const { pointCount } = batch
      this.point(pointEnd, batch, report)
      if (cursor.failed) return true
      if (batch.pointCount > pointCount) this.rememberPoint(start, pointEnd)
    }
    return true
  }

  /**
   * Most points of a batch have the time of the point before, in the same bytes. Decodes such a point; false when the
   * point is not like that.
   */
  private pointLikeLast(start: number, end: number): boolean {
    const { batch } = this
    const { view } = this.cursor
    if (
      start + PLAIN_POINT_BYTES > end ||
      view.getInt32(start, true) !== this.lastPointA ||
      view.getInt32(start + 4, true) !== this.lastPointB ||
      view.getInt16(start + 8, true) !== this.lastPointC
    )
      return false
    const value = view.getFloat64(start + 10, true)
    if (value - value !== 0 || batch.pointCount === batch.tsMs.length || this.pointsSeen >= this.limits.pointsMax)
      return false
    this.cursor.position = start + PLAIN_POINT_BYTES
    this.pointsSeen++
    batch.tsMs[batch.pointCount] = this.lastPointMs
    batch.value[batch.pointCount++] = value
    return true
  }

  /** Remembers the bytes of an admitted plain point, for `pointLikeLast`. */
  private rememberPoint(start: number, end: number): void {
    if (end - start !== PLAIN_POINT_BYTES) return
    const { view } = this.cursor
    const a = view.getInt32(start, true)
    const b = view.getInt32(start + 4, true)
    const c = view.getInt16(start + 8, true)
    const isTimeOfSixBytes = (a & PLAIN_POINT_A_MASK) === PLAIN_POINT_A && (b & CONTINUES) === CONTINUES
    if (!isTimeOfSixBytes || (c & 0xff80) !== PLAIN_POINT_C) return
    this.lastPointA = a
    this.lastPointB = b
    this.lastPointC = c
    this.lastPointMs = this.batch.tsMs[this.batch.pointCount - 1]!
  }

  private point(end: number, batch: SampleBatch, report: AdmissionReport): void {
    const { cursor } = this
    let tsMs = 0
    let value = 0
    while (cursor.position < end && !cursor.failed) {
      const tag = cursor.tag()
      if (tag === TAG_POINT_TS) tsMs = cursor.int64()
      else if (tag === TAG_POINT_VALUE) value = cursor.float64(end)
      else cursor.skip(tag, end)
    }
    if (cursor.position !== end) cursor.failed = true
    if (cursor.failed || ++this.pointsSeen > this.limits.pointsMax) return
    if (tsMs < this.oldestMs) report.drop('too_old', 1)
    else if (tsMs > this.newestMs) report.drop('too_new', 1)
    else if (value - value !== 0) report.drop('not_finite', 1)
    else {
      if (batch.pointCount === batch.tsMs.length) batch.growPoints()
      batch.tsMs[batch.pointCount] = tsMs
      batch.value[batch.pointCount++] = value
    }
  }

  /** Parses name and labels of the region. Of repeated fields and map entries the last one wins. */
  private nameAndLabels(start: number, end: number): { name: string; labels: Map<string, string> } {
    const { cursor } = this
    cursor.position = start
    let name = ''
    const labels = new Map<string, string>()
    while (cursor.position < end && !cursor.failed) {
      const tag = cursor.tag()
      this.countField()
      if (tag === TAG_SERIES_NAME) name = this.text(cursor.lengthEnd(end))
      else if (tag === TAG_SERIES_LABEL) this.label(cursor.lengthEnd(end), labels)
      else cursor.skip(tag, end)
    }
    return { name, labels }
  }

  private label(end: number, labels: Map<string, string>): void {
    const { cursor } = this
    let key = ''
    let value = ''
    while (cursor.position < end && !cursor.failed) {
      const tag = cursor.tag()
      this.countField()
      if (tag === TAG_ENTRY_KEY) key = this.text(cursor.lengthEnd(end))
      else if (tag === TAG_ENTRY_VALUE) value = this.text(cursor.lengthEnd(end))
      else cursor.skip(tag, end)
    }
    if (cursor.position !== end) cursor.failed = true
    labels.set(key, value)
  }

  private text(end: number): string {
    const { cursor } = this
    const text = decoder.decode(cursor.bytes.subarray(cursor.position, end))
    cursor.position = end
    return text
  }

  private checkKey(start: number, keyEnd: number): void {
    const after = this.cursor.position
    this.nameAndLabels(start, keyEnd)
    this.cursor.position = after
  }

  /**
   * Parses and judges name and labels of the raw key from `start` to `keyEnd`, whose hash was just computed; what the
   * same bytes meant before comes from the cache. A series with a removed or cut label is parsed each time, so that
   * every acknowledgement repeats the warning. Leaves the cursor where it is.
   */
  private parsed(start: number, keyEnd: number, report: AdmissionReport): ParsedOrRefused {
    const { cursor, cache, hash } = this
    const cached = cache.find(hash.a, cursor.bytes, start, keyEnd)
    if (cached) {
      this.fieldsLeft -= cached.fields
      if (this.fieldsLeft < 0) cursor.failed = true
      return cached
    }
    const after = cursor.position
    const fieldsBefore = this.fieldsLeft
    const { name, labels } = this.nameAndLabels(start, keyEnd)
    if (cursor.failed) return { refused: 'invalid_name' }
    cursor.position = after
    const normal = normaliseSeries(name, labels, report)
    if ('refused' in normal) return normal
    const parsed = { id: seriesId(normal.key), key: normal.key, fields: fieldsBefore - this.fieldsLeft }
    if (normal.isNoted) return { ...parsed, isNoted: true }
    cache.add(hash.a, cursor.bytes, start, keyEnd, parsed)
    return parsed
  }

  /** Adds the definition of a known series to the batch, to announce it on the bus again. */
  private define(start: number, keyEnd: number, report: AdmissionReport): void {
    const parsed = this.parsed(start, keyEnd, report)
    if ('key' in parsed) this.batch.definitions.push({ seriesIndex: this.batch.seriesCount, key: parsed.key })
  }

  /**
   * The slow path for a raw key that the agent's table does not have. Returns the index of the series, or -1 when it is
   * refused.
   */
  private newSeries(
    start: number,
    keyEnd: number,
    agent: AgentSeries,
    nowSeconds: number,
    report: AdmissionReport,
    firstPoint: number,
  ): number {
    const parsed = this.parsed(start, keyEnd, report)
    if (this.cursor.failed) return -1
    const series = this.admitSeries(parsed, agent, nowSeconds, report, this.batch.pointCount - firstPoint)
    // A series with a removed or cut label gets no raw key, so that every acknowledgement repeats the warning.
    if (series >= 0 && 'key' in parsed && !parsed.isNoted) agent.addRawKey(this.hash.a, this.hash.b, series)
    return series
  }

  /** Adds a series to the agent's table, or counts its `points` as dropped when a limit is reached. */
  private admitSeries(
    parsed: ParsedOrRefused,
    agent: AgentSeries,
    nowSeconds: number,
    report: AdmissionReport,
    points: number,
  ): number {
    if ('refused' in parsed) {
      report.drop(parsed.refused, points)
      return -1
    }
    const { id, key } = parsed
    const known = agent.findId(id)
    if (known >= 0) {
      agent.seen(known, nowSeconds)
      if (agent.announces(known)) this.batch.definitions.push({ seriesIndex: this.batch.seriesCount, key })
      return known
    }
    const { seriesPerAgentMax, seriesPerCompanyMax } = this.limits
    if (!agent.hasRoom(seriesPerAgentMax, nowSeconds)) {
      report.seriesLimit ??= { inUse: agent.count, firstDropped: key }
      report.drop('series_limit_dropped', points)
      return -1
    }
    const added = agent.add(id, nowSeconds, seriesPerCompanyMax)
    if (added < 0) report.drop('company_series_limit', points)
    else {
      this.batch.definitions.push({ seriesIndex: this.batch.seriesCount, key })
      this.batch.newSeries++
    }
    return added
  }

  /**
   * Decodes a series whose fields come in another order, or that has unknown fields, field by field from the cursor on.
   */
  private unusualSeries(
    start: number,
    end: number,
    firstPoint: number,
    agent: AgentSeries,
    nowSeconds: number,
    report: AdmissionReport,
  ): void {
    const { cursor, batch } = this
    while (cursor.position < end && !cursor.failed) {
      const tag = cursor.tag()
      if (tag === TAG_SERIES_POINT) {
        const pointEnd = cursor.lengthEnd(end)
        if (!cursor.failed) this.point(pointEnd, batch, report)
      } else this.skip(tag, end)
    }
    if (cursor.position !== end) cursor.failed = true
    if (cursor.failed) return
    const { name, labels } = this.nameAndLabels(start, end)
    if (cursor.failed) return
    cursor.position = end
    const admitted = batch.pointCount - firstPoint
    if (admitted === 0) return
    const normal = normaliseSeries(name, labels, report)
    const parsed = 'key' in normal ? { ...normal, id: seriesId(normal.key), fields: 0 } : normal
    const series = this.admitSeries(parsed, agent, nowSeconds, report, admitted)
    if (series < 0) batch.pointCount = firstPoint
    else this.push(agent, series, firstPoint)
  }
}
