// One connection of an HTTP/2 client: the runtime's implementation of the protocol, on a socket of the listener.
import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { Duplex } from 'node:stream'
import type { Socket } from 'bun'
import { RequestBody } from './body-framing.ts'
import { BodyPace } from './body-pace.ts'
import { type Connection, type ConnectionOptions, REST_BYTES_MAX } from './http-connection.ts'
import { HttpRequest } from './http-request.ts'
import { type AnyResponse, headersOf, wholeBody } from './http-response.ts'
import { HEAD_BYTES_MAX, type RequestHead } from './request-head.ts'

/** Requests of one connection under way at once: a stream that was reset counts until its handler has ended. */
const STREAMS_MAX = 100
/** A connection may have so many more streams that were reset or refused than streams that were answered. */
const RESETS_MAX = 2 * STREAMS_MAX
const LENGTH = /^\d{1,15}$/

/** The socket as the implementation wants it. */
class SocketStream extends Duplex {
  private rest: Buffer | null = null
  private onWritten: (() => void) | null = null

  constructor(private readonly socket: Socket<Connection>) {
    super()
  }

  override _read(): void {
    this.socket.resume()
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const written = Math.max(0, this.socket.write(chunk))
    if (written < chunk.length) {
      this.rest = chunk.subarray(written)
      this.onWritten = done
    } else done()
  }

  drain(): void {
    if (!this.rest || !this.onWritten) return
    this.rest = this.rest.subarray(Math.max(0, this.socket.write(this.rest)))
    if (this.rest.length > 0) return
    const done = this.onWritten
    this.rest = null
    this.onWritten = null
    done()
  }

  override _final(done: () => void): void {
    this.socket.end()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.socket.end()
    done(error)
  }
}

class Http2Connection implements Connection {
  private readonly stream: SocketStream
  private readonly session: ServerHttp2Session
  private streamsOpen = 0
  private handlersUnderWay = 0
  /** Streams that were reset or refused, less those that were answered. */
  private resets = 0
  private isClosing = false

  constructor(
    private readonly socket: Socket<Connection>,
    private readonly options: ConnectionOptions,
  ) {
    this.stream = new SocketStream(socket)
    this.stream.on('error', () => socket.terminate())
    this.session = performServerHandshake(this.stream, {
      settings: { maxConcurrentStreams: STREAMS_MAX, maxHeaderListSize: HEAD_BYTES_MAX },
    })
    this.session.on('error', () => socket.terminate())
    this.session.on('stream', (stream, headers, flags) => {
      const hasBody = (flags & constants.NGHTTP2_FLAG_END_STREAM) === 0
      // A stream that fails is its client's; there is nobody left to be answered.
      stream.on('error', () => {})
      if (this.isClosing) return stream.destroy()
      this.streamsOpen++
      stream.on('close', () => this.streamsOpen--)
      // A client that asks and resets would otherwise have any number of handlers at work (CVE-2023-44487).
      if (this.handlersUnderWay >= STREAMS_MAX) return this.turnAway(stream)
      stream.on('close', () => this.count(stream.rstCode === constants.NGHTTP2_NO_ERROR))
      this.handlersUnderWay++
      void this.serve(stream, headers, hasBody)
        .catch(() => stream.close(constants.NGHTTP2_INTERNAL_ERROR))
        .finally(() => this.handlersUnderWay--)
    })
  }

  /** Streams of one connection would hide each other's silence. */
  readonly isAwaited = false

  get isIdle(): boolean {
    return this.streamsOpen === 0
  }

  receive(data: Buffer): void {
    this.socket.timeout(this.options.idleSeconds)
    if (!this.stream.push(data)) this.socket.pause()
  }

  drain(): void {
    this.socket.timeout(this.options.idleSeconds)
    this.stream.drain()
  }

  end(): void {
    this.stream.push(null)
  }

  closed(): void {
    this.session.destroy()
    this.stream.destroy()
  }

  finish(): void {
    this.session.close()
  }

  /** The runtime has no clean way to refuse a stream that is not answered, so this is an answer. */
  private turnAway(stream: ServerHttp2Stream): void {
    stream.respond({ ':status': 503, 'retry-after': '1' }, { endStream: true })
    stream.resume()
    this.count(false)
  }

  /** Ends the connection of a client whose streams are mostly reset, by itself or for what it sends. */
  private count(isAnswered: boolean): void {
    this.resets = isAnswered ? Math.max(0, this.resets - 1) : this.resets + 1
    if (this.resets <= RESETS_MAX || this.isClosing) return
    this.isClosing = true
    this.session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    setImmediate(() => this.session.destroy())
  }

  private async serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, hasBody: boolean): Promise<void> {
    const head = headOf(headers, hasBody)
    if (head === null) return stream.close(constants.NGHTTP2_PROTOCOL_ERROR)
    const body = new RequestBody(head.bodyBytes, () => stream.resume())
    let bodyBytes = 0
    const pace = new BodyPace(this.options.idleSeconds * 1000, performance.now())
    stream.on('data', (part: Buffer) => {
      bodyBytes += part.length
      pace.came(part.length)
      if (body.take(part, 0) < part.length || (stream.headersSent && bodyBytes > REST_BYTES_MAX)) {
        body.fail()
        stream.close(constants.NGHTTP2_PROTOCOL_ERROR)
      } else if (pace.isTooSlow(performance.now())) {
        body.fail()
        stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)
      } else if (body.isFull) stream.pause()
    })
    stream.on('pause', () => pace.pause(performance.now()))
    stream.on('resume', () => pace.resume(performance.now()))
    stream.on('end', () => body.end())
    const request = new HttpRequest(head, body)
    stream.on('close', () => {
      body.fail()
      request.abort()
    })
    if (head.expectsContinue) stream.additionalHeaders({ ':status': 100 })
    const response = await this.responseTo(request)
    const bytes = await wholeBody(response)
    if (stream.destroyed || stream.closed) return
    const isBare = head.method === 'HEAD' || response.status === 204 || response.status === 304
    const length = response.status === 204 ? {} : { 'content-length': bytes.length }
    stream.respond(
      { ':status': response.status, ...Object.fromEntries(headersOf(response)), ...length },
      { endStream: isBare || bytes.length === 0 },
    )
    if (!isBare && bytes.length > 0) stream.end(bytes)
    body.discard()
    stream.resume()
  }

  private async responseTo(request: HttpRequest): Promise<AnyResponse> {
    try {
      return await this.options.handle(request, () => this.socket.remoteAddress)
    } catch {
      return this.options.refuse({ status: 500, message: 'internal error' })
    }
  }
}

/** A listener that is given this speaks HTTP/2. Others do not load the implementation, which takes 4 MB. */
export const http2Connection = (socket: Socket<Connection>, options: ConnectionOptions): Connection =>
  new Http2Connection(socket, options)

/** A head as HTTP/1 has it; null for one that no request has. */
function headOf(headers: IncomingHttpHeaders, hasBody: boolean): RequestHead | null {
  const fields = new Map<string, string>()
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !name.startsWith(':')) fields.set(name, Array.isArray(value) ? value.join(', ') : value)
  const { ':method': method, ':path': path, ':authority': authority } = headers
  if (typeof method !== 'string' || typeof path !== 'string' || !path.startsWith('/')) return null
  if (typeof authority === 'string') fields.set('host', authority)
  const length = fields.get('content-length')
  if (length !== undefined && !LENGTH.test(length)) return null
  const { pathname, search } = new URL(`http://localhost${path}`)
  return {
    method,
    target: pathname + search,
    fields,
    bodyBytes: hasBody ? Number(length ?? Number.POSITIVE_INFINITY) : 0,
    isKeptAlive: true,
    expectsContinue: fields.get('expect')?.toLowerCase() === '100-continue',
    isHttp10: false,
  }
}
