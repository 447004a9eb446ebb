// The stream of the live page: reads it, reconnects when it breaks, and closes it while the page is hidden.
import type { EndReason, LiveSnapshot, ServerSeries } from '../live-view.ts'

export type StreamState = 'connecting' | 'live' | 'reconnecting' | 'waiting'

type StreamListener = {
  snapshot(snapshot: LiveSnapshot): void
  series(series: ServerSeries): void
  state(state: StreamState): void
  /** The session or the permission is gone: the page has to be opened again. */
  ended(): void
}

/** The hub sends something every five seconds; after this much silence the connection is dead. */
const SILENCE_MAX_MS = 30_000
const RETRY_MS = [1_000, 2_000, 5_000, 10_000]
const HIDDEN_MAX_MS = 30_000

const wait = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** Calls `onEvent` for each event of a stream, until it ends. */
async function readEvents(
  body: ReadableStream<Uint8Array>,
  onEvent: (name: string, data: string) => void,
  onBytes: () => void,
): Promise<void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    onBytes()
    text += decoder.decode(value, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block)?.[1]
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (name && data !== undefined) onEvent(name, data)
    }
  }
}

export class LiveStream {
  private current: AbortController | null = null
  private path = ''
  private failures = 0
  private hiddenTimer: number | undefined

  constructor(private readonly listener: StreamListener) {
    document.addEventListener('visibilitychange', () => this.onVisibility())
  }

  /** Shows another part: ends the stream that is open, if any, and opens this one. */
  open(path: string): void {
    this.path = path
    this.failures = 0
    this.restart('connecting')
  }

  private restart(state: StreamState): void {
    this.current?.abort()
    const control = new AbortController()
    this.current = control
    this.listener.state(state)
    void this.keepOpen(control)
  }

  /** A hidden page holds no connection: a browser has few, and the hub would work for nobody. */
  private onVisibility(): void {
    window.clearTimeout(this.hiddenTimer)
    if (document.hidden) {
      this.hiddenTimer = window.setTimeout(() => {
        this.current?.abort()
        this.current = null
      }, HIDDEN_MAX_MS)
    } else if (this.current === null && this.path !== '') this.restart('connecting')
  }

  private async keepOpen(control: AbortController): Promise<void> {
    while (!control.signal.aborted) {
      const waitMs = await this.readOnce(control)
      if (control.signal.aborted) return
      if (waitMs === 'ended') return this.listener.ended()
      await wait(waitMs)
    }
  }

  /** Reads a stream to its end. Returns how long to wait before the next. */
  private async readOnce(control: AbortController): Promise<number | 'ended'> {
    const silence = new AbortController()
    let silenceTimer = 0
    const heard = () => {
      window.clearTimeout(silenceTimer)
      silenceTimer = window.setTimeout(() => silence.abort(), SILENCE_MAX_MS)
    }
    heard()
    let isEnded = false
    try {
      const signal = AbortSignal.any([control.signal, silence.signal])
      const response = await fetch(this.path, { headers: { Accept: 'text/event-stream' }, cache: 'no-store', signal })
      if (response.status === 401 || response.status === 403) return 'ended'
      if (response.status === 429) {
        this.listener.state('waiting')
        return Number(response.headers.get('retry-after') ?? 10) * 1000
      }
      if (!response.ok || !response.body) throw new Error(`the hub answered ${response.status}`)
      await readEvents(
        response.body,
        (name, data) => {
          if (control.signal.aborted) return
          if (name === 'end') isEnded = true
          this.take(name, data)
        },
        heard,
      )
    } catch {
      // Whatever broke, the page says that it is trying again.
    } finally {
      window.clearTimeout(silenceTimer)
    }
    if (isEnded) return 'ended'
    if (!control.signal.aborted) this.listener.state('reconnecting')
    return RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)] ?? 10_000
  }

  private take(name: string, data: string): void {
    if (name === 'snapshot') {
      this.failures = 0
      const snapshot: LiveSnapshot = JSON.parse(data)
      this.listener.state('live')
      this.listener.snapshot(snapshot)
    } else if (name === 'series') {
      const series: ServerSeries = JSON.parse(data)
      this.listener.series(series)
    } else if (name === 'end') {
      const { reason }: { reason: EndReason } = JSON.parse(data)
      document.body.dataset.ended = reason
    }
  }
}
