// MetricsBatch bytes -> SampleBatch, by hand. The fast path of a known series hashes its raw name-and-labels bytes, finds its
// id, and copies its points; nothing is parsed into text and nothing is allocated. Anything unusual takes the slow path.
// protobuf-es is the oracle: test/fuzz compares the two.

import type { SampleBatch } from '../series/sample-batch.ts'
import { seriesId } from '../series/series-key.ts'
import { type AdmissionLimits, type AdmissionReport, normaliseSeries } from './admission.ts'
import type { AgentSeries } from './agent-series.ts'
import { ProtoCursor } from './proto-reader.ts'

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

/** A new 64-bit series id for a key costs a SHA-256; these are the bounds of the request besides. */
export type DecodeRefusal = 'malformed' | 'too_many_points'

/** What of a batch is not samples. */
/** seq is a uint64: `seq` is exact below 2^53, `seqLow` and `seqHigh` always. */
export type BatchFacts = { seq: number; seqLow: number; seqHigh: number; sentAtMs: number; intervalSeconds: number }

/** A leading U+FEFF is text here; bytes that are no UTF-8 become U+FFFD, and fail the grammar where there is one. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Decodes and admits request after request; one a thread. */
export class BatchDecoder {
  private readonly cursor = new ProtoCursor()
  private hashA = 0
  private hashB = 0
  private pointsSeen = 0
  private oldestMs = 0
  private newestMs = 0
  readonly facts: BatchFacts = { seq: 0, seqLow: 0, seqHigh: 0, sentAtMs: 0, intervalSeconds: 0 }

  constructor(
    private readonly batch: SampleBatch,
    private readonly limits: AdmissionLimits,
  ) {}

  /**
   * Decodes `bytes` of an agent into the batch, which is cleared first. Returns null, or why the whole request is refused; then
   * the agent's table is as it was. Values that are dropped are in `report`.
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
    this.oldestMs = nowMs - this.limits.pointAgeMaxMs
    this.newestMs = nowMs + this.limits.pointAheadMaxMs
    const nowSeconds = Math.floor(nowMs / 1000)
    const seriesBefore = agent.count
    agent.startBatch()
    const end = bytes.length
    while (cursor.position < end && !cursor.failed && this.pointsSeen <= this.limits.pointsMax) {
      const tag = cursor.tag()
      if (tag === TAG_BATCH_SERIES) {
        const seriesEnd = cursor.lengthEnd(end)
        if (!cursor.failed) this.series(seriesEnd, agent, nowSeconds, report)
      } else if (tag === TAG_BATCH_SEQ) {
        facts.seqLow = cursor.varint64()
        facts.seqHigh = cursor.high
        facts.seq = facts.seqHigh * 4_294_967_296 + facts.seqLow
      } else if (tag === TAG_BATCH_SENT_AT) facts.sentAtMs = cursor.int64()
      else if (tag === TAG_BATCH_STATS) this.stats(cursor.lengthEnd(end))
      else cursor.skip(tag, end)
    }
    batch.pointStart[batch.seriesCount] = batch.pointCount
    const refusal =
      cursor.failed || cursor.position > end
        ? 'malformed'
        : this.pointsSeen > this.limits.pointsMax
          ? 'too_many_points'
          : null
    if (refusal) {
      agent.rollback(seriesBefore)
      agent.announcesAll = true
      batch.clear()
    }
    return refusal
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
    this.hash(bytes, start, keyEnd)
    const { hashA, hashB } = this
    const isPlain = this.points(end, report)
    if (cursor.failed) return
    if (!isPlain) {
      this.unusualSeries(start, end, pointsBefore, agent, nowSeconds, report)
      return
    }
    let series = agent.find(hashA, hashB)
    if (batch.pointCount === pointsBefore) {
      // Nothing of it is kept; whether it is a Series at all is asked all the same.
      if (series < 0) this.checkKey(start, keyEnd)
      return
    }
    if (series < 0) {
      series = this.newSeries(start, keyEnd, agent, nowSeconds, report, pointsBefore, hashA, hashB)
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
      if (bytes[cursor.position] !== TAG_SERIES_POINT) return false
      cursor.position++
      const pointEnd = cursor.lengthEnd(end)
      if (cursor.failed) return true
      this.point(pointEnd, batch, report)
      if (cursor.failed) return true
    }
    return true
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

  /** 64 bits of hash of the raw bytes, in two words. Tables are an agent's own, so nobody gains by a collision. */
  private hash(bytes: Uint8Array, start: number, end: number): void {
    let a = 0x9e3779b1 ^ (end - start)
    let b = 0x85ebca77
    const { view } = this.cursor
    let at = start
    for (; at + 4 <= end; at += 4) {
      const word = view.getInt32(at, true)
      a = Math.imul(a ^ word, 0x2c1b3c6d)
      a ^= a >>> 15
      b = Math.imul(b + word, 0x297a2d39)
      b ^= b >>> 13
    }
    for (; at < end; at++) {
      a = Math.imul(a ^ bytes[at]!, 0x2c1b3c6d)
      b = Math.imul(b + bytes[at]!, 0x297a2d39)
    }
    a ^= a >>> 16
    b ^= b >>> 16
    this.hashA = Math.imul(a, 0x7feb352d) >>> 0
    this.hashB = (Math.imul(b, 0x846ca68b) ^ a) >>> 0
  }

  /** Name and labels of the region as text: repeated fields and map entries, the last one wins. */
  private nameAndLabels(start: number, end: number): { name: string; labels: Map<string, string> } {
    const { cursor } = this
    cursor.position = start
    let name = ''
    const labels = new Map<string, string>()
    while (cursor.position < end && !cursor.failed) {
      const tag = cursor.tag()
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

  /** The slow path for raw bytes that the agent's table does not have. Returns the index of the series, or -1 when it is refused. */
  private newSeries(
    start: number,
    keyEnd: number,
    agent: AgentSeries,
    nowSeconds: number,
    report: AdmissionReport,
    firstPoint: number,
    hashA: number,
    hashB: number,
  ): number {
    const after = this.cursor.position
    const { name, labels } = this.nameAndLabels(start, keyEnd)
    if (this.cursor.failed) return -1
    this.cursor.position = after
    const normal = normaliseSeries(name, labels, report)
    const series = this.admitSeries(normal, agent, nowSeconds, report, this.batch.pointCount - firstPoint)
    // A series of which something was removed or cut is not remembered by its raw bytes: every answer says so again.
    if (series >= 0 && 'key' in normal && !normal.isNoted) agent.addForm(hashA, hashB, series)
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

  /** A series whose fields come in another order, or that has unknown fields: reads on from the cursor field by field. */
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
      } else cursor.skip(tag, end)
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
