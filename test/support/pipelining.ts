// What every listener does with several requests on one connection, whatever they are and however they are cut.
import { expect, test } from 'bun:test'
import { askRaw, openRaw, statusesOf } from './raw-http.ts'
import { until } from './until.ts'

/** Requests with the statuses of their answers, each kept alive. */
type Requests = readonly (readonly [request: string, status: number])[]

/** A request of HTTP/1.1 with its body's length. */
export const requestOf = (method: string, path: string, headers: Record<string, string> = {}, body = ''): string =>
  `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}${body === '' ? '' : `Content-Length: ${body.length}\r\n`}\r\n${body}`

/** The tests of one listener: each request alone, all of them mixed, cut, and with a bad one among them. */
export function testPipelining(name: string, urlOf: () => string, requestsOf: () => Requests): void {
  const ask = (segments: readonly string[], count: number) => askRaw(urlOf(), segments, count)
  const statuses = (requests: Requests) => requests.map(([, status]) => status)
  const texts = (requests: Requests) => requests.map(([request]) => request).join('')

  test(`${name}: 2, 3 and 20 requests of one segment are answered in their order`, async () => {
    for (const [request, status] of requestsOf())
      for (const count of [2, 3, 20])
        expect([request, (await ask([request.repeat(count)], count)).statuses]).toEqual([
          request,
          Array.from({ length: count }, () => status),
        ])
    const mixed = [...requestsOf(), ...requestsOf().toReversed(), ...requestsOf()]
    expect((await ask([texts(mixed)], mixed.length)).statuses).toEqual(statuses(mixed))
  })

  test(`${name}: requests may be cut anywhere`, async () => {
    const requests = [...requestsOf(), ...requestsOf()]
    const text = texts(requests)
    const middle = text.length - Math.floor(requests.at(-1)![0].length / 2)
    for (const segments of [[text.slice(0, 5), text.slice(5)], [text.slice(0, middle), text.slice(middle)], [...text]])
      expect((await ask(segments, requests.length)).statuses).toEqual(statuses(requests))
  })

  test(`${name}: a request that cannot be read is answered after those before it, and closes the connection`, async () => {
    const [first] = requestsOf()
    const f = async (bad: string, status: number) => {
      const answer = await ask([first![0] + bad + first![0]], 3)
      expect([bad.slice(0, 60), answer.statuses, answer.isClosed]).toEqual([
        bad.slice(0, 60),
        [first![1], status],
        true,
      ])
    }
    await f('nonsense\r\n\r\n', 400)
    await f('GET / HTTP/1.1\r\n\r\n', 400)
    await f('GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n', 400)
    await f('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 400)
    await f('GET / HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n', 417)
    await f(`GET / HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(20_000)}\r\n\r\n`, 431)
    await f('GET / HTTP/2.0\r\nHost: x\r\n\r\n', 505)
  })

  test(`${name}: HTTP/1.0, HEAD, Connection: close and a client that has said all are answered`, async () => {
    const [first] = requestsOf()
    const [request, status] = first!
    const old = await ask([request.replace('HTTP/1.1', 'HTTP/1.0')], 2)
    expect([old.statuses, old.isClosed]).toEqual([[status], true])
    const closing = await ask([request.replace('\r\n', '\r\nConnection: close\r\n') + request], 2)
    expect([closing.statuses, closing.isClosed]).toEqual([[status], true])
    const head = await ask([request.replace('GET', 'HEAD') + request], 2)
    expect(head.statuses[1]).toBe(status)
    const { socket, received, isClosed } = openRaw(urlOf())
    socket.end(request + request)
    await until('the end', isClosed)
    expect(statusesOf(received())).toEqual([status, status])
  })
}
