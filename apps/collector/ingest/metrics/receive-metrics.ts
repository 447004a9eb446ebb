// POST /agent/v1/metrics, the hot path: authenticate, rate, inflate, decode and admit, publish, acknowledge. A batch is
// acknowledged only once the bus has it durably (document 3 "Agent to collector"; decisions G-24, G-55 to G-58).
// Between decode and encode there is no await: one decoder and one batch serve every request of the thread.
import { fromBinary, fromJson, type JsonValue, toBinary } from '@bufbuild/protobuf'
import { EntryEncoder } from '../../../../core/bus/entry.ts'
import { SampleBatch } from '../../../../core/series/sample-batch.ts'
import { type AdmissionLimits, AdmissionReport, dropReasons } from '../../../../core/wire/admission-report.ts'
import { AgentSeries, OwnCompanySeries } from '../../../../core/wire/agent-series.ts'
import { BatchDecoder, type DecodeRefusal } from '../../../../core/wire/decode-and-admit.ts'
import type { RateLimit } from '../../../../core/wire/rate-bucket.ts'
import { MetricsAckSchema, MetricsBatchSchema } from '../../../../proto/gen/svc/agent/v1/agent_pb.ts'
import { ApiError, badRequest, rateLimited, tooLarge, unavailable } from '../../../http/api-error.ts'
import { discardBody, giveBack, inflate, viewBody } from '../../../http/body-limits.ts'
import type { IncomingRequest } from '../../../http/http-request.ts'
import { type AnyResponse, plainHead } from '../../../http/http-response.ts'
import type { PublishRefusal } from '../../bus/bus.ts'
import type { AgentRecord } from '../../store/registry/agent-record.ts'
import type { AgentSession } from '../agents/agent-session.ts'
import { RefusalLog } from '../agents/refusal-log.ts'
import type { MetricsContext } from '../context.ts'
import { bodyForm, protocolOf } from '../listener/agent-protocol.ts'
import { messageResponse, protobufHeaders } from '../listener/responses.ts'
import { type Ack, AckEncoder } from './metrics-ack.ts'

const ACK_HEAD = plainHead(200, protobufHeaders)
const LOG_PERIOD_MS = 600_000
const noWarnings: readonly string[] = []

type Admitted = { readonly entry: Uint8Array; readonly ack: Ack }

/** A batch that is being published, and what must be undone when the bus refuses it. */
type Publishing = {
  readonly answer: Promise<PublishRefusal | null>
  readonly series: AgentSeries
  readonly seriesBefore: number
  readonly announcesAll: boolean
  readonly hasNewSeries: boolean
}

export class MetricsReceiver {
  private readonly context: MetricsContext
  private readonly limits: AdmissionLimits
  private readonly batch = new SampleBatch()
  private readonly decoder: BatchDecoder
  private readonly acks = new AckEncoder()
  private readonly entries = new EntryEncoder()
  /** Reused for the next batch while it is empty. */
  private report = new AdmissionReport()
  private readonly bodyBytesMax: number
  private readonly inflatedBytesMax: number
  private readonly acceptsJson: boolean
  private readonly refusals: RefusalLog

  constructor(context: MetricsContext) {
    this.context = context
    const { config } = context
    this.limits = {
      seriesPerAgentMax: config['ingest.limits.max_series_per_agent'],
      seriesPerCompanyMax: config['ingest.limits.max_series_per_company'],
      pointsMax: config['ingest.limits.max_points'],
      pointAgeMaxMs: config['ingest.limits.max_point_age'],
      pointAheadMaxMs: config['ingest.limits.max_point_ahead'],
    }
    this.bodyBytesMax = config['ingest.limits.max_body_bytes']
    this.inflatedBytesMax = config['ingest.limits.max_inflated_bytes']
    this.acceptsJson = config['debug.accept_json']
    this.refusals = new RefusalLog(context.log, context.nowMs)
    this.decoder = new BatchDecoder(this.batch, this.limits)
  }

  /** Handles a batch. An ApiError becomes the response. */
  async receive(request: IncomingRequest): Promise<AnyResponse | ApiError> {
    const startedAtMs = performance.now()
    const { headers } = request
    const protocol = protocolOf(headers)
    if (protocol instanceof ApiError) return refuseUnread(request, protocol)
    const found = this.admitCaller(headers)
    let session = found instanceof Promise ? await found : found
    if (session instanceof ApiError) return refuseUnread(request, session)
    const form = bodyForm(headers.get('content-type'), this.acceptsJson)
    if (form instanceof ApiError) return refuseUnread(request, this.refusals.note(session, form))
    const encoding = headers.get('content-encoding')
    const read = viewBody(request, this.bodyBytesMax)
    const body = read instanceof Promise ? await read : read
    if (body instanceof ApiError) return this.refusals.note(session, body)
    if (!session.isOwned) {
      // The session was closed, or another thread acquired it, while the body was being read.
      session = await this.context.callers.authenticate(headers.get('authorization'), this.context.nowMs())
      if (session instanceof ApiError) return session
    }
    const taking = this.take(session, body, encoding, form)
    if (taking instanceof ApiError) return this.refusals.note(session, taking)
    const { ack, publishing } = taking
    if (publishing) {
      let refusal: PublishRefusal | null
      try {
        refusal = await publishing.answer
      } catch (error) {
        this.context.log.error({ err: error }, 'cannot publish a batch to the bus')
        refusal = 'failed'
      }
      const refused = this.applyBusResponse(session, publishing, ack, refusal)
      if (--session.publishing === 0 && session.whenIdle) session.whenIdle()
      if (refused) return refused
    }
    this.context.callers.noteBatch(session, protocol, ack.serverTimeMs)
    this.context.metrics.hot.batches++
    const answer = this.acks.encode(ack)
    this.context.metrics.requestSeconds.add((performance.now() - startedAtMs) / 1000)
    return form === 'json'
      ? messageResponse(MetricsAckSchema, fromBinary(MetricsAckSchema, answer), true)
      : { status: 200, head: ACK_HEAD, body: answer }
  }

  /** Checks token and rate before the body is read. Synchronous for a token that was seen before. */
  private admitCaller(headers: IncomingRequest['headers']): AgentSession | ApiError | Promise<AgentSession | ApiError> {
    const { callers, nowMs } = this.context
    const atMs = nowMs()
    const found = callers.authenticate(headers.get('authorization'), atMs)
    return found instanceof Promise ? found.then(session => this.takeRate(session, atMs)) : this.takeRate(found, atMs)
  }

  private takeRate(session: AgentSession | ApiError, nowMs: number): AgentSession | ApiError {
    if (session instanceof ApiError) return session
    // The size of a batch is known only once it is inflated, so this checks the debt of the batches before.
    const waitSeconds =
      session.bytesRate.debtSeconds(this.bytesRateOf(session), nowMs) ||
      session.metricsRate.take(this.context.rates.metrics, nowMs)
    return waitSeconds > 0 ? this.refusals.note(session, rateLimited(waitSeconds)) : session
  }

  private bytesRateOf({ record }: AgentSession): RateLimit {
    const { rates } = this.context
    return isActive(record) ? rates.activeBytes : rates.pendingBytes
  }

  /** Inflates, decodes and admits a body, and publishes it. Has no await, since decoder and batch are shared. */
  private take(
    session: AgentSession,
    body: Uint8Array,
    encoding: string | null,
    form: 'protobuf' | 'json',
  ): { readonly ack: Ack; readonly publishing: Publishing | null } | ApiError {
    const { context } = this
    const startedAtMs = performance.now()
    const inflated = inflate(body, encoding, this.inflatedBytesMax)
    if (inflated instanceof ApiError) return inflated
    const bytes = form === 'json' ? batchFromJson(inflated) : inflated
    if (bytes instanceof ApiError) return bytes
    const { hot, decodeSeconds } = context.metrics
    hot.wireBytes += body.length
    hot.inflatedBytes += inflated.length
    if (inflated !== body) giveBack(body)
    const nowMs = context.nowMs()
    session.bytesRate.charge(this.bytesRateOf(session), inflated.length, nowMs)
    if (!isActive(session.record)) {
      const ack = this.takePending(bytes, session, nowMs)
      return ack instanceof ApiError ? ack : { ack, publishing: null }
    }
    const { series } = session
    const seriesBefore = series.count
    const announcesAll = session.setAnnouncements(nowMs)
    const admitted = this.admit(session, bytes, nowMs)
    giveBack(bytes)
    decodeSeconds.add((performance.now() - startedAtMs) / 1000)
    if (admitted instanceof ApiError) return admitted
    const hasNewSeries = this.batch.newSeries > 0
    if (hasNewSeries) session.newSeriesInFlight++
    session.publishing++
    const answer = context.bus.publish(session.record.serverId, admitted.entry)
    return { ack: admitted.ack, publishing: { answer, series, seriesBefore, announcesAll, hasNewSeries } }
  }

  /** Applies the answer of the bus to the session; returns an error when the bus refused the batch. */
  private applyBusResponse(
    session: AgentSession,
    publishing: Publishing,
    ack: Ack,
    refusal: PublishRefusal | null,
  ): ApiError | null {
    const { series, seriesBefore, announcesAll, hasNewSeries } = publishing
    if (hasNewSeries) session.newSeriesInFlight--
    if (refusal === null) {
      session.announced(ack.serverTimeMs, announcesAll)
      this.context.metrics.hot.points += ack.acceptedPoints
      return null
    }
    // The definitions never reached the bus: new series are removed from the table again, and what was announced with
    // them must be announced again. What was only due stays due.
    if (session.series === series && series.count > seriesBefore) series.rollback(seriesBefore)
    if (announcesAll || hasNewSeries) session.mustAnnounce = true
    this.context.metrics.hot.refusedByBus++
    if (refusal === 'full') this.refusals.noteFullBus()
    return unavailable('the batch cannot be kept now; send it again')
  }

  /** Decodes a batch into an entry. Has no await, since decoder and batch are shared. */
  private admit(session: AgentSession, bytes: Uint8Array, nowMs: number): Admitted | ApiError {
    const { batch, decoder, limits } = this
    const report = this.cleanReport()
    const refusal = decoder.decode(bytes, session.series, nowMs, report)
    if (refusal) return this.refusal(refusal)
    const { header } = decoder
    const { record } = session
    session.statement.take(header, bytes, nowMs)
    const entry = this.entries.encode(
      {
        companyId: record.companyId,
        serverId: record.serverId,
        agentId: record.agentId,
        receivedAtMs: nowMs,
        seq: header.seq,
        intervalSeconds: header.intervalSeconds,
      },
      batch,
    )
    const warnings = isClean(report)
      ? noWarnings
      : this.noteReport(session, report.finish(limits.seriesPerAgentMax), nowMs)
    const ack = {
      serverTimeMs: nowMs,
      seqLow: header.seqLow,
      seqHigh: header.seqHigh,
      etag: this.context.callers.etagOf(session).bytes,
      acceptedPoints: batch.pointCount,
      droppedPoints: report.droppedPoints,
      warnings,
    }
    return { entry, ack }
  }

  /** A pending agent is answered, but nothing of it is kept (decision G-24). */
  private takePending(bytes: Uint8Array, session: AgentSession, nowMs: number): Ack | ApiError {
    const report = this.cleanReport()
    const refusal = this.decoder.decode(bytes, new AgentSeries(new OwnCompanySeries()), nowMs, report)
    if (refusal) return this.refusal(refusal)
    const { header } = this.decoder
    session.statement.take(header, bytes, nowMs)
    const points = this.batch.pointCount
    this.context.metrics.hot.dropped.pending_agent += points
    if (!isClean(report)) this.countDropped(report)
    return {
      serverTimeMs: nowMs,
      seqLow: header.seqLow,
      seqHigh: header.seqHigh,
      etag: this.context.callers.etagOf(session).bytes,
      acceptedPoints: 0,
      droppedPoints: points + report.droppedPoints,
      warnings: ['agent pending approval'],
    }
  }

  private refusal(refusal: DecodeRefusal): ApiError {
    const { pointsMax } = this.limits
    switch (refusal) {
      case 'malformed':
        return badRequest('the body is no MetricsBatch')
      case 'too_many_points':
        return tooLarge(`the batch has more than ${pointsMax} points`)
      case 'too_many_series':
        return tooLarge(`the batch has too many series or labels`)
    }
  }

  private cleanReport(): AdmissionReport {
    if (!isClean(this.report)) this.report = new AdmissionReport()
    return this.report
  }

  private countDropped(report: AdmissionReport): void {
    const { dropped } = this.context.metrics.hot
    for (const reason of dropReasons) dropped[reason] += report.dropped[reason]
  }

  /** Counts what was dropped, and logs it from time to time. */
  private noteReport(session: AgentSession, warnings: readonly string[], nowMs: number): readonly string[] {
    this.countDropped(this.report)
    if (nowMs >= session.logAtMs) {
      session.logAtMs = nowMs + LOG_PERIOD_MS
      this.context.log.warn(
        {
          agent_id: session.record.agentId,
          company_id: session.record.companyId,
          warnings: this.report.loggable(),
        },
        'something of a batch was dropped or changed',
      )
    }
    return warnings
  }
}

/** Refuses an agent without looking at its body. */
async function refuseUnread(request: IncomingRequest, refusal: ApiError): Promise<ApiError> {
  await discardBody(request)
  return refusal
}

/** Whether samples of the agent are kept. */
const isActive = (record: AgentRecord): boolean => record.state === 'active' && record.serverId !== ''

const isClean = (report: AdmissionReport): boolean =>
  report.droppedPoints === 0 && report.warnings.length === 0 && report.seriesLimit === null

/** A batch in JSON as the bytes of the same message. */
function batchFromJson(text: Uint8Array): Uint8Array | ApiError {
  try {
    const json: JsonValue = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(text))
    return toBinary(MetricsBatchSchema, fromJson(MetricsBatchSchema, json, { ignoreUnknownFields: true }))
  } catch {
    return badRequest('the body is no MetricsBatch in JSON')
  }
}
