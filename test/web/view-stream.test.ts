// The browser's end of the stream: what a tab is told when the hub's answers and what is at hand do not follow each
// other.
import { afterEach, expect, test } from 'bun:test'
import { type StreamMessage, ViewStream } from '../../apps/hub/web/browser/connection/stream.ts'
import { until } from '../support/until.ts'

type Event = readonly [name: string, data: Readonly<Record<string, unknown>>]

const realFetch = globalThis.fetch
const opened: string[] = []
let streams: ViewStream[] = []

/** A hub that answers each stream with the events of its turn and then says nothing. */
function hubThatSays(...turns: readonly (readonly Event[])[]): void {
  globalThis.fetch = (async (path: string, { signal }: { signal: AbortSignal }) => {
    const events = turns[opened.length] ?? []
    opened.push(decodeURIComponent(path))
    const texts = events.map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(`: open\n\n${texts.join('')}`))
        signal.addEventListener('abort', () => controller.error(signal.reason))
      },
    })
    return new Response(body)
  }) as unknown as typeof fetch
}

function showing(version: string, value: unknown): StreamMessage[] {
  const told: StreamMessage[] = []
  const stream = new ViewStream(message => void told.push(message))
  streams.push(stream)
  stream.show({ 'servers?': { version, value } })
  return told
}

const valuesOf = (told: readonly StreamMessage[]) => told.flatMap(each => (each.type === 'view' ? [each.value] : []))

afterEach(() => {
  for (const stream of streams) stream.close()
  streams = []
  opened.length = 0
  globalThis.fetch = realFetch
})

test('an answer that is the same under another version is what the next change is told from', async () => {
  const at = { key: 'servers?', madeAtMs: 1 }
  hubThatSays([
    ['same', { ...at, version: 'v2' }],
    ['patch', { ...at, version: 'v3', from: 'v2', patch: ['o', { up: ['=', 2] }, []] }],
  ])
  const told = showing('v1', { up: 1 })
  await until('the change is told', () => valuesOf(told).length > 0)
  expect(valuesOf(told)).toEqual([{ up: 2 }])
  expect(opened).toHaveLength(1)
})

test('a change of a version that is not at hand is not applied: another stream is asked for the whole', async () => {
  const at = { key: 'servers?', madeAtMs: 1 }
  hubThatSays(
    [['patch', { ...at, version: 'v3', from: 'v2', patch: ['o', { up: ['=', 2] }, []] }]],
    [['view', { ...at, version: 'v3', value: { up: 3 } }]],
  )
  const told = showing('v1', { up: 1 })
  await until('the whole is told', () => valuesOf(told).length > 0)
  expect(valuesOf(told)).toEqual([{ up: 3 }])
  expect(opened).toEqual(['/web/live?v=v1+servers?', '/web/live?v=+servers?'])
})

test('a text may hold what else a browser takes for the end of a line', async () => {
  const value = { name: 'a\u2028b\u2029c\rd\u0085e' }
  hubThatSays([['view', { key: 'servers?', madeAtMs: 1, version: 'v2', value }]])
  const told = showing('v1', { name: 'a' })
  await until('the view is told', () => valuesOf(told).length > 0)
  expect(valuesOf(told)).toEqual([value])
  expect(opened).toHaveLength(1)
})
