// The tab's side of the stream: says which views it shows, takes what has changed, and knows how old the data is.
import { computed, signal } from '@preact/signals'
import { nowMs } from '../hub-clock.ts'
import { isSignedOut, workerUrl } from '../session.ts'
import type { TabMessage } from '../shared-worker.ts'
import { type Shown, type StreamMessage, ViewStream } from './stream.ts'
import { isLost, type StreamState } from './when-lost.ts'

const ALIVE_EVERY_MS = 20_000

/** Whether changes are applied as they come; while paused the page stays as it is. */
export const isPaused = signal(false)
const streamState = signal<StreamState>('connecting')
/** When the hub last said that what is shown is of now, by the hub's clock. */
export const dataAtMs = signal(nowMs())
/** Now, told every second, for what shows an age. */
export const clockMs = signal(nowMs())

/** `lost`: states are not known, nothing may look well. */
export const connection = computed<StreamState | 'paused'>(() => {
  if (isLost(streamState.value, () => clockMs.value - dataAtMs.value)) return 'lost'
  return isPaused.value ? 'paused' : streamState.value
})

type Subscriber = (message: StreamMessage) => void
const subscribers = new Map<string, { holders: Set<Subscriber>; version: string; value: unknown }>()

type Line = (message: TabMessage) => void

function take(message: StreamMessage): void {
  if (message.type === 'state') streamState.value = message.state
  else if (message.type === 'signed_out') isSignedOut.value = true
  else {
    if (message.type !== 'fault') dataAtMs.value = Math.max(dataAtMs.value, message.madeAtMs)
    const held = subscribers.get(message.key)
    if (held === undefined) return
    if (message.type === 'view') {
      held.version = message.version
      held.value = message.value
    }
    for (const holder of held.holders) holder(message)
  }
}

function openLine(): Line {
  if ('SharedWorker' in window) {
    const worker = new SharedWorker(workerUrl, { type: 'module', name: 'live' })
    worker.port.addEventListener('message', ({ data }: MessageEvent<StreamMessage>) => take(data))
    worker.port.start()
    return message => worker.port.postMessage(message)
  }
  const stream = new ViewStream(take)
  return message => {
    if (message.type === 'show') stream.show(message.shown)
    else if (message.type === 'restart') stream.restart()
    else if (message.type === 'gone') stream.close()
  }
}

let line: Line | null = null
let isWaiting = false

function tellShown(): void {
  if (isWaiting) return
  isWaiting = true
  // What a page subscribes to while it is drawn is told once; a tab that was never looked at asks for nothing.
  queueMicrotask(() => {
    isWaiting = false
    if (document.hidden && line === null) return
    line ??= openLine()
    const shown: Shown = Object.fromEntries(
      [...subscribers].map(([key, { version, value }]) => [key, { version, value }]),
    )
    line({ type: 'show', shown })
  })
}

/** Follows a view from the version that the page has. Returns the function that ends it. */
export function follow(key: string, version: string, value: unknown, subscriber: Subscriber): () => void {
  const held = subscribers.get(key) ?? { holders: new Set(), version, value }
  held.holders.add(subscriber)
  subscribers.set(key, held)
  tellShown()
  return () => {
    held.holders.delete(subscriber)
    if (held.holders.size > 0) return
    subscribers.delete(key)
    tellShown()
  }
}

export function startLive(): void {
  setInterval(() => {
    clockMs.value = nowMs()
  }, 1_000)
  setInterval(() => line?.({ type: 'alive' }), ALIVE_EVERY_MS)
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) tellShown()
  })
  addEventListener('pagehide', () => line?.({ type: 'gone' }))
  addEventListener('pageshow', tellShown)
  isSignedOut.subscribe(isOut => {
    if (!isOut) line?.({ type: 'restart' })
  })
}
