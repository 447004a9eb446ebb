// One connection of an HTTP/1 client: its requests one after the other, whatever of them came in one segment. The
// runtime's own server closes a connection without a word when another request comes before the answer to the first: it
// cannot be told to wait. Here the second one waits in the buffer, and the socket is not read while that is full (RFC
// 9112, 9.3.2).
import type { Socket } from 'bun'
import { assert } from '../../core/assert.ts'
import { free, RequestBody } from './body-framing.ts'
import { BodyPace } from './body-pace.ts'
import { HttpRequest } from './http-request.ts'
import {
  type AnyResponse,
  declaredBytes,
  headOf,
  httpDate,
  isEventStream,
  isSentAsRead,
  type PlainResponse,
  wholeBody,
} from './http-response.ts'
import { HEAD_BYTES_MAX, type HeadFault, type RequestHead, readRequestHead } from './request-head.ts'

/** The most bytes buffered while a request is being answered; beyond it the socket is not read. */
const WAITING_BYTES_MAX = 64 * 1024
/** What is read of a body after its answer, so that the connection can be used again. */
export const REST_BYTES_MAX = 32 * 1024 * 1024
const HEAD_END = Buffer.from('\r\n\r\n')
const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')
const LAST_CHUNK = Buffer.from('0\r\n\r\n')
const noBytes = Buffer.alloc(0)

export type Handle = (request: HttpRequest, peer: () => string) => Promise<AnyResponse> | AnyResponse
/** A response that the listener gives without asking the handler. */
export type Refusal = HeadFault | { readonly status: 500; readonly message: string }

export type ConnectionOptions = {
  readonly handle: Handle
  readonly refuse: (fault: Refusal) => Response
  readonly idleSeconds: number
}

/** What a listener tells a connection of its socket. */
export type Connection = {
  /** All that was asked is answered, and on its way. */
  readonly isIdle: boolean
  /** The client has sent all of a request and waits for its handler: silence is no fault of its own. */
  readonly isAwaited: boolean
  receive(data: Buffer): void
  drain(): void
  end(): void
  closed(): void
  /** After the requests under way there is no other one. */
  finish(): void
}

const LF = 10
const CR = 13

/** True for bytes that can never become a head, whatever follows: another protocol, or lines that end with LF alone. */
function isNoHead(input: Buffer, from: number): boolean {
  const first = input[from]!
  if ((first < 0x21 && first !== CR) || first > 0x7e) return true
  const lineEnd = input.indexOf(LF, from)
  return lineEnd >= 0 && input[lineEnd - 1] !== CR
}

function chunkOf(part: Uint8Array): Buffer {
  const size = `${part.length.toString(16)}\r\n`
  const chunk = Buffer.allocUnsafe(size.length + part.length + 2)
  chunk.write(size, 'latin1')
  chunk.set(part, size.length)
  chunk.write('\r\n', size.length + part.length, 'latin1')
  return chunk
}

export class HttpConnection implements Connection {
  /** What came and is not taken yet begins at `at`. */
  private input: Buffer = noBytes
  private at = 0
  /** Of the request under way. */
  private body: RequestBody | null = null
  /** Of a body that did not come with its head. */
  private pace: BodyPace | null = null
  private isTooSlow = false
  private isAnswered = true
  private isKeptAlive = true
  /** Something has come of the next request, if only an empty line. */
  private isHeadBegun = false
  private restBytes = 0
  /** The other side will send no more. */
  private isEnded = false
  private isClosing = false
  private isPaused = false
  private output: Buffer = noBytes
  private request: HttpRequest | null = null
  /** Of a response that is sent as it is read; an endless one is over when the client will send no more. */
  private source: { readonly isEndless: boolean; cancel(): Promise<void> } | null = null
  private onDrained: (() => void) | null = null

  constructor(
    private readonly socket: Socket<Connection>,
    private readonly options: ConnectionOptions,
  ) {}

  get isIdle(): boolean {
    return this.isAnswered && this.output.length === 0
  }

  get isAwaited(): boolean {
    return !this.isAnswered && this.body?.isComplete === true && !this.source?.isEndless && this.output.length === 0
  }

  receive(data: Buffer): void {
    // Who is to be read no more gets no more time by what it sends.
    if (this.isClosing) return
    const isOfRequest = !this.isAnswered || (this.body !== null && !this.body.isComplete)
    // A head, with empty lines before it, must come whole within the time of a silent connection, however it trickles.
    if (isOfRequest || (!this.isHeadBegun && this.at >= this.input.length))
      this.socket.timeout(this.options.idleSeconds)
    if (!isOfRequest) this.isHeadBegun = true
    else if (this.pace && this.body && !this.body.isComplete) this.count(this.pace, this.body, data.length)
    this.input = this.at >= this.input.length ? data : Buffer.concat([this.input.subarray(this.at), data])
    this.at = 0
    this.advance()
  }

  private count(pace: BodyPace, body: RequestBody, bytes: number): void {
    pace.came(bytes)
    if (!pace.isTooSlow(performance.now())) return
    this.isTooSlow = true
    this.isKeptAlive = false
    body.fail()
    if (this.isAnswered) this.close()
  }

  end(): void {
    this.isEnded = true
    this.advance()
  }

  closed(): void {
    this.isClosing = true
    this.dropInput()
    this.output = noBytes
    this.body?.fail()
    this.leave()
  }

  finish(): void {
    this.isKeptAlive = false
    if (this.isIdle) this.close()
  }

  drain(): void {
    const before = this.output.length
    if (before > 0) this.flush()
    if (this.output.length < before) this.socket.timeout(this.options.idleSeconds)
    if (this.output.length > 0) return
    this.onDrained?.()
    this.advance()
  }

  /** Reads on as far as it can. */
  private advance(): void {
    while (!this.isClosing) {
      if (this.body && !this.readBody(this.body)) break
      // A client that does not read its responses gets no further request answered: responses would pile up here.
      if (!this.isIdle || !this.startRequest()) break
    }
    if (this.isClosing) return
    if (this.isEnded) this.endOfInput()
    const isFull =
      this.body && !this.body.isComplete ? this.body.isFull : this.input.length - this.at > WAITING_BYTES_MAX
    if (isFull === this.isPaused) return
    this.isPaused = isFull
    if (isFull) {
      this.socket.pause()
      this.pace?.pause(performance.now())
    } else {
      this.socket.resume()
      this.pace?.resume(performance.now())
    }
  }

  private endOfInput(): void {
    this.body?.fail()
    // Requests that wait until the answers before them are read are answered, too.
    const isWaiting = this.output.length > 0 && this.at < this.input.length
    if ((this.isAnswered && !isWaiting) || this.source?.isEndless) this.close()
  }

  /** True when all of the body has come. */
  private readBody(body: RequestBody): boolean {
    if (!body.isComplete && !body.isFull && this.at < this.input.length) {
      const taken = body.take(this.input, this.at)
      if (taken < 0) {
        body.fail()
        this.isKeptAlive = false
        this.dropInput()
        if (this.isAnswered) this.close()
        return false
      }
      this.passInput(taken)
      if (this.isAnswered) {
        this.restBytes += taken
        if (this.restBytes > REST_BYTES_MAX) this.close()
      }
    }
    return body.isComplete
  }

  /** Takes the next request from the buffer; false when there is none yet. */
  private startRequest(): boolean {
    // Lines between requests are left out (RFC 9112, 2.2).
    const { input } = this
    while (input[this.at] === CR && input[this.at + 1] === LF) this.at += 2
    const from = this.at
    if (from >= input.length) return false
    const end = input.indexOf(HEAD_END, from)
    if ((end < 0 ? input.length : end) - from > HEAD_BYTES_MAX) {
      this.refuse({ status: 431, message: `the header fields take more than ${HEAD_BYTES_MAX} bytes` })
      return false
    }
    if (end < 0) {
      if (isNoHead(input, from)) this.refuse({ status: 400, message: 'this is no HTTP/1.1 request' })
      return false
    }
    const head = readRequestHead(input.toString('latin1', from, end))
    this.passInput(end + HEAD_END.length - from)
    if ('status' in head) {
      this.refuse(head)
      return false
    }
    this.start(head)
    return true
  }

  private start(head: RequestHead): void {
    let isContinueSent = !head.expectsContinue
    const body = new RequestBody(head.bodyBytes, () => {
      if (!isContinueSent && !this.isAnswered) this.write(CONTINUE)
      isContinueSent = true
      if (this.isPaused) queueMicrotask(() => this.advance())
    })
    this.body = body
    this.restBytes = 0
    this.isAnswered = false
    this.isHeadBegun = false
    this.isKeptAlive &&= head.isKeptAlive
    if (body.lend(this.input, this.at)) this.forgetInput()
    else if (this.at < this.input.length) this.readBody(body)
    this.pace = body.isComplete ? null : new BodyPace(this.options.idleSeconds * 1000, performance.now())
    this.answer(head, body).catch(() => {
      // The response broke off: the connection is closed, so that the client does not take the part for the whole.
      this.isKeptAlive = false
      this.close()
      this.socket.terminate()
    })
  }

  private async answer(head: RequestHead, body: RequestBody): Promise<void> {
    const request = new HttpRequest(head, body)
    this.request = request
    let response: AnyResponse
    try {
      response = await this.options.handle(request, () => this.socket.remoteAddress)
    } catch {
      // A handler answers its own errors; an error that escapes it must not leave the client waiting.
      response = this.options.refuse({ status: 500, message: 'internal error' })
    }
    body.release()
    if (body.isBroken) {
      this.isKeptAlive = false
      response = this.options.refuse(
        this.isTooSlow
          ? { status: 408, message: 'the body comes too slowly' }
          : { status: 400, message: 'the body ended early' },
      )
    }
    if (response instanceof Response) {
      if (response.body && isSentAsRead(response)) await this.sendStream(head, response, response.body)
      else {
        const bytes = await wholeBody(response)
        if (this.isClosing) return
        const isBare = head.method === 'HEAD' || response.status === 204 || response.status === 304
        this.respond(headOf(response), isBare ? noBytes : bytes, response.status === 204 ? null : bytes.length)
      }
    } else if (!this.isClosing) this.respondPlain(head, response)
    if (this.isClosing) return
    this.request = null
    // A client that waits for 100 Continue before it sends its body will not send it now.
    if (head.expectsContinue && !body.isComplete) this.isKeptAlive = false
    body.discard()
    if (body.isComplete) this.body = null
    this.isAnswered = true
    // A client has the whole time for its next request, however long this answer took.
    this.socket.timeout(this.options.idleSeconds)
    if (!this.isKeptAlive) this.close()
    else this.advance()
  }

  private respondPlain({ method }: RequestHead, { head, body, status }: PlainResponse): void {
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    this.respond(head, method === 'HEAD' || status === 204 ? noBytes : body, status === 204 ? null : length)
  }

  private respond(head: string, body: Uint8Array | string, length: number | null): void {
    const lengthLine = length === null ? '' : `content-length: ${length}\r\n`
    const text = `${head}date: ${httpDate()}\r\n${lengthLine}${this.closeLine()}\r\n`
    const bodyBytes = typeof body === 'string' ? (length ?? 0) : body.length
    const bytes = Buffer.allocUnsafe(text.length + bodyBytes)
    bytes.write(text, 'latin1')
    if (typeof body === 'string') bytes.write(body, text.length, 'utf8')
    else bytes.set(body, text.length)
    this.write(bytes)
  }

  private closeLine(): string {
    return this.isKeptAlive ? '' : 'connection: close\r\n'
  }

  /**
   * Sends a response as it is read, no faster than the client reads; its source is cancelled when the client leaves.
   * Throws when it has another length than it says.
   */
  private async sendStream(
    head: RequestHead,
    response: Response,
    body: ReadableStream<Uint8Array<ArrayBuffer>>,
  ): Promise<void> {
    const source = body.getReader()
    const isEndless = isEventStream(response)
    if (this.isClosing || (isEndless && this.isEnded) || head.method === 'HEAD') {
      await source.cancel()
      if (this.isClosing) return
      if (isEndless && this.isEnded) return this.close()
    } else this.source = { isEndless, cancel: () => source.cancel() }
    const length = declaredBytes(response)
    // A client of HTTP/1.0 knows no chunks: the end of the connection is the end of the response.
    const isChunked = length === null && !head.isHttp10
    if (length === null && head.isHttp10) this.isKeptAlive = false
    const framing =
      length !== null ? `content-length: ${length}\r\n` : isChunked ? 'transfer-encoding: chunked\r\n' : ''
    const text = `${headOf(response)}date: ${httpDate()}\r\n${framing}${this.closeLine()}\r\n`
    this.write(Buffer.from(text, 'latin1'))
    if (!this.source) return
    let sent = 0
    for (;;) {
      const { done, value } = await source.read()
      if (this.isClosing) return
      if (done) break
      sent += value.length
      assert(length === null || sent <= length, 'a response is no longer than it says')
      if (value.length > 0)
        this.write(isChunked ? chunkOf(value) : Buffer.from(value.buffer, value.byteOffset, value.length))
      if (this.output.length > 0) await this.drained()
      else this.socket.timeout(this.options.idleSeconds)
      if (this.isClosing) return
    }
    assert(length === null || sent === length, 'a response is as long as it says')
    this.source = null
    if (isChunked) this.write(LAST_CHUNK)
  }

  private drained(): Promise<void> {
    return new Promise(resolve => {
      this.onDrained = () => {
        this.onDrained = null
        resolve()
      }
    })
  }

  /** Signals the handler that nobody waits for the response. */
  private leave(): void {
    this.request?.abort()
    this.request = null
    // An error of a source that is being cancelled can be reported to nobody.
    this.source?.cancel().catch(() => {})
    this.source = null
    this.onDrained?.()
  }

  /** So many bytes are taken. */
  private passInput(bytes: number): void {
    this.at += bytes
    if (this.at >= this.input.length) this.dropInput()
  }

  /**
   * Nothing else holds the memory of a segment: bodies are copies, or have taken it. It is freed now, not when somebody
   * collects it.
   */
  private dropInput(): void {
    const { buffer, byteLength } = this.input
    if (byteLength === buffer.byteLength) free(buffer)
    this.forgetInput()
  }

  private forgetInput(): void {
    this.input = noBytes
    this.at = 0
  }

  private refuse(fault: Refusal): void {
    this.isKeptAlive = false
    const response = this.options.refuse(fault)
    this.isAnswered = false
    this.dropInput()
    void wholeBody(response).then(bytes => {
      if (this.isClosing) return
      this.respond(headOf(response), bytes, bytes.length)
      this.isAnswered = true
      this.close()
    })
  }

  private write(bytes: Buffer): void {
    this.output = this.output.length === 0 ? bytes : Buffer.concat([this.output, bytes])
    this.flush()
  }

  private flush(): void {
    const written = this.socket.write(this.output)
    this.output = written >= this.output.length ? noBytes : this.output.subarray(Math.max(0, written))
    if (this.isClosing && this.output.length === 0) this.socket.end()
  }

  /** Ends the connection once what was written is on its way. */
  private close(): void {
    this.isClosing = true
    this.dropInput()
    this.body?.fail()
    this.leave()
    if (this.output.length === 0) this.socket.end()
  }
}
