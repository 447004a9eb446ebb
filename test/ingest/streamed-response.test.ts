// Responses that say how long they are, or that they come in chunks: their bodies go out as they are read, no faster
// than the client reads, and one that ends early, or goes on too long, is never taken for the whole.
import { afterAll, describe, expect, test } from 'bun:test'
import { type HttpListener, listenHttp } from '../../apps/http/http-listener.ts'
import { sentInChunks } from '../../apps/http/http-response.ts'
import { openRaw } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

const PART = 1024 * 1024
const PARTS = 64

const listeners: HttpListener[] = []
afterAll(() => Promise.all(listeners.map(listener => listener.stop(0))))

/** What a source of parts has been asked for, and whether it was told that nobody wants more. */
type Seen = { parts: number; cancelled: number }

/** A listener whose only response has so many parts, and says that it has so many bytes, or that it is in chunks. */
function listenWith(parts: number, declared: number | 'chunks', failsAfter = Number.POSITIVE_INFINITY) {
  const seen: Seen = { parts: 0, cancelled: 0 }
  const body = () => {
    let part = 0
    return new ReadableStream<Uint8Array>({
      pull(controller) {
        if (part === failsAfter) throw new Error('the source is gone')
        if (part === parts) return controller.close()
        seen.parts++
        controller.enqueue(new Uint8Array(PART).fill(97 + (part++ % 26)))
      },
      cancel() {
        seen.cancelled++
      },
    })
  }
  const listener = listenHttp({
    hostname: '127.0.0.1',
    port: 0,
    handle: () =>
      new Response(body(), { headers: declared === 'chunks' ? sentInChunks : { 'content-length': String(declared) } }),
    refuse: ({ status, message }) => new Response(message, { status }),
    idleSeconds: 60,
    connectionsMax: 100,
    certificate: null,
  })
  listeners.push(listener)
  return { seen, url: `http://127.0.0.1:${listener.port}` }
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const bodiesOf = (received: string): string[] => received.split(/HTTP\/1\.1 200 OK\r\n[\s\S]*?\r\n\r\n/).slice(1)

/** The body of the first response, its chunks put together. */
const wholeBodyOf = (received: string): string =>
  (bodiesOf(received)[0] ?? '').replace(/(^|\r\n)100000\r\n/g, '').replace(/\r\n0\r\n\r\n$/, '')

for (const [form, declared] of [
  ['says its length', PARTS * PART],
  ['says that it comes in chunks', 'chunks'],
] as const)
  test(`a response that ${form} is read no further than the client reads, and comes whole once it does`, async () => {
    const { seen, url } = listenWith(PARTS, declared)
    const { socket, received } = openRaw(url)
    socket.pause()
    socket.write(GET)
    await until('the first part', () => seen.parts > 0)
    // Another client is served whole meanwhile: whatever the source would give without being asked is given by then.
    const other = new Uint8Array(await (await fetch(url)).arrayBuffer())
    expect(other.length).toBe(PARTS * PART)
    const ofSlow = seen.parts - PARTS
    expect(ofSlow).toBeLessThan(PARTS / 2)
    socket.resume()
    await until('all of it', () => received().length > PARTS * PART && seen.parts === 2 * PARTS, 20_000)
    await until('its end', () => wholeBodyOf(received()).length === PARTS * PART, 20_000)
    expect(received().includes(`content-length: ${PARTS * PART}\r\n`)).toBe(declared !== 'chunks')
    expect(received().includes('transfer-encoding: chunked\r\n')).toBe(declared === 'chunks')
    const body = wholeBodyOf(received())
    for (let part = 0; part < PARTS; part++) expect(body[part * PART]).toBe(String.fromCharCode(97 + (part % 26)))
    socket.destroy()
  })

describe('a response that says its length', () => {
  test('leaves the connection for the next request, also after HEAD, whose source is not read', async () => {
    const { seen, url } = listenWith(2, 2 * PART)
    const { socket, received } = openRaw(url)
    socket.write(`HEAD / HTTP/1.1\r\nHost: x\r\n\r\n${GET}${GET}`)
    await until('both bodies', () => bodiesOf(received()).filter(body => body.length === 2 * PART).length === 2)
    expect(bodiesOf(received()).map(body => body.length)).toEqual([0, 2 * PART, 2 * PART])
    expect(seen.cancelled).toBe(1)
    socket.destroy()
  })

  test('comes whole to a client that has said its last word', async () => {
    const { url } = listenWith(8, 8 * PART)
    const { socket, received, isClosed } = openRaw(url)
    socket.end(GET)
    await until('the end', isClosed)
    expect(bodiesOf(received()).map(body => body.length)).toEqual([8 * PART])
  })

  for (const [name, parts, declared, failsAfter] of [
    ['whose source fails', 8, 8 * PART, 3],
    ['that is shorter than it says', 3, 8 * PART, undefined],
    ['that is longer than it says', 8, 3 * PART, undefined],
  ] as const)
    test(`${name} ends its connection, and is not taken for the whole`, async () => {
      const { url } = listenWith(parts, declared, failsAfter)
      const { socket, received, isClosed } = openRaw(url)
      socket.write(GET + GET)
      await until('the end', isClosed)
      expect(bodiesOf(received()).length).toBe(1)
      expect(bodiesOf(received())[0]!.length).toBeLessThanOrEqual(3 * PART)
    })

  test('has its source cancelled when the client leaves', async () => {
    const { seen, url } = listenWith(PARTS, PARTS * PART)
    const { socket } = openRaw(url)
    socket.pause()
    socket.write(GET)
    await until('the first part', () => seen.parts > 0)
    socket.destroy()
    await until('its end', () => seen.cancelled === 1)
  })
})

describe('a response that says that it comes in chunks', () => {
  test('comes whole to a client that has said its last word, and to one of HTTP/1.0', async () => {
    const { url } = listenWith(3, 'chunks')
    for (const [version, ending] of [
      ['1.1', '0\r\n\r\n'],
      ['1.0', 'ccc'],
    ] as const) {
      const { socket, received, isClosed } = openRaw(url)
      socket.end(`GET / HTTP/${version}\r\nHost: x\r\n\r\n`)
      await until('the end', isClosed)
      const [body = ''] = bodiesOf(received())
      for (const letter of 'abc') expect(body.split(letter.repeat(PART)).length).toBe(2)
      expect(body.endsWith(ending)).toBe(true)
      expect(received().includes('transfer-encoding: chunked')).toBe(version === '1.1')
    }
  })

  test('whose source fails is not taken for the whole', async () => {
    const { url } = listenWith(8, 'chunks', 3)
    const { socket, received, isClosed } = openRaw(url)
    socket.write(GET)
    await until('the end', isClosed)
    expect(received()).not.toContain('0\r\n\r\n')
  })
})
