// GET /web/live: one stream of server-sent events for a page (decision G-123). Every five seconds a snapshot; once for
// each server that comes into view, its sparkline. The session is looked up again before every snapshot, so that a lost
// permission is lost at once.

import { rateKeyOf } from '../../../core/network/ip-address.ts'
import { standard } from '../../http/http-response.ts'
import type { Hub } from '../hub-context.ts'
import { ApiError, tooManyRequests } from '../platform/http/api-error.ts'
import type { RequestMeta } from '../platform/http/pipeline.ts'
import { respondError, toApiError } from '../platform/http/respond.ts'
import { connectivities, type EndReason, type LiveSnapshot, type ServerState } from './live-view.ts'
import type { LivePictures, LiveView } from './live-views.ts'
import { languageOf } from './login.ts'
import { companyToShow, type Guest, guestOf, visitorOf } from './page-visitor.ts'

const PICTURE_EVERY_MS = 5_000
const HEARTBEAT_EVERY_MS = 15_000
/** A viewer that does not read is disconnected when this much waits for it. */
const WAITING_BYTES_MAX = 1024 * 1024
const CURVES_AT_ONCE = 3
const PAGE_MAX = 100_000

const NO_STORE = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }

const stateNames: readonly string[] = [...connectivities, 'alerts']
const isState = (text: string | null): text is ServerState => text !== null && stateNames.includes(text)

/**
 * The part of the company that an address selects. Missing and invalid parameters select the first page of all servers.
 */
function viewOf(search: URLSearchParams): LiveView {
  const pageOf = (name: string): number => {
    const page = Number(search.get(name) ?? 1)
    return Number.isInteger(page) && page >= 1 && page <= PAGE_MAX ? page : 1
  }
  const state = search.get('state')
  return {
    page: pageOf('page'),
    alertsPage: pageOf('alerts_page'),
    search: (search.get('search') ?? '').trim().slice(0, 255),
    state: isState(state) ? state : null,
  }
}

/** Ends after `ms` or at the signal, whichever comes first. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) return resolve()
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
  })
}

type Send = (event: string, data: unknown) => void

/**
 * Sends the sparklines of servers that have come into view, a few at a time. A sparkline that cannot be read is
 * requested again later.
 */
async function sendCurves(
  snapshots: LivePictures,
  companyId: string,
  snapshot: LiveSnapshot,
  sent: Set<string>,
  send: Send,
): Promise<void> {
  const waiting = snapshot.servers.map(server => server.id).filter(id => !sent.has(id))
  const worker = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      const series = await snapshots.seriesOf(companyId, id)
      if (series === null) continue
      sent.add(id)
      send('series', series)
    }
  }
  await Promise.all(Array.from({ length: CURVES_AT_ONCE }, worker))
}

/** Why the visitor may not watch any longer; null while it may. */
async function refusalOf(hub: Hub, request: Request, company: string | null): Promise<EndReason | null> {
  const guest = await guestOf(hub, request)
  if (guest === null) return 'signed_out'
  try {
    await companyToShow(hub, guest, company)
    return null
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return 'refused'
    throw error
  }
}

export class LiveStreams {
  constructor(
    private readonly hub: Hub,
    private readonly snapshots: LivePictures,
  ) {}

  /** Answers with a stream, or with an error as the API has them. Never throws. */
  async open(request: Request, requestMeta: RequestMeta): Promise<Response> {
    try {
      const guest = await guestOf(this.hub, request)
      if (guest === null) return Response.json({ reason: 'invalid_token' }, { status: 401, headers: NO_STORE })
      this.checkRate(visitorOf(this.hub, request, requestMeta).ip)
      const company = new URL(request.url).searchParams.get('company')
      const companyId = await companyToShow(this.hub, guest, company)
      return this.stream(request, guest, companyId, company)
    } catch (error) {
      return standard(
        respondError(toApiError(error, this.hub.log), 'user', languageOf(request), { ...NO_STORE }, this.hub.now()),
      )
    }
  }

  /** A stream counts as one request of the session, like every other. */
  private checkRate(ip: string): void {
    const taken = this.hub.requestWindows.take(`session ${rateKeyOf(ip)}`, this.hub.config['rate.session_per_minute'])
    if (!taken.allowed) throw tooManyRequests(taken.retryAfterSeconds)
  }

  private stream(request: Request, { caller }: Guest, companyId: string, company: string | null): Response {
    const { hub } = this
    const leave = hub.streams.open(caller.credentialId, companyId)
    const view = viewOf(new URL(request.url).searchParams)
    const ended = new AbortController()
    const end = () => ended.abort()
    const forget = hub.bell.onClose(end)
    request.signal.addEventListener('abort', end)
    let isCancelled = false
    const encoder = new TextEncoder()
    const body = new ReadableStream<Uint8Array>(
      {
        start: controller => {
          const write = (text: string) => {
            if (ended.signal.aborted) return
            if ((controller.desiredSize ?? 0) < 0) return end()
            controller.enqueue(encoder.encode(text))
          }
          const send: Send = (event, data) => write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
          const heartbeat = setInterval(() => write(': beat\n\n'), HEARTBEAT_EVERY_MS)
          const work = this.sendPictures(request, companyId, company, view, send, ended.signal)
          void work
            .catch(error => hub.log.error({ err: error }, 'the live page lost its stream; it opens a new one'))
            .finally(() => {
              clearInterval(heartbeat)
              forget()
              request.signal.removeEventListener('abort', end)
              leave()
              // A stream that its reader has cancelled is closed already.
              if (!isCancelled) controller.close()
              end()
            })
        },
        cancel: () => {
          isCancelled = true
          end()
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: WAITING_BYTES_MAX }),
    )
    return new Response(body, {
      headers: { ...NO_STORE, 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' },
    })
  }

  /** Returns when the viewer has left, the hub stops, or the visitor may not watch any longer. */
  private async sendPictures(
    request: Request,
    companyId: string,
    company: string | null,
    view: LiveView,
    send: Send,
    signal: AbortSignal,
  ): Promise<void> {
    const sent = new Set<string>()
    let isSendingCurves = false
    while (!signal.aborted) {
      const snapshot = await this.snapshots.snapshot(companyId, view)
      send('snapshot', snapshot)
      if (!isSendingCurves) {
        isSendingCurves = true
        void sendCurves(this.snapshots, companyId, snapshot, sent, send)
          .catch(error => this.hub.log.warn({ err: error }, 'cannot read the sparklines of the live page'))
          .finally(() => {
            isSendingCurves = false
          })
      }
      await pause(PICTURE_EVERY_MS, signal)
      if (signal.aborted) return
      const refusal = await refusalOf(this.hub, request, company)
      if (refusal === null) continue
      send('end', { reason: refusal })
      return
    }
  }
}
