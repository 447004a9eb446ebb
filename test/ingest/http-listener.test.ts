// What one connection may take of a listener, and what a client that has said its last word still gets. Frames and
// segments are written by hand: a client library would not send them.
import { afterAll, describe, expect, test } from 'bun:test'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectTls } from 'node:tls'
import type { Handle } from '../../apps/http/http-connection.ts'
import { type HttpListener, listenHttp } from '../../apps/http/http-listener.ts'
import { plainHead } from '../../apps/http/http-response.ts'
import { http2Connection } from '../../apps/http/http2-connection.ts'
import { askRaw, openRaw, type RawConnection, statusesOf } from '../support/raw-http.ts'
import { until } from '../support/until.ts'
import { firstCertificate } from './certificates.ts'

const listeners: HttpListener[] = []
afterAll(() => Promise.all(listeners.map(listener => listener.stop(0))))

type More = { idleSeconds?: number; isTls?: boolean; connectionsMax?: number }
function listen(handle: Handle, more: More = {}): HttpListener {
  const listener = listenHttp({
    hostname: '127.0.0.1',
    port: 0,
    handle,
    refuse: ({ status, message }) => new Response(message, { status }),
    idleSeconds: more.idleSeconds ?? 60,
    connectionsMax: more.connectionsMax ?? 1000,
    certificate: more.isTls ? firstCertificate : null,
    http2: http2Connection,
  })
  listeners.push(listener)
  return listener
}

const HEADERS = 1
const RST_STREAM = 3
const SETTINGS = 4
const GOAWAY = 7
const CANCEL = 8
const ENHANCE_YOUR_CALM = 11
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
/** `:method: GET`, `:path: /` and `:scheme: https` of the static table, `:authority: x` (RFC 7541, appendix A). */
const GET_ROOT = Buffer.from([0x82, 0x84, 0x87, 0x01, 0x01, 0x78])
const END_OF_STREAM_AND_HEADERS = 0x5

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const bytes = Buffer.alloc(9 + payload.length)
  bytes.writeUIntBE(payload.length, 0, 3)
  bytes[3] = type
  bytes[4] = flags
  bytes.writeUInt32BE(stream, 5)
  payload.copy(bytes, 9)
  return bytes
}

function codeBytes(code: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(code)
  return bytes
}

const ask = (stream: number): Buffer => frame(HEADERS, END_OF_STREAM_AND_HEADERS, stream, GET_ROOT)
const reset = (stream: number): Buffer => frame(RST_STREAM, 0, stream, codeBytes(CANCEL))
/** Streams of a client have odd numbers. */
const streams = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, index) => 2 * (from + index) + 1)

type Frame = { readonly type: number; readonly stream: number; readonly payload: Buffer }

function framesOf(bytes: Buffer): Frame[] {
  const frames: Frame[] = []
  for (let at = 0; at + 9 <= bytes.length; ) {
    const end = at + 9 + bytes.readUIntBE(at, 3)
    if (end > bytes.length) break
    frames.push({ type: bytes[at + 3]!, stream: bytes.readUInt32BE(at + 5), payload: bytes.subarray(at + 9, end) })
    at = end
  }
  return frames
}

async function openHttp2(port: number) {
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  let received = Buffer.alloc(0)
  let isClosed = false
  socket.on('data', (part: Buffer) => {
    received = Buffer.concat([received, part])
  })
  for (const event of ['end', 'close', 'error'])
    socket.on(event, () => {
      isClosed = true
    })
  await new Promise<void>(resolve => socket.once('secureConnect', () => resolve()))
  socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0, Buffer.alloc(0))]))
  return { socket, frames: () => framesOf(received), isClosed: () => isClosed }
}

/** A handler that answers when it is let. */
function heldHandler() {
  const { promise, resolve } = Promise.withResolvers<void>()
  const seen = { running: 0, runningMax: 0, release: resolve }
  const handle: Handle = async () => {
    seen.running++
    seen.runningMax = Math.max(seen.runningMax, seen.running)
    await promise
    seen.running--
    return new Response('here')
  }
  return { seen, handle }
}

test('a stream of HTTP/2 that is reset has its place until its handler ends', async () => {
  const { seen, handle } = heldHandler()
  const { port } = listen(handle, { isTls: true })
  const { socket, frames } = await openHttp2(port)
  socket.write(Buffer.concat(streams(0, 60).flatMap(stream => [ask(stream), reset(stream)])))
  socket.write(Buffer.concat(streams(60, 60).map(ask)))
  const answered = () => frames().flatMap(({ type, stream }) => (type === HEADERS ? [stream] : []))
  await until('the answer to the last one', () => seen.running >= 120 || answered().length === 20)
  expect([seen.runningMax, answered()]).toEqual([100, streams(100, 20)])
  seen.release()
  await until('the answers', () => answered().length === 60)
  expect(answered().slice(20)).toEqual(streams(60, 40))
  socket.write(ask(241))
  await until('one more answer', () => answered().includes(241))
  socket.destroy()
})

test('a connection of HTTP/2 that resets one stream after the other is ended, and others are served', async () => {
  const { seen, handle } = heldHandler()
  const { port } = listen(handle, { isTls: true })
  const { socket, frames, isClosed } = await openHttp2(port)
  const other = await openHttp2(port)
  for (let from = 0; from < 2_000 && !isClosed(); from += 50)
    await new Promise<void>(resolve =>
      socket.write(Buffer.concat(streams(from, 50).flatMap(stream => [ask(stream), reset(stream)])), () =>
        setImmediate(resolve),
      ),
    )
  await until('the end', isClosed, 5_000)
  const last = frames().find(({ type }) => type === GOAWAY)
  expect(last?.payload.readUInt32BE(4)).toBe(ENHANCE_YOUR_CALM)
  expect(seen.runningMax).toBeLessThanOrEqual(100)
  seen.release()
  other.socket.write(ask(1))
  await until('the answer to another client', () => other.frames().some(({ type }) => type === HEADERS))
  other.socket.destroy()
  socket.destroy()
})

test('resets among as many answers end no connection of HTTP/2', async () => {
  const { port } = listen(() => new Response('here'), { isTls: true })
  const { socket, frames, isClosed } = await openHttp2(port)
  const answered = (stream: number) => frames().some(found => found.type === HEADERS && found.stream === stream)
  for (let from = 0; from < 400; from += 20) {
    const asked = streams(from, 20)
    socket.write(
      Buffer.concat(asked.flatMap((stream, index) => (index % 2 ? [ask(stream), reset(stream)] : [ask(stream)]))),
    )
    await until('the answers', () => isClosed() || asked.every((stream, index) => index % 2 === 1 || answered(stream)))
  }
  expect([isClosed(), frames().some(({ type }) => type === GOAWAY)]).toEqual([false, false])
  socket.destroy()
})

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

for (const scheme of ['http', 'https'])
  test(`a client that has said its last word gets all answers, however late it reads them: ${scheme}`, async () => {
    const large = 'x'.repeat(1_000_000)
    let asked = 0
    const handle: Handle = () => {
      asked++
      return new Response(large)
    }
    const { socket, received, isClosed } = openRaw(
      `${scheme}://127.0.0.1:${listen(handle, { isTls: scheme === 'https' }).port}`,
    )
    socket.pause()
    socket.end(GET.repeat(20))
    await until('the first answers', () => asked > 0)
    socket.resume()
    await until('the end', isClosed)
    expect([statusesOf(received()).length, asked]).toEqual([20, 20])
    expect(received().length).toBeGreaterThan(20 * large.length)
  })

test('no trickle of bytes keeps a connection without a request', async () => {
  // The clock of the sockets ticks each four seconds: a shorter time would be over at the next tick, renewed or not.
  const { port } = listen(() => new Response('here'), { idleSeconds: 5 })
  const trickles: readonly (readonly [string, string, boolean])[] = [
    // Empty lines before a request.
    ['', '\r\n', false],
    ['GET / HTTP/1.1\r\nHost: x\r\nX-Long: ', 'x', false],
    // After a response that was the last one.
    ['nonsense\r\n\r\n', 'x', false],
    [GET, '\r\n', false],
    [GET, '', true],
  ]
  const connections = trickles.map(([first, more, isEnded]) => {
    const connection = openRaw(`http://127.0.0.1:${port}`)
    let isGone = false
    for (const event of ['close', 'error'])
      connection.socket.on(event, () => {
        isGone = true
      })
    connection.socket.write(first)
    if (isEnded) connection.socket.end()
    const timer = setInterval(() => {
      if (!isGone && !isEnded) connection.socket.write(more)
    }, 100)
    return { ...connection, isGone: () => isGone, timer }
  })
  try {
    await until('the end of all', () => connections.every(({ isGone }) => isGone()), 15_000).catch(() => {})
    expect(connections.map(({ isGone }) => isGone())).toEqual(trickles.map(() => true))
  } finally {
    for (const { timer, socket } of connections) {
      clearInterval(timer)
      socket.destroy()
    }
  }
}, 120_000)

test('connections beyond the bound get 503, over TLS none, and one that ends makes room', async () => {
  for (const isTls of [false, true]) {
    const { port } = listen(() => new Response('here'), { isTls, connectionsMax: 2 })
    const url = `${isTls ? 'https' : 'http'}://127.0.0.1:${port}/`
    const get = (connection: RawConnection) => connection.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const held = [openRaw(url), openRaw(url)]
    for (const connection of held) {
      get(connection)
      await until('an answer', () => statusesOf(connection.received()).length === 1)
    }
    const third = openRaw(url)
    if (!isTls) get(third)
    await until('the third to be closed', third.isClosed)
    expect(statusesOf(third.received())).toEqual(isTls ? [] : [503])
    for (const connection of held) {
      get(connection)
      await until('a second answer', () => statusesOf(connection.received()).length === 2)
    }
    held[0]!.socket.destroy()
    const next = await until('room for another', async () => {
      const fourth = openRaw(url)
      get(fourth)
      await until('an end', () => fourth.isClosed() || fourth.received().length > 0)
      return statusesOf(fourth.received())[0] === 200 && fourth
    })
    for (const { socket } of [held[1]!, third, next]) socket.destroy()
  }
})

test('a client that waits longer than the time of a silent connection for its answer gets it', async () => {
  const answer = Promise.withResolvers<void>()
  const { port } = listen(
    async () => {
      await answer.promise
      return new Response('late')
    },
    { idleSeconds: 1 },
  )
  const silent = openRaw(`http://127.0.0.1:${port}`)
  const waiting = openRaw(`http://127.0.0.1:${port}`)
  waiting.socket.write(GET)
  // Opened before the other one: its end says that the time of both is over.
  await until('the end of the silent one', silent.isClosed)
  expect(waiting.isClosed()).toBe(false)
  answer.resolve()
  await until('the answer', () => waiting.received().includes('late'))
  waiting.socket.destroy()
})

test('requests that resemble the one before are read by what they say themselves', async () => {
  const seen: string[] = []
  const { port } = listen(request => {
    seen.push(`${request.method} ${request.target} ${JSON.stringify(Object.fromEntries(request.headers))}`)
    return { status: 204, head: plainHead(204, {}), body: '' }
  })
  const heads = [
    'GET /a HTTP/1.1\r\nHost: x\r\nX-One: 1\r\nX-Two: 2',
    'GET /a HTTP/1.1\r\nHost: x\r\nX-One: 3\r\nX-Two: 4',
    'GET /ab HTTP/1.1\r\nHost: x\r\nX-On: 5\r\nX-One-: 6',
    'PUT /a HTTP/1.1\r\nX-Two: 7\r\nhost: x\r\nX-One: 8',
  ]
  await askRaw(`http://127.0.0.1:${port}`, [`${heads.join('\r\n\r\n')}\r\n\r\n`], heads.length)
  expect(seen).toEqual([
    'GET /a {"host":"x","x-one":"1","x-two":"2"}',
    'GET /a {"host":"x","x-one":"3","x-two":"4"}',
    'GET /ab {"host":"x","x-on":"5","x-one-":"6"}',
    'PUT /a {"x-two":"7","host":"x","x-one":"8"}',
  ])
  const twice = 'GET /a HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n'
  const bad = 'GET /a HTTP/1.1\r\nHost: x\r\nX-One: a\x01b\r\n\r\n'
  for (const head of [twice, bad]) expect((await askRaw(`http://127.0.0.1:${port}`, [head], 1)).statuses).toEqual([400])
})

test('a body in one segment is there without a copy until the answer; who keeps its bytes gets a copy', async () => {
  const views: (Uint8Array | null | undefined)[] = []
  const kept: Uint8Array[] = []
  const { port } = listen(async request => {
    if (request.target === '/view') views.push(request.view)
    else kept.push(await request.bytes())
    const text = Buffer.from(views.at(-1) ?? kept.at(-1)!).toString()
    return { status: 200, head: plainHead(200, {}), body: text }
  })
  const post = (path: string, body: string) =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const url = `http://127.0.0.1:${port}`
  expect((await askRaw(url, [post('/kept', 'first'), post('/kept', 'second')], 2)).text).toContain('second')
  expect(kept.map(bytes => Buffer.from(bytes).toString())).toEqual(['first', 'second'])
  expect((await askRaw(url, [post('/view', 'third')], 1)).text).toContain('third')
  expect(views[0]?.length).toBe(0)
})

describe('a body that trickles', () => {
  const POST = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n'
  const trickle = (write: () => void) => setInterval(write, 20)

  test('gets 408 and ends its connection where somebody reads it, and ends it after the answer where nobody does', async () => {
    const readers: Handle[] = [
      async request => new Response(`${(await request.bytes()).length}`),
      () => new Response('not read'),
    ]
    for (const [index, handle] of readers.entries()) {
      const { port } = listen(handle, { idleSeconds: 1 })
      const connection = openRaw(`http://127.0.0.1:${port}`)
      connection.socket.write(POST)
      const timer = trickle(() => connection.isClosed() || connection.socket.write('x'))
      try {
        await until('its end', connection.isClosed)
        expect(statusesOf(connection.received())).toEqual([index === 0 ? 408 : 200])
      } finally {
        clearInterval(timer)
        connection.socket.destroy()
      }
    }
  })

  test('loses its stream over HTTP/2', async () => {
    const { port } = listen(async request => new Response(`${(await request.bytes()).length}`), {
      idleSeconds: 1,
      isTls: true,
    })
    const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
    // A write that crosses the reset fails; the stream says why.
    session.on('error', () => {})
    const stream = session.request({ ':method': 'POST', ':path': '/' })
    stream.on('error', () => {})
    const timer = trickle(() => stream.closed || stream.destroyed || stream.write('x'))
    try {
      await until('its end', () => stream.destroyed)
      expect(stream.rstCode).toBe(ENHANCE_YOUR_CALM)
    } finally {
      clearInterval(timer)
      session.destroy()
    }
  })
})
