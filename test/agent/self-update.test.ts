// Self-update with real executables: a compiled agent, a collector over https that offers a signed release, and what
// becomes of the executable on disk. The releases are the agent's own program, bundled for the runtime that is
// installed.
import { afterAll, afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import { type Manifest, signedManifestText } from '../../core/agent/update-verdict.ts'
import { DAY_MS } from '../../core/limits.ts'
import { UpdateManifestSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { until } from '../support/until.ts'
import { makeCertificate } from './certificate.ts'
import { Peer, protocolError } from './peer.ts'

const MAIN = join(import.meta.dir, '../../apps/agent/main.ts')
const DEADLINE_MS = 60_000
setDefaultTimeout(90_000)

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const builds = mkdtempSync(join(tmpdir(), 'agent-builds-'))
const compiledAgent = join(builds, 'agent-0.1.0')
let release: Buffer<ArrayBuffer> = Buffer.alloc(0)

/** The agent's program as a script of a version. */
async function bundle(version: string): Promise<Buffer<ArrayBuffer>> {
  const define = { SVC_BUILD_VERSION: JSON.stringify(version) }
  const built = await Bun.build({ entrypoints: [MAIN], target: 'bun', define, banner: '#!/usr/bin/env bun\n// @bun' })
  const [output] = built.outputs
  if (!built.success || !output) throw new AggregateError(built.logs, 'cannot bundle the agent')
  return Buffer.from(await output.text())
}

beforeAll(async () => {
  const define = { SVC_BUILD_VERSION: '"0.1.0"' }
  const built = await Bun.build({ entrypoints: [MAIN], target: 'bun', define, compile: { outfile: compiledAgent } })
  if (!built.success) throw new AggregateError(built.logs, 'cannot compile the agent')
  release = await bundle('0.2.0')
})
afterAll(() => rmSync(builds, { recursive: true, force: true }))

let folder = ''
let peer: Peer
let running: ReturnType<typeof Bun.spawn>[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-update-'))
  const { key, cert } = makeCertificate(folder)
  peer = new Peer({ key, cert })
  copyFileSync(compiledAgent, executable())
  writeFileSync(join(folder, 'release.pem'), publicKey.export({ type: 'spki', format: 'pem' }))
})
afterEach(async () => {
  for (const child of running) {
    child.kill('SIGKILL')
    await child.exited
  }
  running = []
  await peer.stop()
  rmSync(folder, { recursive: true, force: true })
})

const executable = () => join(folder, 'agent')
const stateDir = () => join(folder, 'state')

type Offer = {
  readonly content: Buffer<ArrayBuffer>
  readonly changed?: Partial<Manifest>
  readonly signedWith?: Partial<Manifest>
}

/**
 * Offers a release from now on; `changed` is what the manifest says otherwise, `signedWith` what is signed otherwise.
 */
function offer({ content, changed = {}, signedWith = {} }: Offer): void {
  const manifest: Manifest = {
    version: '0.2.0',
    os: 'linux',
    arch: process.arch,
    channel: 'stable',
    sha256: createHash('sha256').update(content).digest('hex'),
    sizeBytes: content.length,
    minVersion: '0.1.0',
    releasedAtMs: 1_790_000_000_000,
    revokedVersions: [],
    url: `${peer.url}/release`,
    ...changed,
  }
  const signature = sign(null, Buffer.from(signedManifestText({ ...manifest, ...signedWith })), privateKey)
  const message = create(UpdateManifestSchema, {
    ...manifest,
    revokedVersions: [...manifest.revokedVersions],
    sizeBytes: BigInt(manifest.sizeBytes),
    releasedAtMs: BigInt(manifest.releasedAtMs),
    signatureEd25519: new Uint8Array(signature),
    rolloutPercent: 100,
  })
  peer.always('GET /update', ({ search }) =>
    new URLSearchParams(search).get('version') === manifest.version
      ? null
      : new Response(Buffer.from(toBinary(UpdateManifestSchema, message))),
  )
  peer.always('GET /release', () => new Response(content))
}

function run(trialPeriod = '5m'): ReturnType<typeof Bun.spawn> {
  const config = join(folder, 'agent.yaml')
  writeFileSync(
    config,
    `collector_url: ${peer.url}
state_dir: ${stateDir()}
license: lic_x
interval: 10s
tls: { ca_file: ${join(folder, 'cert.pem')} }
update: { public_key_file: ${join(folder, 'release.pem')}, check_period: 1s, trial_period: ${trialPeriod} }
`,
  )
  const child = Bun.spawn([executable(), 'run', '--config', config], {
    stdout: 'pipe',
    stderr: 'inherit',
    stdin: 'ignore',
  })
  running.push(child)
  return child
}

const jsonOf = (name: string): Record<string, unknown> => JSON.parse(readFileSync(join(stateDir(), name), 'utf8'))
const status = (): Record<string, unknown> => (existsSync(join(stateDir(), 'status.json')) ? jsonOf('status.json') : {})
const batchesOf = (version: string) =>
  peer.of('POST /metrics').filter(({ headers }) => headers.get('x-svc-agent-version') === version).length
const isOldInPlace = () => statSync(executable()).size === statSync(compiledAgent).size
const besideExecutable = () => readdirSync(folder).filter(name => name.startsWith('agent') && name !== 'agent.yaml')

/** Nobody may collect a process whose parent was killed. */
function isRunning(pid: number): boolean {
  const path = `/proc/${pid}/stat`
  return existsSync(path) && !/\) Z /.test(readFileSync(path, 'utf8'))
}

async function refusal(): Promise<string> {
  await until('a refusal', () => /refused|cannot be installed/.test(String(status().update)), DEADLINE_MS)
  return String(status().update)
}

test('[AGT-082] a signed release replaces the executable, proves itself by an accepted batch, and goes on as the same process', async () => {
  offer({ content: zstdCompressSync(release) })
  const child = run()
  await until(
    'the new version in this process',
    () => status().pid === child.pid && status().version === '0.2.0',
    DEADLINE_MS,
  )
  expect(readFileSync(executable())).toEqual(release)
  expect(besideExecutable()).toEqual(['agent'])
  expect(jsonOf('update.json')).toEqual({ trial: null, failed: [] })
  expect(peer.enrollments.length).toBe(1)
  expect(peer.of('GET /release').length).toBe(1)
  const seqs = peer.batches.map(({ seq }) => seq)
  expect(seqs.every((seq, index) => index === 0 || seq > seqs[index - 1]!)).toBe(true)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
})

test('[AGT-083 AGT-084] a version without an accepted batch in its time gives way to the old binary, and is failed for 24 hours', async () => {
  peer.always('POST /metrics', ({ headers }) =>
    headers.get('x-svc-agent-version') === '0.2.0' ? protocolError(503, 'unavailable') : null,
  )
  offer({ content: release })
  const startedAtMs = Date.now()
  const child = run('10s')
  await until('a try of the new version', () => batchesOf('0.2.0') >= 1, DEADLINE_MS)
  expect(await refusal()).toBe('version 0.2.0 is refused: version 0.2.0 failed here within the last 24 hours')
  expect(isOldInPlace()).toBe(true)
  expect(besideExecutable()).toEqual(['agent'])
  expect(status()).toMatchObject({ version: '0.1.0', pid: child.pid })
  const [failed] = jsonOf('update.json').failed as [{ version: string; until_ms: number }]
  expect(failed.version).toBe('0.2.0')
  expect(failed.until_ms - startedAtMs - DAY_MS).toBeLessThan(DEADLINE_MS)
  expect(failed.until_ms - startedAtMs - DAY_MS).toBeGreaterThan(10_000)
  expect(peer.of('GET /release').length).toBe(1)
})

test('[AGT-083] a version that does not even start is rolled back at once', async () => {
  const says = '#!/bin/sh\nif [ "$1" = --version ]; then echo 0.2.0; else exit 3; fi\n'
  offer({ content: Buffer.from(says) })
  run()
  expect(await refusal()).toContain('failed here within the last 24 hours')
  expect(isOldInPlace()).toBe(true)
})

test('[AGT-083] a version on trial whose watcher is gone, as after a power cut, watches itself', async () => {
  peer.always('POST /metrics', ({ headers }) =>
    headers.get('x-svc-agent-version') === '0.2.0' ? protocolError(503, 'unavailable') : null,
  )
  offer({ content: release })
  const first = run('10s')
  await until('a trial', () => status().version === '0.2.0', DEADLINE_MS)
  const triedPid = Number(status().pid)
  first.kill('SIGKILL')
  await first.exited
  await until('the end of the version on trial', () => !isRunning(triedPid))
  if (!isOldInPlace()) {
    const second = run('10s')
    await until('the old version', () => status().version === '0.1.0' && status().pid === second.pid, DEADLINE_MS)
  }
  expect(isOldInPlace()).toBe(true)
  expect(jsonOf('update.json').failed).toMatchObject([{ version: '0.2.0' }])
})

test('a stop in the middle of a trial ends both versions, and the trial goes on with the next start', async () => {
  peer.always('POST /metrics', ({ headers }) =>
    headers.get('x-svc-agent-version') === '0.2.0' ? protocolError(503, 'unavailable') : null,
  )
  offer({ content: release })
  const first = run()
  await until('a trial', () => status().version === '0.2.0', DEADLINE_MS)
  const triedPid = Number(status().pid)
  first.kill('SIGTERM')
  expect(await first.exited).toBe(0)
  expect(isRunning(triedPid)).toBe(false)
  peer.always('POST /metrics', null)
  const second = run()
  await until('an accepted batch', () => batchesOf('0.2.0') > 0 && jsonOf('update.json').trial === null, DEADLINE_MS)
  expect(status()).toMatchObject({ version: '0.2.0', pid: second.pid })
  await until('the old binary to go', () => besideExecutable().length === 1)
})

const hash = 'ab'.repeat(32)
const refusals: [string, (offered: Buffer<ArrayBuffer>) => Offer, string][] = [
  [
    'a release with a wrong hash is refused, and nothing is replaced',
    content => ({ content, changed: { sha256: hash } }),
    'the sha256 of the download is another one',
  ],
  [
    'a download that is shorter than size_bytes is refused',
    content => ({ content, changed: { sizeBytes: content.length + 1 } }),
    'bytes instead of',
  ],
  [
    '[AGT-081] a download that is larger than size_bytes is refused',
    content => ({ content, changed: { sizeBytes: content.length - 1 } }),
    'the download is larger than',
  ],
  [
    '[AGT-087] a release whose signature is over something else is not downloaded',
    content => ({ content, signedWith: { sha256: hash } }),
    'the signature does not verify',
  ],
  [
    'a release that is another version than its manifest says is refused',
    content => ({ content, changed: { version: '0.3.0' } }),
    'the release says that it is 0.2.0',
  ],
]
for (const [name, offerOf, expected] of refusals)
  test(name, async () => {
    offer(offerOf(release))
    run()
    expect(await refusal()).toContain(expected)
    expect(isOldInPlace()).toBe(true)
    expect(besideExecutable()).toEqual(['agent'])
  })

test('[AGT-080] a redirect to another host is not followed, one on the same host is', async () => {
  const other = new Peer({
    key: readFileSync(join(folder, 'key.pem'), 'utf8'),
    cert: readFileSync(join(folder, 'cert.pem'), 'utf8'),
  })
  try {
    offer({ content: release })
    other.always('GET /release', () => new Response(release))
    peer.always('GET /release', () => Response.redirect(`${other.url}/release`, 302))
    const child = run()
    expect(await refusal()).toContain(`a redirect leads to another host: ${new URL(other.url).host}`)
    expect(other.seen).toEqual([])
    expect(isOldInPlace()).toBe(true)
    peer.always('GET /moved', () => new Response(release))
    peer.always('GET /release', () => Response.redirect(`${peer.url}/moved`, 302))
    await until('the new version', () => status().version === '0.2.0' && status().pid === child.pid, DEADLINE_MS)
  } finally {
    await other.stop()
  }
})
