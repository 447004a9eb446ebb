// The update manifest that this collector offers (decision G-60): read from a file, its signature checked when it is
// loaded. Who is offered it: core/wire/update-offer.ts; what an agent takes: core/agent/update-verdict.ts.
import { createPublicKey, verify } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type Manifest, signedManifestText, UPDATE_BYTES_MAX } from '../../../../core/agent/update-verdict.ts'
import { isVersion } from '../../../../core/agent/version.ts'
import { isUpdateOffered } from '../../../../core/wire/update-offer.ts'
import { isJsonObject, type JsonObject } from '../../store/registry/agent-record.ts'

type LoadedManifest = Manifest & {
  readonly signature: Uint8Array
  readonly rolloutPercent: number
  readonly keyId: string
}

const isWhole = (value: unknown, max: number): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= max

const isHttpsUrl = (value: unknown): value is string =>
  typeof value === 'string' && URL.canParse(value) && new URL(value).protocol === 'https:'

function fault(field: string, expected: string): never {
  throw new Error(`cannot use the update manifest: ${field} must be ${expected}`)
}

/** Reads a manifest's JSON; throws naming the first field that is wrong. */
export function parseManifest(json: unknown): LoadedManifest {
  if (!isJsonObject(json)) fault('the file', 'a JSON object')
  const text = (field: string, pattern: RegExp, expected: string): string => {
    const value = json[field]
    return typeof value === 'string' && pattern.test(value) ? value : fault(field, expected)
  }
  const version = (field: string): string => {
    const value = json[field]
    return typeof value === 'string' && isVersion(value) ? value : fault(field, 'a semantic version')
  }
  const { revoked_versions: revoked = [], rollout_percent: rollout, released_at_ms: released, size_bytes: size } = json
  if (!Array.isArray(revoked) || !revoked.every((v): v is string => typeof v === 'string' && isVersion(v)))
    fault('revoked_versions', 'a list of versions')
  return {
    version: version('version'),
    os: text('os', /^[a-z]{1,16}$/, 'linux, windows or darwin'),
    arch: text('arch', /^[a-z0-9_]{1,16}$/, 'an architecture such as x64'),
    channel: text('channel', /^[a-z0-9-]{1,32}$/, 'a channel such as stable'),
    sha256: text('sha256', /^[0-9a-f]{64}$/, '64 lowercase hex characters'),
    sizeBytes: isWhole(size, UPDATE_BYTES_MAX) && size > 0 ? size : fault('size_bytes', '1 to 40 MiB'),
    minVersion: json.min_version === undefined || json.min_version === '' ? '' : version('min_version'),
    releasedAtMs: isWhole(released, Number.MAX_SAFE_INTEGER) ? released : fault('released_at_ms', 'milliseconds'),
    revokedVersions: revoked,
    url: isHttpsUrl(json.url) ? json.url : fault('url', 'an https:// address'),
    rolloutPercent: isWhole(rollout, 100) ? rollout : fault('rollout_percent', '0 to 100'),
    keyId: typeof json.key_id === 'string' ? json.key_id : '',
    signature: signatureOf(json),
  }
}

function signatureOf(json: JsonObject): Uint8Array {
  const value = json.signature_ed25519
  const bytes = typeof value === 'string' ? Buffer.from(value, 'base64') : null
  return bytes && bytes.length === 64 ? bytes : fault('signature_ed25519', '64 bytes in base64')
}

/** Reads a manifest and checks its signature; throws in words for the operator. */
export function loadManifest(manifestFile: string, publicKeyFile: string): LoadedManifest {
  const manifest = parseManifest(JSON.parse(readFileSync(manifestFile, 'utf8')))
  const key = createPublicKey(readFileSync(publicKeyFile))
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('cannot use update.public_key_file: it is no Ed25519 key')
  if (!verify(null, Buffer.from(signedManifestText(manifest), 'utf8'), key, manifest.signature))
    throw new Error('cannot use the update manifest: its signature does not hold')
  return manifest
}

/** The manifest in force; replaced as a whole. */
export class UpdateOffer {
  private manifest: LoadedManifest | null = null
  private isStopped: boolean

  constructor(isStopped: boolean) {
    this.isStopped = isStopped
  }

  use(manifest: LoadedManifest | null, isStopped: boolean): void {
    this.manifest = manifest
    this.isStopped = isStopped
  }

  /** From now on nobody is offered anything. */
  stop(): void {
    this.isStopped = true
  }

  offerFor(request: Parameters<typeof isUpdateOffered>[1]): LoadedManifest | null {
    const { manifest } = this
    return manifest && !this.isStopped && isUpdateOffered(manifest, request) ? manifest : null
  }
}
