// Makes releases of the agent, on the host that holds the private key: `pack` compresses an executable and signs its
// manifest, `sign-collector-url` signs the address of another collector. Neither is part of the agent.
import { createHash, createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { constants, zstdCompressSync } from 'node:zlib'
import { Command } from 'commander'
import { formatSignedAddress, signedAddressText } from '../../../core/agent/signed-address.ts'
import { type Manifest, signedManifestText, UPDATE_BYTES_MAX } from '../../../core/agent/update-verdict.ts'
import { isVersion } from '../../../core/agent/version.ts'

type PackFlags = {
  key: string
  executable: string
  url: string
  out: string
  channel: string
  minVersion: string
  revoked?: string
  rollout: string
  keyId: string
}

const say = (line: string) => void process.stdout.write(`${line}\n`)

/** What an agent needs for the longest window of a frame while it unpacks: 32 MiB. */
const WINDOW_LOG = 25
const COMPRESSION_LEVEL = 21

function fail(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

function readKey(path: string): KeyObject {
  const key = createPrivateKey(readFileSync(path))
  return key.asymmetricKeyType === 'ed25519' ? key : fail(`--key: ${path} is no Ed25519 key`)
}

function requireHttps(url: string): void {
  if (!URL.canParse(url) || new URL(url).protocol !== 'https:') fail('--url: must be an https:// address')
}

/** The version that an executable says it is. */
function versionOf(executable: string): string {
  const child = Bun.spawnSync([executable, '--version'], { stdout: 'pipe', stderr: 'ignore' })
  const version = child.stdout.toString().trim()
  return child.exitCode === 0 && isVersion(version)
    ? version
    : fail(`--executable: ${executable} does not say its version`)
}

/** The executable as a zstd frame: with its runtime it is larger than a release may be. */
function compressed(content: Uint8Array): Uint8Array {
  const params = { [constants.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL, [constants.ZSTD_c_windowLog]: WINDOW_LOG }
  return zstdCompressSync(content, { params })
}

function pack(flags: PackFlags): void {
  requireHttps(flags.url)
  const key = readKey(flags.key)
  const version = versionOf(flags.executable)
  const revokedVersions = flags.revoked ? flags.revoked.split(',') : []
  for (const given of [...revokedVersions, flags.minVersion])
    if (given !== '' && !isVersion(given)) fail(`${given} is no version`)
  const rolloutPercent = Number(flags.rollout)
  if (!Number.isInteger(rolloutPercent) || rolloutPercent < 0 || rolloutPercent > 100)
    fail('--rollout: must be 0 to 100')
  say(`compressing ${flags.executable} (this takes minutes)`)
  const content = compressed(readFileSync(flags.executable))
  if (content.length > UPDATE_BYTES_MAX)
    fail(`the release has ${content.length} bytes: agents take ${UPDATE_BYTES_MAX} at most`)
  const manifest: Manifest = {
    version,
    os: process.platform,
    arch: process.arch,
    channel: flags.channel,
    sha256: createHash('sha256').update(content).digest('hex'),
    sizeBytes: content.length,
    minVersion: flags.minVersion,
    releasedAtMs: Date.now(),
    revokedVersions,
    url: flags.url,
  }
  const document = {
    version,
    os: manifest.os,
    arch: manifest.arch,
    channel: manifest.channel,
    sha256: manifest.sha256,
    size_bytes: manifest.sizeBytes,
    min_version: manifest.minVersion,
    released_at_ms: manifest.releasedAtMs,
    revoked_versions: revokedVersions,
    url: manifest.url,
    rollout_percent: rolloutPercent,
    key_id: flags.keyId,
    signature_ed25519: sign(null, Buffer.from(signedManifestText(manifest)), key).toString('base64'),
  }
  mkdirSync(flags.out, { recursive: true })
  const name = `agent-${version}-${manifest.os}-${manifest.arch}.zst`
  writeFileSync(join(flags.out, name), content)
  writeFileSync(join(flags.out, 'manifest.json'), `${JSON.stringify(document, null, 2)}\n`)
  say(`${join(flags.out, name)}: ${content.length} bytes, to be served at ${flags.url}`)
  say(`${join(flags.out, 'manifest.json')}: for update.manifest_file of the collector`)
}

function signCollectorUrl({ key, url }: { key: string; url: string }): void {
  requireHttps(url)
  if (url.includes('#') || url.includes('?')) fail('--url: must not carry a query or a fragment')
  const signedAtMs = Date.now()
  const signature = sign(null, Buffer.from(signedAddressText(url, signedAtMs)), readKey(key)).toString('base64url')
  say(formatSignedAddress({ url, signedAtMs, signature }))
}

const program = new Command('agent-release').description('Makes and signs releases of the agent')
program
  .command('pack')
  .description('compress an executable and sign its manifest')
  .requiredOption('--key <file>', 'PEM file of the Ed25519 private key')
  .requiredOption('--url <url>', 'where the release will be served')
  .option('--executable <file>', 'compiled agent', 'dist/agent')
  .option('--out <dir>', 'where release and manifest go', 'dist/release')
  .option('--channel <name>', 'release channel', 'stable')
  .option('--min-version <version>', 'agents below it do not update', '')
  .option('--revoked <versions>', 'versions that must not be installed, joined by commas')
  .option('--rollout <percent>', 'share of the agents that is offered it', '100')
  .option('--key-id <id>', 'name of the key', '')
  .action(pack)
program
  .command('sign-collector-url')
  .description('sign the address of another collector, for collector_url of the collector in use')
  .requiredOption('--key <file>', 'PEM file of the Ed25519 private key')
  .requiredOption('--url <url>', 'https address of the new collector')
  .action(signCollectorUrl)

await program.parseAsync()
