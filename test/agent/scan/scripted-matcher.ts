// A matcher in script form: it speaks the scan protocol over real HTTP, holds every call to its signature, keeps what
// it was sent, and answers what the test says.
import { createHash, createPublicKey, verify } from 'node:crypto'
import { zstdDecompressSync } from 'node:zlib'
import type { Report } from '../../../core/matching/report-schema.ts'
import { type ScanSettings, signedScanText } from '../../../core/matching/scan-protocol.ts'

type Call = {
  readonly path: string
  readonly headers: Headers
  readonly body: Buffer
  readonly hostId: string
  readonly timeMs: number
  readonly signature: string
}

type Script = (call: Call) => Response | Promise<Response>

export const scanError = (status: number, code: string, more: Record<string, unknown> = {}, retryAfter?: string) =>
  Response.json(
    { error: { code, message: `said ${code}` }, ...more },
    { status, headers: retryAfter === undefined ? {} : { 'Retry-After': retryAfter } },
  )

/** Whether a key, base64 of its 32 bytes, signed the call. */
export function isSignedCall(call: Call, publicKey: string): boolean {
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), Buffer.from(publicKey, 'base64')])
  const text = signedScanText({
    method: 'POST',
    pathWithQuery: `/scan/v1${call.path}`,
    hostId: call.hostId,
    timeMs: call.timeMs,
    bodySha256: createHash('sha256').update(call.body).digest('hex'),
  })
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
  return verify(null, Buffer.from(text), key, Buffer.from(call.signature, 'base64'))
}

export class ScriptedMatcher {
  readonly calls: Call[] = []
  readonly reports: Report[] = []
  /** Public keys by host. */
  readonly keys = new Map<string, string>()
  /** What comes instead of the usual answer, first come first served. */
  readonly #scripts: { readonly path: string; readonly script: Script }[] = []
  readonly #server: ReturnType<typeof Bun.serve>
  #hosts = 0
  heldHash = ''
  settings: ScanSettings = {
    enabled: true,
    reason: '',
    interval_seconds: 86_400,
    next_after_seconds: 80_000,
    version: 1,
  }
  now: () => number = () => Date.now()

  constructor(tls: { readonly key: string; readonly cert: string } | null = null) {
    this.#server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: request => this.#answer(request),
      ...(tls === null ? {} : { tls }),
    })
  }

  get url(): string {
    return this.#server.url.href.replace(/\/$/, '').replace('localhost', '127.0.0.1')
  }

  next(path: string, ...scripts: Script[]): void {
    this.#scripts.push(...scripts.map(script => ({ path, script })))
  }

  of(path: string): Call[] {
    return this.calls.filter(call => call.path === path)
  }

  async stop(): Promise<void> {
    await this.#server.stop(true)
  }

  async #answer(request: Request): Promise<Response> {
    const { headers } = request
    const call: Call = {
      path: new URL(request.url).pathname.replace('/scan/v1', ''),
      headers,
      body: Buffer.from(await request.arrayBuffer()),
      hostId: headers.get('x-svc-scan-host') ?? '',
      timeMs: Number(headers.get('x-svc-scan-time')),
      signature: headers.get('x-svc-scan-signature') ?? '',
    }
    this.calls.push(call)
    const at = this.#scripts.findIndex(({ path }) => path === call.path)
    const [scripted] = at < 0 ? [] : this.#scripts.splice(at, 1)
    if (scripted !== undefined) return scripted.script(call)
    return this.usual(call)
  }

  /** What a matcher in good health answers. */
  usual(call: Call): Response {
    if (headersFault(call)) return scanError(401, 'unauthorized')
    if (call.path === '/enroll') return this.#enroll(call)
    const key = this.keys.get(call.hostId)
    if (key === undefined || !isSignedCall(call, key)) return scanError(401, 'unauthorized')
    if (Math.abs(call.timeMs - this.now()) > 300_000)
      return scanError(401, 'clock_skew', { server_time_ms: this.now() })
    if (call.path === '/rotate') return this.#rotate(call)
    const hash = call.headers.get('x-svc-scan-content')
    if (hash !== null) return hash === this.heldHash ? this.#taken() : scanError(409, 'need_report')
    const report: Report = JSON.parse(zstdDecompressSync(call.body).toString())
    this.reports.push(report)
    this.heldHash = hashOf(report)
    return this.#taken()
  }

  #taken(): Response {
    const server_time_ms = this.now()
    return Response.json({ server_time_ms, settings: this.settings, match_status: 'ok', open_findings: 3 })
  }

  #enroll(call: Call): Response {
    const { public_key } = JSON.parse(call.body.toString())
    if (!isSignedCall(call, public_key)) return scanError(401, 'unauthorized')
    const known = [...this.keys].find(([, key]) => key === public_key)?.[0]
    const host_id = known ?? `0b0e7a52-6d1f-4c53-9d5e-${String(++this.#hosts).padStart(12, '0')}`
    this.keys.set(host_id, public_key)
    return Response.json({ host_id, server_time_ms: this.now(), settings: this.settings }, { status: 201 })
  }

  #rotate(call: Call): Response {
    this.keys.set(call.hostId, JSON.parse(call.body.toString()).public_key)
    return Response.json({ server_time_ms: this.now() })
  }
}

const headersFault = ({ headers }: Call): boolean =>
  headers.get('x-svc-scan-proto') !== '1' || !headers.get('x-svc-agent-version')

/** As the contract has it, by what came over the wire alone. */
export function hashOf(report: Report): string {
  const copy = JSON.parse(JSON.stringify(report))
  delete copy.collected_at_ms
  delete copy.scanner_version
  delete copy.kernel.booted_at_ms
  return createHash('sha256').update(JSON.stringify(copy)).digest('hex')
}
