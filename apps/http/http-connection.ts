// One connection of an HTTP/1 client: its requests one after the other, whatever of them came in one segment. The
// runtime's own server closes a connection without a word when another request comes before the answer to the first: it
// cannot be told to wait. Here the second one waits in the buffer, and the socket is not read while that is full (RFC
// 9112, 9.3.2).
import type { Socket } from 'bun'
import { HttpRequest } from './http-request.ts'
import { RequestBody } from './request-body.ts'
import { HEAD_BYTES_MAX, type HeadFault, type RequestHead, readRequestHead } from './request-head.ts'

/** What came while a request is being answered, before the socket is left alone. */
const WAITING_BYTES_MAX = 64 * 1024
/** What is read of a body after its answer, so that the connection can be used again. */
const REST_BYTES_MAX = 32 * 1024 * 1024
const HEAD_END = Buffer.from('\r\n\r\n')

/** A response whose head was made once, up to its length: a Response costs more than the rest of a short request. */
export type PlainResponse = { readonly status: number; readonly head: string; readonly body: Uint8Array<ArrayBuffer> }
export type AnyResponse = Response | PlainResponse
export type Handle = (request: HttpRequest, peer: () => string) => Promise<AnyResponse> | AnyResponse

export type ConnectionOptions = {
  readonly handle: Handle
  /** The response to a head that is none. */
  readonly refuse: (fault: HeadFault) => Response
  readonly idleSeconds: number
}

/** The same as the runtime's own server takes it. */
export const standard = (response: AnyResponse): Response =>
  response instanceof Response
    ? response
    : new Response(response.body, { status: response.status, headers: headersOf(response.head) })

const headersOf = (head: string): [string, string][] =>
  head
    .split('\r\n')
    .slice(1, -1)
    .map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)])

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
const noBytes = Buffer.alloc(0)

/** The date of the second, as HTTP writes it. */
let dateSecond = 0
let dateText = ''
function httpDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    dateText = new Date(second * 1000).toUTCString()
  }
  return dateText
}

const statusTexts: Readonly<Record<number, string>> = {
  200: 'OK',
  202: 'Accepted',
  204: 'No Content',
  304: 'Not Modified',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  422: 'Unprocessable Content',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  505: 'HTTP Version Not Supported',
}
const statusLine = (status: number): string => `HTTP/1.1 ${status} ${statusTexts[status] ?? ''}\r\n`

/** The first lines of a response that is made often. */
export function plainHead(status: number, headers: Readonly<Record<string, string>>): string {
  return (
    statusLine(status) +
    Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')
  )
}

function headOf(response: Response): string {
  let head = statusLine(response.status)
  for (const [name, value] of response.headers) if (name !== 'content-length') head += `${name}: ${value}\r\n`
  return head
}

const LF = 10
const CR = 13

/** What can never become a head, however it goes on: another protocol, or lines that end with LF alone. */
function isNoHead(input: Buffer, from: number): boolean {
  const first = input[from]!
  if ((first < 0x21 && first !== CR) || first > 0x7e) return true
  const lineEnd = input.indexOf(LF, from)
  return lineEnd >= 0 && input[lineEnd - 1] !== CR
}

export class HttpConnection {
  /** What came and is not taken yet begins at `at`. */
  private input: Buffer = noBytes
  private at = 0
  /** Of the request under way. */
  private body: RequestBody | null = null
  private isAnswered = true
  private isKeptAlive = true
  private restBytes = 0
  /** The other side will send no more. */
  private isEnded = false
  private isClosing = false
  private isPaused = false
  private output: Buffer = noBytes

  constructor(
    private readonly socket: Socket<HttpConnection>,
    private readonly options: ConnectionOptions,
  ) {}

  /** Nothing was asked that is not answered. */
  get isIdle(): boolean {
    return this.isAnswered && this.output.length === 0
  }

  receive(data: Buffer): void {
    this.socket.timeout(this.options.idleSeconds)
    if (this.isClosing) return
    this.input = this.at >= this.input.length ? data : Buffer.concat([this.input.subarray(this.at), data])
    this.at = 0
    this.advance()
  }

  /** No more will come; what was asked is answered all the same. */
  end(): void {
    this.isEnded = true
    this.advance()
  }

  /** The connection is gone. */
  closed(): void {
    this.isClosing = true
    this.dropInput()
    this.output = noBytes
    this.body?.fail()
  }

  /** After the response under way there is no other one. */
  finish(): void {
    this.isKeptAlive = false
    if (this.isIdle) this.close()
  }

  drain(): void {
    this.socket.timeout(this.options.idleSeconds)
    if (this.output.length > 0) this.flush()
    if (this.output.length === 0) this.advance()
  }

  /** Reads on as far as it can. */
  private advance(): void {
    while (!this.isClosing) {
      if (this.body && !this.readBody(this.body)) break
      // Who does not read the answers is asked no more: they would pile up here.
      if (!this.isIdle || !this.startRequest()) break
    }
    if (this.isClosing) return
    if (this.isEnded) this.endOfInput()
    const isFull =
      this.body && !this.body.isComplete ? this.body.isFull : this.input.length - this.at > WAITING_BYTES_MAX
    if (isFull === this.isPaused) return
    this.isPaused = isFull
    if (isFull) this.socket.pause()
    else this.socket.resume()
  }

  private endOfInput(): void {
    this.body?.fail()
    if (this.isAnswered) this.close()
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
      if (!isContinueSent && !this.isAnswered) this.write(Buffer.from(CONTINUE, 'latin1'))
      isContinueSent = true
      if (this.isPaused) queueMicrotask(() => this.advance())
    })
    this.body = body
    this.restBytes = 0
    this.isAnswered = false
    this.isKeptAlive &&= head.isKeptAlive
    if (this.at < this.input.length) this.readBody(body)
    this.answer(head, body).catch(() => {
      // A handler answers its errors itself; what escapes it must not leave the client waiting.
      this.isKeptAlive = false
      this.close()
      this.socket.terminate()
    })
  }

  private async answer(head: RequestHead, body: RequestBody): Promise<void> {
    const response = await this.options.handle(new HttpRequest(head, body), () => this.socket.remoteAddress)
    if (this.isClosing) return
    if (response instanceof Response) {
      const isBare = head.method === 'HEAD' || response.status === 204 || response.status === 304
      const bytes = new Uint8Array(await response.arrayBuffer())
      if (this.isClosing) return
      this.respond(headOf(response), isBare ? noBytes : bytes, response.status === 204 ? null : bytes.length)
    } else this.respond(response.head, head.method === 'HEAD' ? noBytes : response.body, response.body.length)
    // A client that waits for word before it sends its body will not send it now.
    if (head.expectsContinue && !body.isComplete) this.isKeptAlive = false
    body.discard()
    this.isAnswered = true
    if (!this.isKeptAlive) this.close()
    else this.advance()
  }

  private respond(head: string, body: Uint8Array, length: number | null): void {
    const lengthLine = length === null ? '' : `content-length: ${length}\r\n`
    const closeLine = this.isKeptAlive ? '' : 'connection: close\r\n'
    const text = `${head}date: ${httpDate()}\r\n${lengthLine}${closeLine}\r\n`
    const bytes = Buffer.allocUnsafe(text.length + body.length)
    bytes.write(text, 'latin1')
    bytes.set(body, text.length)
    this.write(bytes)
  }

  /**
   * So many bytes are taken. What is passed is let go at once: a body holds the memory of the segment that it came in.
   */
  private passInput(bytes: number): void {
    this.at += bytes
    if (this.at >= this.input.length) this.dropInput()
  }

  private dropInput(): void {
    this.input = noBytes
    this.at = 0
  }

  private refuse(fault: HeadFault): void {
    this.isKeptAlive = false
    const response = this.options.refuse(fault)
    this.isAnswered = false
    this.dropInput()
    void response.arrayBuffer().then(bytes => {
      if (this.isClosing) return
      this.respond(headOf(response), new Uint8Array(bytes), bytes.byteLength)
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
    if (this.output.length === 0) this.socket.end()
  }
}
