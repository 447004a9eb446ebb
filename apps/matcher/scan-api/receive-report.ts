// POST /scan/v1/report: a report, or the hash of the one that is held. 200 means that report, findings and events are
// on the disk (MAT-032).
import type { Report } from '../../../core/matching/report-schema.ts'
import { ApiError, unavailable } from '../../http/api-error.ts'
import type { IncomingRequest } from '../../http/http-request.ts'
import type { ReportOutcome } from '../state/state-types.ts'
import type { ReportResult } from '../telemetry.ts'
import { parseReport } from './parse-report.ts'
import { hostRevoked, type ProvenCall, proveCall } from './prove-call.ts'
import { inflateBody } from './read-body.ts'
import { busy, ReportsAtOnce } from './reports-at-once.ts'
import type { ScanContext } from './scan-context.ts'
import { unauthorized } from './signed-call.ts'
import { minIntervalMsOf, scanSettings } from './when-to-report.ts'

const RETRY_SECONDS = 30
const CONTENT_HASH = /^[0-9a-f]{64}$/

/** What is not taken of a proven call, as the label of svc_matcher_reports_total. */
const resultByCode: Readonly<Record<string, ReportResult>> = {
  unauthorized: 'unauthorized',
  clock_skew: 'clock_skew',
  host_revoked: 'host_revoked',
  rate_limited: 'rate_limited',
  too_soon: 'too_soon',
  need_report: 'need_report',
  replayed: 'replayed',
  machine_changed: 'machine_changed',
  purged: 'purged',
  unavailable: 'unavailable',
}

/** `report` null: the hash alone was sent. */
type ReadReport = { readonly report: Report | null; readonly contentHash: string; readonly bytes: number }

type Kept = Extract<ReportOutcome, { readonly open_findings: number }>

const resultOf = (kept: Kept): ReportResult => {
  if (kept.outcome !== 'kept') return kept.outcome
  return kept.isRepeat ? 'repeated' : kept.isUnchanged ? 'unchanged' : 'kept'
}

/** Why a report was not kept, for the agent. */
function faultOf(outcome: Exclude<ReportOutcome, Kept>): ApiError {
  switch (outcome.outcome) {
    case 'too_soon': {
      const seconds = Math.max(1, Math.ceil(outcome.retryAfterMs / 1000))
      return new ApiError(429, 'too_soon', `the next report is taken in ${seconds} s`, seconds)
    }
    case 'unknown_host':
      return unauthorized()
    case 'host_revoked':
      return hostRevoked()
    case 'machine_changed':
      return new ApiError(409, 'machine_changed', 'this scan host was enrolled on another computer; enroll this one')
    case 'need_report':
      return new ApiError(409, 'need_report', 'the report of this hash is not held; send it whole')
    case 'replayed':
      return new ApiError(409, 'replayed', 'a report of this time or a later one is held already')
    case 'purged':
      return new ApiError(409, 'purged', 'the data of this host were deleted after this report was made')
    case 'outbox_full':
      return unavailable('too many events wait for the hub', RETRY_SECONDS)
  }
}

export class ReportReceiver {
  private readonly atOnce = new ReportsAtOnce()

  constructor(private readonly context: ScanContext) {}

  async receive(request: IncomingRequest): Promise<Response | ApiError> {
    const { metrics, log } = this.context
    const response = await this.answer(request)
    if (!(response instanceof ApiError)) return response
    const result = resultByCode[response.code] ?? 'refused'
    metrics.reports.inc({ result })
    log.debug({ result, code: response.code }, 'a report was not kept')
    return response
  }

  private async answer(request: IncomingRequest): Promise<Response | ApiError> {
    if (!this.atOnce.beginCall()) return busy()
    try {
      const call = await proveCall(this.context, request)
      return call instanceof ApiError ? call : await this.take(request, call)
    } finally {
      this.atOnce.endCall()
    }
  }

  private read(request: IncomingRequest, { body }: ProvenCall): ReadReport | ApiError {
    const contentHash = request.headers.get('x-svc-scan-content')?.trim() ?? null
    if (body.length === 0 && contentHash !== null)
      return CONTENT_HASH.test(contentHash)
        ? { report: null, contentHash, bytes: 0 }
        : new ApiError(400, 'bad_request', 'header X-SVC-Scan-Content is no SHA-256 in hex')
    const { config, metrics } = this.context
    metrics.reportBytes.observe(body.length)
    const bytes = inflateBody(body, request.headers.get('content-encoding'), config['limits.max_inflated_bytes'])
    if (bytes instanceof ApiError) return bytes
    if (!this.atOnce.hasRoomFor(bytes.length)) return busy()
    const parsed = parseReport(bytes)
    return parsed instanceof ApiError ? parsed : { ...parsed, bytes: bytes.length }
  }

  private async take(request: IncomingRequest, call: ProvenCall): Promise<Response | ApiError> {
    const read = this.read(request, call)
    if (read instanceof ApiError) return read
    this.atOnce.take(read.bytes)
    try {
      return await this.keep(request, call, read)
    } catch (error) {
      this.context.log.error({ err: error, host_id: call.host.hostId }, 'cannot keep a report; it is sent again')
      return unavailable('the report cannot be kept now', RETRY_SECONDS)
    } finally {
      this.atOnce.giveBack(read.bytes)
    }
  }

  private async keep(
    request: IncomingRequest,
    { host, headers }: ProvenCall,
    { report, contentHash }: ReadReport,
  ): Promise<Response | ApiError> {
    const { state, nowMs, log, metrics, onSeen } = this.context
    const settings = await this.context.settingsOf(host.companyId)
    const receivedAtMs = nowMs()
    const startedMs = performance.now()
    const outcome = await state.acceptReport({
      hostId: host.hostId,
      report,
      contentHash,
      requestTimeMs: headers.timeMs,
      signature: headers.signature,
      receivedAtMs,
      minIntervalMs: minIntervalMsOf(settings),
    })
    if (!('open_findings' in outcome)) return faultOf(outcome)
    metrics.matchSeconds.observe((performance.now() - startedMs) / 1000)
    metrics.reports.inc({ result: resultOf(outcome) })
    onSeen(host.hostId, report?.scanner_version ?? request.headers.get('x-svc-agent-version') ?? '', receivedAtMs)
    const { match_status, open_findings } = outcome
    log.debug({ host_id: host.hostId, result: resultOf(outcome), match_status, open_findings }, 'report')
    return Response.json({
      server_time_ms: Math.floor(receivedAtMs),
      settings: scanSettings(host, settings, receivedAtMs),
      match_status,
      open_findings,
    })
  }
}
