// GET /web/live: one stream of server-sent events for all tabs of a browser (decision G-123). It names the views that
// the tabs show; every few seconds each is looked at again, and what has changed is sent. The session, the company and
// the keys are looked up again each time, so that a lost permission is lost at once.
import { standard } from '../../../http/http-response.ts'
import type { Hub } from '../../hub-context.ts'
import { ApiError } from '../../platform/http/api-error.ts'
import type { RequestMeta } from '../../platform/http/pipeline.ts'
import { respondError } from '../../platform/http/respond.ts'
import { toApiError } from '../../platform/http/unexpected-error.ts'
import { languageOf } from '../shell/login.ts'
import { checkWebRate, companyOfSlug, type Guest, guestOf, needKeys, signedIn } from '../shell/page-visitor.ts'
import { SharedViews } from './shared-views.ts'

const EVERY_MS = 3_000
const HEARTBEAT_EVERY_MS = 3_000
/** A viewer that does not read is disconnected when this much waits for it. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024
const SUBSCRIPTIONS_MAX = 40
const NO_STORE = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }

/** `key` is what the browser calls it; `version` what it has already. */
type Subscription = {
  readonly key: string
  readonly name: string
  readonly company: string
  readonly search: URLSearchParams
  version: string
}

/** `v=<version> <view>?company=<slug>&…`, once for each view. */
function subscriptionsOf(search: URLSearchParams): Subscription[] {
  return search
    .getAll('v')
    .slice(0, SUBSCRIPTIONS_MAX)
    .map(text => {
      const [version = '', key = ''] = [text.slice(0, text.indexOf(' ')), text.slice(text.indexOf(' ') + 1)]
      const [name = '', query = ''] = [key.split('?')[0], key.slice(key.indexOf('?') + 1)]
      const params = new URLSearchParams(query)
      return { key, name, company: params.get('company') ?? '', search: params, version }
    })
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

export class LiveStreams {
  constructor(
    private readonly hub: Hub,
    private readonly views: SharedViews,
  ) {}

  /** Answers with a stream, or with an error as the API has them. Never throws. */
  async open(request: Request, requestMeta: RequestMeta): Promise<Response> {
    try {
      const guest = await signedIn(this.hub, request)
      checkWebRate(this.hub, guest)
      return this.stream(request, guest, subscriptionsOf(new URL(request.url).searchParams))
    } catch (error) {
      const headers = { ...NO_STORE, 'X-Request-Id': requestMeta.requestId }
      return standard(
        respondError(toApiError(error, this.hub.log), 'user', languageOf(request), headers, this.hub.now()),
      )
    }
  }

  private stream(request: Request, { caller }: Guest, subscriptions: Subscription[]): Response {
    const { hub } = this
    const leave = hub.streams.open(caller.credentialId, caller.user.companyId ?? '')
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
          write(': open\n\n')
          void this.sendChanges(request, subscriptions, send, ended.signal)
            .catch(error => hub.log.error({ err: error }, 'a page lost its stream; it opens a new one'))
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

  /** Returns when the viewer has left, the hub stops, or the session is over. */
  private async sendChanges(
    request: Request,
    subscriptions: Subscription[],
    send: Send,
    signal: AbortSignal,
  ): Promise<void> {
    while (!signal.aborted) {
      const guest = await guestOf(this.hub, request)
      if (guest === null) return send('end', { reason: 'signed_out' })
      for (const subscription of subscriptions) {
        if (signal.aborted) return
        await this.sendChange(guest, subscription, send)
      }
      await pause(EVERY_MS, signal)
    }
  }

  private async sendChange(guest: Guest, subscription: Subscription, send: Send): Promise<void> {
    const { key, name, company, search } = subscription
    try {
      needKeys(guest, SharedViews.viewNamed(name).permissions)
      const { companyId } = await companyOfSlug(this.hub, guest, company)
      const { permissions } = guest.caller
      const made = await this.views.get({ name, companyId, search, permissions, wanted: 'recent' })
      const since = made.since(subscription.version)
      const at = { key, version: made.version, madeAtMs: made.madeAtMs }
      if (since === null) send('view', { ...at, value: made.value })
      else if (since.patch === null) send('same', at)
      else send('patch', { ...at, from: subscription.version, patch: since.patch })
      subscription.version = made.version
    } catch (error) {
      const fault = toApiError(error, this.hub.log)
      // What cannot be had for a moment is asked for again; what is refused is told.
      if (error instanceof ApiError || fault.status < 500) send('fault', { key, status: fault.status })
    }
  }
}
