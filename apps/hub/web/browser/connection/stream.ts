// Reads the hub's stream of changes for a set of views, and opens it again when it breaks. Runs in the shared worker
// for all tabs of a browser, or in the page where there are no shared workers.
import { type Patch, patched } from '../../live/patch.ts'
import { SILENCE_MAX_MS, type StreamState } from './when-lost.ts'

/** What a tab is told. `madeAtMs` is of the hub's clock. */
export type StreamMessage =
  | {
      readonly type: 'view'
      readonly key: string
      readonly version: string
      readonly madeAtMs: number
      readonly value: unknown
    }
  | { readonly type: 'same'; readonly key: string; readonly madeAtMs: number }
  | { readonly type: 'fault'; readonly key: string; readonly status: number }
  | { readonly type: 'state'; readonly state: StreamState }
  | { readonly type: 'signed_out' }

/** What a tab shows, with the versions that it has. */
export type Shown = Readonly<Record<string, { readonly version: string; readonly value: unknown }>>

const RETRY_MS = [1_000, 2_000, 4_000]
/** Views that come together, as while a page is built, are asked for together. */
const GATHER_MS = 60

const wait = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, ms))

/** What stands behind a word. Lines end at a line feed alone: a text may hold what else a browser takes for an end. */
const textBehind = (lines: readonly string[], word: string): string | undefined =>
  lines.find(line => line.startsWith(word))?.slice(word.length)

/** Calls `onEvent` for each event of a stream, until it ends; `onBytes` for everything that comes. */
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
      const lines = block.split('\n')
      const name = textBehind(lines, 'event: ')
      const data = textBehind(lines, 'data: ')
      if (name && data !== undefined) onEvent(name, data)
    }
  }
}

type Held = { version: string; value: unknown; madeAtMs: number }

export class ViewStream {
  private readonly held = new Map<string, Held>()
  private current: AbortController | null = null
  private failures = 0
  private gather: ReturnType<typeof setTimeout> | undefined
  private state: StreamState = 'connecting'

  constructor(private readonly tell: (message: StreamMessage) => void) {}

  /** Whether the stream is open and heard from. */
  get currentState(): StreamState {
    return this.state
  }

  /** Shows these views from now on. The stream is opened anew only when another view has come. */
  show(shown: Shown): void {
    let isNew = false
    for (const key of [...this.held.keys()]) if (!(key in shown)) this.held.delete(key)
    for (const [key, { version, value }] of Object.entries(shown))
      if (!this.held.has(key)) {
        this.held.set(key, { version, value, madeAtMs: 0 })
        isNew = true
      }
    if (this.held.size === 0) this.close()
    else if (isNew || this.current === null) {
      clearTimeout(this.gather)
      this.gather = setTimeout(() => this.restart(), GATHER_MS)
    }
  }

  /** What is at hand of views that somebody shows without having any version of them. */
  known(shown: Shown): StreamMessage[] {
    return Object.entries(shown).flatMap(([key, { version }]): StreamMessage[] => {
      const held = this.held.get(key)
      return version !== '' || held === undefined || held.version === '' ? [] : [{ type: 'view', key, ...held }]
    })
  }

  close(): void {
    clearTimeout(this.gather)
    this.current?.abort()
    this.current = null
  }

  /** Opens the stream at once, as after a sign-in. */
  restart(): void {
    this.current?.abort()
    const control = new AbortController()
    this.current = control
    this.failures = 0
    void this.keepOpen(control)
  }

  private setState(state: StreamState): void {
    this.state = state
    this.tell({ type: 'state', state })
  }

  private async keepOpen(control: AbortController): Promise<void> {
    while (!control.signal.aborted) {
      const waitMs = await this.readOnce(control)
      if (control.signal.aborted || waitMs === null) return
      await wait(waitMs)
    }
  }

  private path(): string {
    const search = new URLSearchParams()
    for (const [key, { version }] of this.held) search.append('v', `${version} ${key}`)
    return `/web/live?${search}`
  }

  /** Reads a stream to its end. Returns how long to wait before the next; null: nobody is signed in. */
  private async readOnce(control: AbortController): Promise<number | null> {
    const silence = new AbortController()
    let silenceTimer: ReturnType<typeof setTimeout> | undefined
    const heard = () => {
      clearTimeout(silenceTimer)
      silenceTimer = setTimeout(() => silence.abort(), SILENCE_MAX_MS)
    }
    heard()
    try {
      const signal = AbortSignal.any([control.signal, silence.signal])
      const response = await fetch(this.path(), { headers: { Accept: 'text/event-stream' }, cache: 'no-store', signal })
      if (response.status === 401) return this.signedOut(control)
      if (response.status === 429) return Number(response.headers.get('retry-after') ?? 10) * 1000
      if (!response.ok || !response.body) throw new Error(`the hub answered ${response.status}`)
      let isOut = false
      await readEvents(
        response.body,
        (name, data) => {
          if (control.signal.aborted) return
          if (name === 'end') isOut = true
          else this.take(name, data)
          this.failures = 0
        },
        () => {
          heard()
          if (this.state !== 'live') this.setState('live')
        },
      )
      if (isOut) return this.signedOut(control)
    } catch {
      // Whatever broke, the page says that the connection is lost.
    } finally {
      clearTimeout(silenceTimer)
    }
    if (control.signal.aborted) return null
    this.setState('lost')
    return RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)] ?? 4_000
  }

  private signedOut(control: AbortController): null {
    control.abort()
    this.current = null
    this.tell({ type: 'signed_out' })
    return null
  }

  private take(name: string, data: string): void {
    const { key, version, madeAtMs, value, patch, from, status } = JSON.parse(data) as {
      key: string
      version: string
      madeAtMs: number
      value: unknown
      patch: Patch
      from: string
      status: number
    }
    const held = this.held.get(key)
    if (held === undefined) return
    if (name === 'fault') this.tell({ type: 'fault', key, status })
    if (name === 'same') {
      // Only the order of its members changed: further changes are told from this version on.
      held.version = version
      this.tell({ type: 'same', key, madeAtMs })
    }
    if (name !== 'view' && name !== 'patch') return
    // A patch of another version than the one at hand would spoil it: another stream brings the whole.
    if (name === 'patch' && held.version !== from) {
      held.version = ''
      this.restart()
      return
    }
    held.value = name === 'view' ? value : patched(held.value, patch)
    held.version = version
    held.madeAtMs = madeAtMs
    this.tell({ type: 'view', key, version, madeAtMs, value: held.value })
  }
}
