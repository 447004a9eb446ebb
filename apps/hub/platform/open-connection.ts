// Connections that the hub opens for a company, to an address that was checked (outbound-guard.ts): directly, or
// through the company's forward proxy, by CONNECT (RFC 9110 9.3.6) or SOCKS5 (RFC 1928, RFC 1929). The proxy is asked
// for the checked address, so it resolves nothing; its credentials are said to it and to nobody else.
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect, isIP, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { parseAddress } from '../../../core/network/ip-address.ts'

/** The company's way out, with an address of it that may be connected to. */
export type ForwardProxy = {
  readonly scheme: 'http' | 'https' | 'socks5'
  /** As in the certificate of an https proxy. */
  readonly host: string
  readonly address: string
  readonly port: number
  readonly username: string | null
  readonly password: string | null
}
type Place = {
  /** An address; through a proxy a host name too, which the proxy then resolves. */
  readonly host: string
  readonly port: number
}
type ConnectionFault =
  | 'refused'
  | 'timeout'
  | 'dns'
  | 'target_not_allowed'
  | 'tls'
  | 'proxy_auth'
  | 'proxy_refused'
  | 'closed'

/** A connection that was not made, or ended before it answered. */
export class NoConnection extends Error {
  constructor(
    readonly fault: ConnectionFault,
    /** True when it is the proxy that did not do its part. */
    readonly isProxy = false,
  ) {
    super(fault)
  }
}

const HEAD_BYTES_MAX = 16 * 1024
const SOCKS_VERSION = 5
const SOCKS_CONNECT = 1
const SOCKS_NO_AUTH = 0
const SOCKS_PASSWORD = 2
const SOCKS_IPV4 = 1
const SOCKS_NAME = 3
const SOCKS_IPV6 = 4

/** Rejects when the socket ends, or at the deadline; the socket is then closed. */
function orEnd<T>(socket: Socket, deadlineMs: number, isProxy: boolean, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const fail = (fault: ConnectionFault) => () => reject(new NoConnection(fault, isProxy))
  const [onError, onClose] = [fail('refused'), fail('closed')]
  const timer = setTimeout(fail('timeout'), Math.max(0, deadlineMs - performance.now()))
  socket.once('error', onError)
  socket.once('close', onClose)
  return Promise.race([work, promise])
    .catch(error => {
      socket.destroy()
      throw error
    })
    .finally(() => {
      clearTimeout(timer)
      socket.off('error', onError)
      socket.off('close', onClose)
    })
}

async function openSocket(address: string, port: number, deadlineMs: number, isProxy: boolean): Promise<Socket> {
  const socket = connect({ host: address, port })
  // What comes after the last listener is gone is nobody's error.
  socket.on('error', () => {})
  const { promise, resolve } = Promise.withResolvers<void>()
  socket.once('connect', () => resolve())
  await orEnd(socket, deadlineMs, isProxy, promise)
  return socket
}

/** Exactly so many bytes, or all until `end` says how many there are. What came beyond them is given back. */
function readUntil(socket: Socket, end: (bytes: Buffer) => number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  let bytes = Buffer.alloc(0)
  const onData = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    const length = end(bytes)
    if (length < 0 || length > bytes.length) {
      if (bytes.length > HEAD_BYTES_MAX) reject(new NoConnection('proxy_refused', true))
      return
    }
    socket.off('data', onData)
    socket.pause()
    if (bytes.length > length) socket.unshift(bytes.subarray(length))
    resolve(bytes.subarray(0, length))
  }
  socket.on('data', onData)
  socket.resume()
  return promise
}

async function askConnect(socket: Socket, { host, port }: Place, proxy: ForwardProxy): Promise<void> {
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`
  const credentials = Buffer.from(`${proxy.username ?? ''}:${proxy.password ?? ''}`).toString('base64')
  const lines = [
    `CONNECT ${authority} HTTP/1.1`,
    `Host: ${authority}`,
    ...(proxy.username === null ? [] : [`Proxy-Authorization: Basic ${credentials}`]),
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  const head = await readUntil(socket, bytes => {
    const at = bytes.indexOf('\r\n\r\n')
    return at < 0 ? -1 : at + 4
  })
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head.toString('latin1'))?.[1] ?? 0)
  if (status === 407) throw new NoConnection('proxy_auth', true)
  if (status < 200 || status > 299) throw new NoConnection('proxy_refused')
}

async function askSocks(socket: Socket, { host, port }: Place, proxy: ForwardProxy): Promise<void> {
  const method = proxy.username === null ? SOCKS_NO_AUTH : SOCKS_PASSWORD
  socket.write(Buffer.from([SOCKS_VERSION, 1, method]))
  const chosen = await readUntil(socket, () => 2)
  if (chosen[0] !== SOCKS_VERSION || chosen[1] !== method) throw new NoConnection('proxy_auth', true)
  if (method === SOCKS_PASSWORD) {
    const [user, password] = [Buffer.from(proxy.username ?? ''), Buffer.from(proxy.password ?? '')]
    if (user.length > 255 || password.length > 255) throw new NoConnection('proxy_auth', true)
    socket.write(Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([password.length]), password]))
    const answer = await readUntil(socket, () => 2)
    if (answer[1] !== 0) throw new NoConnection('proxy_auth', true)
  }
  const bytes = parseAddress(host)?.toByteArray() ?? null
  const type = bytes === null ? SOCKS_NAME : bytes.length === 4 ? SOCKS_IPV4 : SOCKS_IPV6
  const name = bytes === null ? Buffer.concat([Buffer.from([host.length]), Buffer.from(host)]) : Buffer.from(bytes)
  const portBytes = Buffer.from([port >> 8, port & 0xff])
  socket.write(Buffer.concat([Buffer.from([SOCKS_VERSION, SOCKS_CONNECT, 0, type]), name, portBytes]))
  const answer = await readUntil(socket, seen => {
    if (seen.length < 5) return -1
    const addressBytes = seen[3] === SOCKS_IPV4 ? 4 : seen[3] === SOCKS_IPV6 ? 16 : 1 + (seen[4] ?? 0)
    return 6 + addressBytes
  })
  if (answer[1] !== 0) throw new NoConnection('proxy_refused')
}

type TlsOptions = {
  readonly deadlineMs: number
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | readonly string[]
  /** False: whatever certificate is shown; the socket says whether it is good. */
  readonly verifies?: boolean
  readonly isProxy?: boolean
  /** What is spoken over it (ALPN). */
  readonly protocols?: readonly string[]
}

/** TLS over a connection; `host` is who must be in the certificate. Rejects with NoConnection. */
export async function secure(
  socket: Socket,
  host: string,
  { deadlineMs, ca, verifies = true, isProxy = false, protocols }: TlsOptions,
): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const secured = connectTls({
    socket,
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }),
    rejectUnauthorized: verifies,
    ...(protocols === undefined ? {} : { ALPNProtocols: [...protocols] }),
  })
  secured.once('secureConnect', () => resolve())
  secured.on('error', () => reject(new NoConnection('tls', isProxy)))
  await orEnd(socket, deadlineMs, isProxy, promise)
  return secured
}

/**
 * A connection to a place whose address was checked, through a proxy where there is one. Rejects with NoConnection; a
 * proxy that does not do its part is never gone around.
 */
export async function openConnection(place: Place, via: ForwardProxy | null, deadlineMs: number): Promise<Socket> {
  if (via === null) return openSocket(place.host, place.port, deadlineMs, false)
  const plain = await openSocket(via.address, via.port, deadlineMs, true)
  const socket = via.scheme === 'https' ? await secure(plain, via.host, { deadlineMs, isProxy: true }) : plain
  await orEnd(socket, deadlineMs, true, (via.scheme === 'socks5' ? askSocks : askConnect)(socket, place, via))
  return socket
}

type RequestOver = {
  readonly method: string
  /** With the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  readonly deadlineMs: number
}

/** One request over a connection, which ends with the body of the response. Rejects with NoConnection. */
export async function requestOver(socket: Socket, request: RequestOver): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const sent = httpRequest(
    {
      method: request.method,
      path: request.path,
      headers: { ...request.headers, Connection: 'close' },
      createConnection: () => socket,
    },
    resolve,
  )
  sent.once('error', () => reject(new NoConnection('closed')))
  sent.end(request.body)
  const response = await orEnd(socket, request.deadlineMs, false, promise)
  const timer = setTimeout(() => socket.destroy(), Math.max(0, request.deadlineMs - performance.now()))
  response.once('close', () => {
    clearTimeout(timer)
    socket.destroy()
  })
  const status = response.statusCode ?? 0
  const isBare = status === 204 || status === 205 || status === 304
  if (isBare) socket.destroy()
  const headers = Object.entries(response.headers).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, Array.isArray(value) ? value.join(', ') : value]],
  )
  if (status < 200 || status > 599) throw new NoConnection('closed')
  // Node's type of a stream is not that of browsers, in whose terms the pages are checked too; the stream is the same.
  const body: unknown = isBare ? null : Readable.toWeb(response)
  return new Response(body as ReadableStream<Uint8Array> | null, { status, headers })
}
