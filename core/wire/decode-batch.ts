// MetricsBatch bytes -> SampleBatch, by hand. The fast path of a known series hashes its raw name-and-labels bytes,
// finds its id, and copies its points; nothing is parsed into text and nothing is allocated. Anything unusual takes the
// slow path. protobuf-es is the oracle: test/fuzz compares the two.

import { limits as requestLimits } from '../limits.ts'
import type { SampleBatch } from '../series/sample-batch.ts'
import { seriesId } from '../series/series-key.ts'
import { type AdmissionLimits, type AdmissionReport, normaliseSeries } from './admission.ts'
import { type AgentSeries, NONE, RAW_KEY_WORDS, SERIES_WORDS } from './agent-series.ts'
import { ProtoCursor } from './proto-reader.ts'
import { RawHash } from './raw-hash.ts'

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
const TAG_STATS_INTERVAL = 0x30

/** Tag and length of a point, tag and six bytes of its time, tag and eight bytes of its value. */
const PLAIN_POINT_BYTES = 18
/** Tag and length of a series, a byte of its name, and a plain point. */
const PLAIN_SERIES_BYTES_MIN = 2 + 1 + PLAIN_POINT_BYTES
/**
 * Of its first ten bytes as three little-endian words, what is the same in all: the tags, and which bytes of the time
 * go on.
 */
const PLAIN_POINT_A = 0x8008101a | 0
const PLAIN_POINT_A_MASK = 0x80ffffff | 0
const CONTINUES = 0x80808080 | 0
const PLAIN_POINT_C = 0x1100

/** Why a whole request is refused. */
export type DecodeRefusal = 'malformed' | 'too_many_points' | 'too_many_series'

/** What of a batch is not samples. seq is a uint64: `seq` is exact below 2^53, `seqLow` and `seqHigh` always. */
export type BatchHeader = { seq: number; seqLow: number; seqHigh: number; sentAtMs: number; intervalSeconds: number }

/** A leading U+FEFF is text here; bytes that are no UTF-8 become U+FFFD, and fail the grammar where there is one. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Decodes and admits request after request; one a thread. */
export class BatchDecoder {
  private readonly cursor = new ProtoCursor()
  private readonly hash = new RawHash()
  private pointsSeen = 0
  /** What a request may still have; below zero when it has too many, and then `cursor.failed` is set too. */
  private seriesLeft = 0
  private fieldsLeft = 0
  private oldestMs = 0
  private newestMs = 0
  /** The first bytes of the last plain point that was admitted, and its time. No point starts with a zero. */
  private lastPointA = 0
  private lastPointB = 0
  private lastPointC = 0
  private lastPointMs = 0
  readonly facts: BatchHeader = { seq: 0, seqLow: 0, seqHigh: 0, sentAtMs: 0, intervalSeconds: 0 }

  /** A series without a point is useless: a request has at most as many series as points. */
  private readonly seriesMax: number

  constructor(
    private readonly batch: SampleBatch,
    private readonly limits: AdmissionLimits,
  ) {
    this.seriesMax = Math.max(limits.pointsMax, requestLimits.pointsPerRequestMax)
  }

  /**
   * Decodes `bytes` of an agent into the batch, which is cleared first. Returns null, or why the whole request is
   * refused; then the agent's table is as it was. Values that are dropped are in `report`.
   */
  decode(bytes: Uint8Array, agent: AgentSeries, nowMs: number, report: AdmissionReport): DecodeRefusal | null {
    const { batch, cursor, facts } = this
    batch.clear()
    cursor.open(bytes)
    facts.seq = 0
    facts.seqLow = 0
    facts.seqHigh = 0
    facts.sentAtMs = 0
    facts.intervalSeconds = 0
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
        facts.seqLow = cursor.varint64()
        facts.seqHigh = cursor.high
        facts.seq = facts.seqHigh * 4_294_967_296 + facts.seqLow
      } else if (tag === TAG_BATCH_SENT_AT) facts.sentAtMs = cursor.int64()
      else if (tag === TAG_BATCH_STATS) {
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

  private refusal(end: number): DecodeRefusal | null {
    const { cursor } = this
    if (this.seriesLeft < 0 || this.fieldsLeft < 0) return 'too_many_series'
    if (cursor.failed || cursor.position > end) return 'malformed'
    return this.pointsSeen > this.limits.pointsMax ? 'too_many_points' : null
  }

  /**
   * How many series a batch has, counted no further than one beyond the bound; too few when something of it cannot be
   * read. The cursor is at the start again.
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

  /** Takes one of the fields that a request may have. */
  private countField(): void {
    if (--this.fieldsLeft < 0) this.cursor.failed = true
  }

  /** Steps over a field that is unknown here. */
  private skip(tag: number, end: number): void {
    this.countField()
    this.cursor.skip(tag, end)
  }

  private stats(end: number): void {
    const { cursor, facts } = this
    while (cursor.position < end && !cursor.failed) {
      const tag = cursor.tag()
      if (tag === TAG_STATS_INTERVAL) facts.intervalSeconds = cursor.uint32()
      else cursor.skip(tag, end)
    }
    if (cursor.position !== end) cursor.failed = true
  }

  /** One series; the cursor stands at its first byte. */
  private series(end: number, agent: AgentSeries, nowSeconds: number, report: AdmissionReport): void {
    const { cursor, batch } = this
    const start = cursor.position
    const { bytes } = cursor
    // Name and labels first, then points: the order that every encoder writes.
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
      // Nothing of it is kept; whether it is a Series at all is asked all the same.
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
      if (agent.announcesAll) this.define(start, keyEnd, report)
    }
    this.push(agent, series, pointsBefore)
  }

  /**
   * Takes series as long as they come in the order of the last batch, each with one plain point of the time of the
   * point before: nearly all that agents send. Nothing of such a series is looked into: bytes with the hash of a raw
   * key are that raw key, which was read when it was learnt. The cursor is left at the first series that is not so.
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

  /** Reads points until `end`; false at the first field that is no point. Admitted ones are in the batch. */
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
   * Most points of a batch have the time of the point before, in the same bytes. Takes such a point; false: it is
   * another one.
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

  /** Remembers an admitted point that is laid out as nearly all are: a time of six bytes, then the value. */
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

  /** Name and labels of the region as text: repeated fields and map entries, the last one wins. */
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

  /** Puts the definition of a known series beside its samples: the bus hears of it again. */
  private define(start: number, keyEnd: number, report: AdmissionReport): void {
    const after = this.cursor.position
    const { name, labels } = this.nameAndLabels(start, keyEnd)
    this.cursor.position = after
    const normal = normaliseSeries(name, labels, report)
    if ('key' in normal) this.batch.definitions.push({ seriesIndex: this.batch.seriesCount, key: normal.key })
  }

  /**
   * The slow path for raw bytes that the agent's table does not have. Returns the index of the series, or -1 when it is
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
    const after = this.cursor.position
    const { name, labels } = this.nameAndLabels(start, keyEnd)
    if (this.cursor.failed) return -1
    this.cursor.position = after
    const normal = normaliseSeries(name, labels, report)
    const series = this.admitSeries(normal, agent, nowSeconds, report, this.batch.pointCount - firstPoint)
    // A series of which something was removed or cut is not remembered by its raw bytes: every answer says so again.
    if (series >= 0 && 'key' in normal && !normal.isNoted) agent.addRawKey(this.hash.a, this.hash.b, series)
    return series
  }

  /** Finds a place for a normalised series. `points` are counted as dropped when there is none. */
  private admitSeries(
    normal: ReturnType<typeof normaliseSeries>,
    agent: AgentSeries,
    nowSeconds: number,
    report: AdmissionReport,
    points: number,
  ): number {
    if ('refused' in normal) {
      report.drop(normal.refused, points)
      return -1
    }
    const id = seriesId(normal.key)
    const known = agent.findId(id)
    if (known >= 0) {
      agent.seen(known, nowSeconds)
      if (agent.announcesAll) this.batch.definitions.push({ seriesIndex: this.batch.seriesCount, key: normal.key })
      return known
    }
    const { seriesPerAgentMax, seriesPerCompanyMax } = this.limits
    if (!agent.hasRoom(seriesPerAgentMax, nowSeconds)) {
      report.seriesLimit ??= { inUse: agent.count, firstDropped: normal.key }
      report.drop('series_limit_dropped', points)
      return -1
    }
    const added = agent.add(id, nowSeconds, seriesPerCompanyMax)
    if (added < 0) report.drop('company_series_limit', points)
    else this.batch.definitions.push({ seriesIndex: this.batch.seriesCount, key: normal.key })
    return added
  }

  /**
   * A series whose fields come in another order, or that has unknown fields: reads on from the cursor field by field.
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
    const series = this.admitSeries(normal, agent, nowSeconds, report, admitted)
    if (series < 0) batch.pointCount = firstPoint
    else this.push(agent, series, firstPoint)
  }
}
