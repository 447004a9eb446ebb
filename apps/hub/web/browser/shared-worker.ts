// One for all tabs of a browser: holds the one stream that brings what any of them shows. Seven tabs with a stream each
// would use up the connections that a browser has to a host.
import type { Shown, StreamMessage } from './connection/stream.ts'
import { ViewStream } from './connection/stream.ts'

/** What a tab says: what it shows now, that it lives, or that somebody signed in. */
export type TabMessage =
  | { readonly type: 'show'; readonly shown: Shown }
  | { readonly type: 'alive' }
  | { readonly type: 'restart' }
  | { readonly type: 'gone' }

type Tab = { shown: Shown; heardAtMs: number }

/** A tab says every few seconds that it lives; a sleeping one may be slow, and one that is closed says nothing. */
const SILENT_TAB_MS = 120_000

const tabs = new Map<MessagePort, Tab>()

const stream = new ViewStream(message => {
  for (const [port, { shown }] of tabs) if (isFor(message, shown)) port.postMessage(message)
})

const isFor = (message: StreamMessage, shown: Shown): boolean => !('key' in message) || message.key in shown

function showAll(): void {
  const oldest = Date.now() - SILENT_TAB_MS
  for (const [port, tab] of tabs) if (tab.heardAtMs < oldest) tabs.delete(port)
  stream.show(Object.assign({}, ...[...tabs.values()].map(tab => tab.shown)))
}

function take(port: MessagePort, message: TabMessage): void {
  const tab = tabs.get(port) ?? { shown: {}, heardAtMs: 0 }
  tab.heardAtMs = Date.now()
  tabs.set(port, tab)
  if (message.type === 'gone') tabs.delete(port)
  if (message.type === 'show') {
    tab.shown = message.shown
    port.postMessage({ type: 'state', state: stream.currentState } satisfies StreamMessage)
    for (const known of stream.known(message.shown)) port.postMessage(known)
  }
  if (message.type === 'restart') stream.restart()
  else showAll()
}

self.addEventListener('connect', event => {
  const [port] = (event as MessageEvent).ports
  if (port === undefined) return
  port.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => take(port, data))
  port.start()
})
