// Sends what is buffered, oldest first, and an empty batch as the heartbeat when there is nothing (document 3 "Agent to
// collector" /metrics, "Errors"; decisions G-50, G-54, G-55).
import { zstdCompressSync } from 'node:zlib'
import { create, fromBinary } from '@bufbuild/protobuf'
import type { Logger } from 'pino'
import { halveSeries, mergeSeries, type PointSeries, pointCount } from '../../../core/agent/requests-of-cycles.ts'
import { type Action, actionFor, isJson, somethingElse } from '../../../core/agent/response-action.ts'
import { limits } from '../../../core/limits.ts'
import { AgentStatsSchema, type MetricsAck, MetricsAckSchema } from '../../../proto/gen/svc/agent/v1/agent_pb.ts'
import type { Clock } from '../clock.ts'
import type { BatchBuffer, BufferGroup } from '../state/batch-buffer.ts'
import type { SettingsInForce } from '../state/settings-in-force.ts'
import type { SeqCounter } from '../state/state-dir.ts'
import type { StatusReport } from '../state/status.ts'
import { clockWarnings } from './clock-skew.ts'
import type { CollectorClient, Reply } from './collector-client.ts'
import { encodeBatch } from './wire.ts'

type SendResult = {
  readonly action: Action
  readonly reply: Reply | null
  /** The etag of the collector's last acknowledgement, '' without one. */
  readonly configEtag: string
}

type SenderParts = {
  readonly client: CollectorClient
  readonly buffer: BatchBuffer
  readonly seq: SeqCounter
  readonly settings: SettingsInForce
  readonly status: StatusReport
  readonly clock: Clock
  readonly log: Logger
  readonly token: () => string
}

/** Where the size of a request is judged before it is compressed. */
const INFLATED_BYTES_MAX = limits.inflatedBytesMax - 64 * 1024

const SENT_NOTHING: SendResult = { action: 'success', reply: null, configEtag: '' }

export class Sender {
  readonly #parts: SenderParts
  readonly #startedAtMs: number
  #cpu = { usage: process.cpuUsage(), atMs: performance.now() }
  #sendErrors = 0
  /** Smaller once the collector called a request of several cycles too large. */
  #pointsMax: number = limits.pointsPerRequestMax

  constructor(parts: SenderParts) {
    this.#parts = parts
    this.#startedAtMs = parts.clock.elapsed()
  }

  /**
   * One turn: the oldest cycles that fit into a request, or the heartbeat. Cycles leave the buffer once they are kept.
   */
  async send(): Promise<SendResult> {
    for (;;) {
      const group = this.#parts.buffer.oldest(this.#pointsMax)
      if (group === null) return this.#post([])
      const result = await this.#sendGroup(group)
      // Several cycles were too large together: the oldest of them go first, and all stay in the buffer until then.
      if (result === 'fewer cycles') continue
      if (result.action === 'success' || result.action === 'drop') this.#sendingWorked(group, result)
      return result
    }
  }

  #sendingWorked({ entryNumbers, series }: BufferGroup, { action, reply }: SendResult): void {
    const { buffer, log } = this.#parts
    if (action === 'success') {
      buffer.remove(entryNumbers)
      return
    }
    log.error(
      { points: pointCount(series), message: reply?.message, request_id: reply?.requestId },
      'the collector refuses a batch: dropping it',
    )
    buffer.giveUp(entryNumbers, 'refused by the collector')
  }

  /**
   * What became of a group; 'fewer cycles' when a smaller one, which `#pointsMax` now asks for, is to be sent in its
   * place.
   */
  async #sendGroup({ entryNumbers, series }: BufferGroup): Promise<SendResult | 'fewer cycles'> {
    const merged = mergeSeries(series)
    const requests = this.#fit(merged)
    let last = SENT_NOTHING
    for (const request of requests) {
      last = await this.#post(request)
      if (last.action === 'split' && entryNumbers.length > 1) {
        this.#pointsMax = Math.max(1, Math.floor(pointCount(request) / 2))
        return 'fewer cycles'
      }
      if (last.action === 'split') last = await this.#sendHalves(request)
      if (last.action !== 'success') return last
    }
    return last
  }

  /** The two halves of a request that was too large, each sent once; a half that is too large again is dropped. */
  async #sendHalves(series: readonly PointSeries[]): Promise<SendResult> {
    const halves = halveSeries(series)
    if (halves === null) return this.#dropHalf(series, SENT_NOTHING)
    let last = SENT_NOTHING
    for (const half of halves) {
      last = await this.#post(half)
      if (last.action === 'split' || last.action === 'drop') last = this.#dropHalf(half, last)
      if (last.action !== 'success') return last
    }
    return last
  }

  #dropHalf(series: readonly PointSeries[], result: SendResult): SendResult {
    const points = pointCount(series)
    this.#parts.log.error(
      { points, message: result.reply?.message, request_id: result.reply?.requestId },
      'the collector refuses a part of a batch: dropping it',
    )
    this.#parts.buffer.countDropped(points)
    return { ...result, action: 'success' }
  }

  /** The series in as many requests as the limits on points and bytes ask for. */
  #fit(series: readonly PointSeries[]): (readonly PointSeries[])[] {
    const { batchBytesMax } = this.#parts.settings.current
    const raw = encodeBatch(0n, 0, series, create(AgentStatsSchema))
    const fits =
      pointCount(series) <= limits.pointsPerRequestMax &&
      raw.length <= INFLATED_BYTES_MAX &&
      zstdCompressSync(raw).length + 1024 <= batchBytesMax
    const halves = fits ? null : halveSeries(series)
    return halves === null ? [series] : halves.flatMap(half => this.#fit(half))
  }

  async #post(series: readonly PointSeries[]): Promise<SendResult> {
    const { client, seq, clock, token } = this.#parts
    const nowMs = clock.now()
    const bytes = encodeBatch(seq.take(nowMs), nowMs, series, this.#stats())
    const body = zstdCompressSync(bytes)
    const reply = await client.call({ method: 'POST', path: '/metrics', token: token(), body, encoding: 'zstd' })
    const action = actionFor('metrics', reply)
    if (action !== 'success') {
      this.#sendErrors++
      return { action, reply, configEtag: '' }
    }
    const configEtag = this.#acknowledged(reply)
    if (configEtag !== null) return { action, reply, configEtag }
    this.#sendErrors++
    const message = somethingElse(null)
    return { action: 'back_off', reply: { ...reply, message }, configEtag: '' }
  }

  /**
   * Notes what the acknowledgement says. An empty answer, or one in JSON, still means that the batch is kept; null for
   * one that is no collector's.
   */
  #acknowledged(reply: Reply): string | null {
    const { status, clock, log } = this.#parts
    let ack: MetricsAck
    try {
      ack = fromBinary(MetricsAckSchema, reply.body)
    } catch {
      return isJson(reply.body) ? '' : null
    }
    status.warn('collector', ack.warnings)
    if (ack.droppedPoints > 0) log.warn({ points: ack.droppedPoints }, 'the collector dropped points')
    status.warn('clock', clockWarnings(Number(ack.serverTimeMs), clock.now()))
    return ack.configEtag
  }

  /** Facts for status.json. */
  facts(): { bufferBatches: number; bufferBytes: number; droppedPoints: number; sendErrors: number } {
    const { buffer } = this.#parts
    return {
      bufferBatches: buffer.batchCount,
      bufferBytes: buffer.bytes,
      droppedPoints: buffer.droppedPoints,
      sendErrors: this.#sendErrors,
    }
  }

  #stats() {
    const { buffer, settings, status, clock } = this.#parts
    const usage = process.cpuUsage()
    const atMs = performance.now()
    const busyMicros = usage.user + usage.system - this.#cpu.usage.user - this.#cpu.usage.system
    const cpuPercent = atMs > this.#cpu.atMs ? busyMicros / ((atMs - this.#cpu.atMs) * 10) : 0
    this.#cpu = { usage, atMs }
    return create(AgentStatsSchema, {
      uptimeSeconds: BigInt(Math.floor((clock.elapsed() - this.#startedAtMs) / 1000)),
      bufferBytes: BigInt(buffer.bytes),
      bufferBatches: buffer.batchCount,
      droppedPoints: BigInt(buffer.droppedPoints),
      sendErrors: BigInt(this.#sendErrors),
      intervalSeconds: settings.current.intervalMs / 1000,
      cpuPercent,
      rssBytes: BigInt(process.memoryUsage.rss()),
      configEtag: settings.appliedEtag,
      warnings: status.warnings,
    })
  }
}
