// A collector in script form: it speaks the agent protocol over real HTTP, keeps what it was sent, and answers what the
// test says. Bodies are decoded with the generated code, as the contract has them.
import { zstdDecompressSync } from 'node:zlib'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { freePort } from '../../apps/standalone/ports.ts'
import {
  type AgentConfig,
  AgentConfigSchema,
  type EnrollRequest,
  EnrollRequestSchema,
  EnrollResponseSchema,
  type InventoryFacts,
  InventoryFactsSchema,
  MetricsAckSchema,
  type MetricsBatch,
  MetricsBatchSchema,
  PingResponseSchema,
  RenewResponseSchema,
} from '../../proto/gen/svc/agent/v1/agent_pb.ts'

type Seen = {
  readonly route: string
  readonly search: string
  readonly headers: Headers
  /** The peer's clock when the request came. */
  readonly atMs: number
}

type Scripted = Response | null | Promise<Response | null>
type Script = (seen: Seen, body: Uint8Array) => Scripted

/** Tokens as a hub makes them: `agt_` and base62. */
export const FIRST_TOKEN = `agt_first${'0'.repeat(38)}`
export const renewedToken = (number: number): string => `agt_renewed${String(number).padStart(36, '0')}`

type ErrorOptions = { readonly retryAfter?: string }

/** An error of the agent protocol. */
export function protocolError(status: number, code: string, { retryAfter }: ErrorOptions = {}): Response {
  const headers = retryAfter === undefined ? {} : { 'Retry-After': retryAfter }
  return Response.json({ error: { code, message: `said ${code}` } }, { status, headers })
}

const protobuf = (bytes: Uint8Array, headers: Record<string, string> = {}): Response =>
  new Response(Buffer.from(bytes), { headers: { 'Content-Type': 'application/x-protobuf', ...headers } })

export class Peer {
  readonly seen: Seen[] = []
  readonly batches: MetricsBatch[] = []
  readonly enrollments: EnrollRequest[] = []
  readonly inventories: InventoryFacts[] = []
  /** Answers of the next requests of a route, first come first served; null means the usual answer. */
  readonly #scripts = new Map<string, Script[]>()
  readonly #standing = new Map<string, Script>()
  readonly #port = freePort()
  #server: ReturnType<typeof Bun.serve>
  #config: AgentConfig = create(AgentConfigSchema)
  #tokens = new Set<string>([FIRST_TOKEN])
  #renewals = 0
  now: () => number = () => Date.now()
  /** What an enrollment is answered with. */
  enrolledToken = FIRST_TOKEN
  agentId = '0b0e7a52-6d1f-4c53-9d5e-0f6f6a1b2c3d'

  readonly #tls: { readonly key: string; readonly cert: string } | null

  /** With key and certificate it serves https. */
  constructor(tls: { readonly key: string; readonly cert: string } | null = null) {
    this.#tls = tls
    this.#server = this.#serve()
  }

  #serve(): ReturnType<typeof Bun.serve> {
    const tls = this.#tls === null ? {} : { tls: this.#tls }
    return Bun.serve({ port: this.#port, hostname: '127.0.0.1', fetch: request => this.#answer(request), ...tls })
  }

  /** Serves again after a stop, at the same address. */
  restart(): void {
    this.#server = this.#serve()
  }

  get url(): string {
    return `${this.#tls === null ? 'http' : 'https'}://127.0.0.1:${this.#port}`
  }

  async stop(): Promise<void> {
    await this.#server.stop(true)
  }

  /** Scripts the next answers of a route such as `POST /metrics`. */
  next(route: string, ...answers: Scripted[]): void {
    const queue = this.#scripts.get(route) ?? []
    this.#scripts.set(route, [...queue, ...answers.map(answer => () => answer)])
  }

  /** Answers a route this way from now on; null takes the script away. */
  always(route: string, script: Script | null): void {
    if (script === null) this.#standing.delete(route)
    else this.#standing.set(route, script)
  }

  setConfig(config: MessageInitShape<typeof AgentConfigSchema>): void {
    this.#config = create(AgentConfigSchema, config)
  }

  of(route: string): Seen[] {
    return this.seen.filter(seen => seen.route === route)
  }

  /** Points of a metric over all batches, with their labels. */
  points(name: string): { labels: Record<string, string>; tsMs: number; value: number }[] {
    return this.batches.flatMap(batch =>
      batch.series
        .filter(series => series.name === name)
        .flatMap(({ labels, points }) => points.map(({ tsMs, value }) => ({ labels, tsMs: Number(tsMs), value }))),
    )
  }

  async #answer(request: Request): Promise<Response> {
    const url = new URL(request.url)
    const route = `${request.method} ${url.pathname.replace(/^\/agent\/v1/, '')}`
    const seen: Seen = { route, search: url.search, headers: request.headers, atMs: this.now() }
    this.seen.push(seen)
    const raw = new Uint8Array(await request.arrayBuffer())
    const body = request.headers.get('content-encoding') === 'zstd' ? new Uint8Array(zstdDecompressSync(raw)) : raw
    const script = this.#scripts.get(route)?.shift() ?? this.#standing.get(route)
    const scripted = script ? await script(seen, body) : null
    return scripted ?? this.#usual(route, seen, body)
  }

  #usual(route: string, { headers }: Seen, body: Uint8Array): Response {
    if (route === 'POST /enroll') return this.#enroll(body)
    if (route === 'GET /ping') return this.#ping()
    const token = headers.get('authorization')?.replace(/^Bearer /, '') ?? ''
    if (!this.#tokens.has(token)) return protocolError(401, 'unauthorized')
    switch (route) {
      case 'POST /metrics':
        return this.#metrics(body)
      case 'GET /config':
        return headers.get('if-none-match') === this.#config.etag && this.#config.etag !== ''
          ? new Response(null, { status: 304 })
          : protobuf(toBinary(AgentConfigSchema, this.#config))
      case 'POST /inventory':
        this.inventories.push(fromBinary(InventoryFactsSchema, body))
        return new Response(null, { status: 202 })
      case 'POST /credentials/renew':
        return this.#renew()
      case 'GET /update':
        return new Response(null, { status: 204 })
      default:
        return protocolError(404, 'not_found')
    }
  }

  #enroll(body: Uint8Array): Response {
    this.enrollments.push(fromBinary(EnrollRequestSchema, body))
    const response = create(EnrollResponseSchema, {
      agentId: this.agentId,
      agentToken: this.enrolledToken,
      collectorUrl: 'https://elsewhere.example.com',
      config: this.#config,
      serverTimeMs: BigInt(this.now()),
    })
    return protobuf(toBinary(EnrollResponseSchema, response))
  }

  #ping(): Response {
    const ping = create(PingResponseSchema, { serverTimeMs: BigInt(this.now()), protoMin: 1, protoMax: 1 })
    return protobuf(toBinary(PingResponseSchema, ping))
  }

  #metrics(body: Uint8Array): Response {
    const batch = fromBinary(MetricsBatchSchema, body)
    this.batches.push(batch)
    const ack = create(MetricsAckSchema, {
      serverTimeMs: BigInt(this.now()),
      ackSeq: batch.seq,
      configEtag: this.#config.etag,
      acceptedPoints: batch.series.reduce((sum, { points }) => sum + points.length, 0),
    })
    return protobuf(toBinary(MetricsAckSchema, ack))
  }

  #renew(): Response {
    const token = renewedToken(++this.#renewals)
    this.#tokens.add(token)
    const validUntil = BigInt(this.now() + 86_400_000)
    return protobuf(
      toBinary(
        RenewResponseSchema,
        create(RenewResponseSchema, { agentToken: token, oldTokenValidUntilMs: validUntil }),
      ),
    )
  }
}
