// A scanner of its own making: what the protocol says, spelled out here once more (MAT section 2).
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { zstdCompressSync } from 'node:zlib'
import type { Report } from '../../core/matching/report-schema.ts'

const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex')
export const machineHash = (name: string): string => sha256(`svc-scan-v1\n${name}`)

type ScanResponse = {
  readonly status: number
  readonly code: string
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

type CallOptions = {
  readonly body?: Uint8Array
  readonly timeMs?: number
  readonly encoding?: string
  readonly headers?: Readonly<Record<string, string | null>>
  /** Signed instead of what is sent. */
  readonly signed?: { readonly path?: string; readonly body?: Uint8Array; readonly method?: string }
}

export const packagesOf = (...rows: readonly (readonly [name: string, version: string, source?: string])[]) => {
  const column = <T>(pick: (row: (typeof rows)[number]) => T): T[] => rows.map(pick)
  return {
    name: column(([name]) => name),
    version: column(([, version]) => version),
    arch: column(() => 'amd64'),
    source: column(([name, , source]) => source ?? name),
    source_version: column(([, version]) => version),
    module: column(() => ''),
    vendor: column(() => ''),
  }
}

export const reportOf = (name: string, more: Partial<Report> = {}): Report => ({
  schema: 1,
  collected_at_ms: Date.now(),
  scanner_version: '0.1.0',
  machine_id_hash: machineHash(name),
  os: { id: 'debian', version_id: '12', codename: 'bookworm', id_like: [], cpe_name: '' },
  kernel: { running: '6.1.0-18-amd64', build: '#1 SMP', booted_at_ms: 1 },
  reboot_required: false,
  livepatch_active: false,
  esm: { attached: false, infra: false, apps: false },
  elts: false,
  modules: {},
  system: 'dpkg',
  error_codes: [],
  packages: packagesOf(
    ['bash', '5.2.15-2+b2'],
    ['openssl', '3.0.11-1~deb12u2'],
    ['libssl3', '3.0.11-1~deb12u2', 'openssl'],
  ),
  ...more,
})

/** The content hash of MAT-023. */
export function contentHash(report: Report): string {
  const { collected_at_ms: _at, scanner_version: _version, ...content } = report
  const { booted_at_ms: _booted, ...kernel } = content.kernel
  return sha256(JSON.stringify({ ...content, kernel }))
}

export class ScanClient {
  hostId = ''
  private key: KeyObject
  publicKey: string
  private lastMs = 0

  constructor(
    /** Changed when the matcher has moved. */
    public url: string,
    readonly name: string,
    private readonly nowMs: () => number = Date.now,
  ) {
    const { key, publicKey } = newKey()
    this.key = key
    this.publicKey = publicKey
  }

  /** Times grow strictly. */
  nextTimeMs(): number {
    this.lastMs = Math.max(this.lastMs + 1, this.nowMs())
    return this.lastMs
  }

  async call(method: string, path: string, options: CallOptions = {}): Promise<ScanResponse> {
    const { headers, bytes } = this.request(method, path, options)
    const response = await fetch(`${this.url}/scan/v1${path}`, {
      method,
      headers,
      ...(bytes.length > 0 ? { body: new Uint8Array(bytes) } : {}),
    })
    return answerOf(response)
  }

  request(method: string, path: string, options: CallOptions): { headers: Headers; bytes: Uint8Array } {
    const bytes = options.body ?? new Uint8Array(0)
    const timeMs = options.timeMs ?? this.nextTimeMs()
    const signed = options.signed ?? {}
    const text = [
      'svc-scan-v1',
      signed.method ?? method,
      `/scan/v1${signed.path ?? path}`,
      this.hostId,
      String(timeMs),
      sha256(signed.body ?? bytes),
    ].join('\n')
    const headers = new Headers({
      'x-svc-scan-proto': '1',
      'x-svc-agent-version': '0.1.0',
      'x-svc-scan-host': this.hostId,
      'x-svc-scan-time': String(timeMs),
      'x-svc-scan-signature': sign(null, Buffer.from(text), this.key).toString('base64'),
      'content-type': 'application/json',
      ...(options.encoding ? { 'content-encoding': options.encoding } : {}),
    })
    for (const [name, value] of Object.entries(options.headers ?? {})) {
      if (value === null) headers.delete(name)
      else headers.set(name, value)
    }
    return { headers, bytes }
  }

  enrollBody(code: string): Record<string, unknown> {
    return {
      code,
      public_key: this.publicKey,
      hostname: `${this.name}.example.net`,
      ip_addresses: ['192.0.2.1'],
      machine_id_hash: machineHash(this.name),
      os: { id: 'debian', version_id: '12', codename: 'bookworm' },
    }
  }

  async enroll(code: string, more: Record<string, unknown> = {}, options: CallOptions = {}): Promise<ScanResponse> {
    this.hostId = ''
    const body = Buffer.from(JSON.stringify({ ...this.enrollBody(code), ...more }))
    const answer = await this.call('POST', '/enroll', { body, ...options })
    if (answer.status === 201) this.hostId = String(answer.body.host_id)
    return answer
  }

  report(report: Report, options: CallOptions = {}): Promise<ScanResponse> {
    const body = zstdCompressSync(Buffer.from(JSON.stringify(report)))
    return this.call('POST', '/report', { body, encoding: 'zstd', ...options })
  }

  reportHash(hash: string, options: CallOptions = {}): Promise<ScanResponse> {
    return this.call('POST', '/report', { ...options, headers: { 'x-svc-scan-content': hash, ...options.headers } })
  }

  /** Asks for a new key, and signs with it from then on when it was taken. */
  async rotate(): Promise<ScanResponse> {
    const next = newKey()
    const text = `${this.hostId}\n${next.publicKey}`
    const signature = sign(null, Buffer.from(text), this.key).toString('base64')
    const body = Buffer.from(JSON.stringify({ public_key: next.publicKey, signature }))
    const answer = await this.call('POST', '/rotate', { body })
    if (answer.status === 200) {
      this.key = next.key
      this.publicKey = next.publicKey
    }
    return answer
  }
}

function newKey(): { key: KeyObject; publicKey: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(12)
  return { key: privateKey, publicKey: Buffer.from(raw).toString('base64') }
}

async function answerOf(response: Response): Promise<ScanResponse> {
  const text = await response.text()
  const body = text === '' ? {} : (JSON.parse(text) as Record<string, unknown>)
  const error = body.error as { code?: string } | undefined
  return { status: response.status, code: error?.code ?? '', headers: response.headers, body }
}
