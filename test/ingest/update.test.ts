import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'
import { loadManifest, parseManifest } from '../../apps/collector/ingest/agents/load-update-manifest.ts'
import { signedManifestText } from '../../core/agent/update-verdict.ts'
import { updateCohort } from '../../core/wire/update-offer.ts'
import { UpdateManifestSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { agentId, errorOf, type Rig, startRig } from './rig.ts'

const keys = generateKeyPairSync('ed25519')
let directory = ''
let rig: Rig
const manifestFile = () => join(directory, 'manifest.json')
const publicKeyFile = () => join(directory, 'key.pem')

const base = {
  version: '2.0.0',
  url: 'https://updates.example.net/agent-2.0.0',
  sha256: 'a'.repeat(64),
  min_version: '1.0.0',
  rollout_percent: 100,
  released_at_ms: 1_790_000_000_000,
  os: 'linux',
  arch: 'x64',
  channel: 'stable',
  size_bytes: 30_000_000,
  key_id: 'k1',
  revoked_versions: ['1.9.0', '1.8.0'],
}

/** Writes a manifest, signed unless `signature` is given. */
function writeManifest(changes: Record<string, unknown> = {}, signature?: string): void {
  const json = { ...base, ...changes, signature_ed25519: Buffer.alloc(64).toString('base64') }
  const signed = sign(null, Buffer.from(signedManifestText(parseManifest(json))), keys.privateKey).toString('base64')
  writeFileSync(manifestFile(), JSON.stringify({ ...json, signature_ed25519: signature ?? signed }))
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'svc-update-'))
  writeFileSync(publicKeyFile(), keys.publicKey.export({ type: 'spki', format: 'pem' }))
  writeManifest()
  rig = await startRig({ keys: { 'update.manifest_file': manifestFile(), 'update.public_key_file': publicKeyFile() } })
})
afterAll(async () => {
  await rig.stop()
  rmSync(directory, { recursive: true, force: true })
})

const ask = (changes: Record<string, string> = {}) =>
  rig.call(
    `/update?${new URLSearchParams({ os: 'linux', arch: 'x64', version: '1.5.0', channel: 'stable', ...changes })}`,
  )

test('[WIRE-021] [WIRE-046] [WIRE-047] [WIRE-053] the manifest is offered to an older agent of its os, arch and channel', async () => {
  const response = await ask()
  expect(response.status).toBe(200)
  expect(fromBinary(UpdateManifestSchema, await response.bytes())).toMatchObject({
    version: '2.0.0',
    url: base.url,
    sha256: base.sha256,
    minVersion: '1.0.0',
    rolloutPercent: 100,
    releasedAtMs: 1_790_000_000_000n,
    os: 'linux',
    arch: 'x64',
    channel: 'stable',
    sizeBytes: 30_000_000n,
    keyId: 'k1',
    revokedVersions: ['1.9.0', '1.8.0'],
  })
  const others: Record<string, string>[] = [
    { os: 'windows' },
    { arch: 'arm64' },
    { channel: 'beta' },
    { version: '2.0.0' },
    { version: '2.0.1' },
    { version: '0.9.0' },
    { version: 'dev' },
  ]
  for (const other of others) expect((await ask(other)).status, JSON.stringify(other)).toBe(204)
})

test('an agent must say os, arch, version and channel, and have a token', async () => {
  expect(await errorOf(await rig.call('/update?os=linux'))).toBe('400 bad_request')
  expect(await errorOf(await rig.call('/update?os=linux', { token: null }))).toBe('401 unauthorized')
})

test('[WIRE-048] [WIRE-054] [WIRE-055] the cohort comes from the agent id, and is no part of what is signed', async () => {
  const cohort = updateCohort(agentId)
  for (const [percent, status] of [
    [cohort, 204],
    [cohort + 1, 200],
    [0, 204],
  ] as const) {
    writeManifest({ rollout_percent: percent })
    rig.ingest.reloadManifest(false)
    expect((await ask()).status).toBe(status)
  }
})

test('[WIRE-049] while the emergency stop is set nobody is offered anything', async () => {
  writeManifest()
  rig.ingest.reloadManifest(true)
  expect((await ask()).status).toBe(204)
  rig.ingest.reloadManifest(false)
  expect((await ask()).status).toBe(200)
})

test('[WIRE-049] the emergency stop holds also where the manifest cannot be read any more', async () => {
  writeManifest()
  rig.ingest.reloadManifest(false)
  expect((await ask()).status).toBe(200)
  writeFileSync(manifestFile(), '{}')
  expect(() => rig.ingest.reloadManifest(true)).toThrow('cannot use the update manifest')
  expect((await ask()).status).toBe(204)
  writeManifest()
  rig.ingest.reloadManifest(false)
  expect((await ask()).status).toBe(200)
})

test('a manifest whose signature does not hold is not loaded, and the old one stays', async () => {
  writeManifest({ version: '3.0.0' }, Buffer.alloc(64, 1).toString('base64'))
  expect(() => rig.ingest.reloadManifest(false)).toThrow('its signature does not hold')
  expect(fromBinary(UpdateManifestSchema, await (await ask()).bytes()).version).toBe('2.0.0')
})

test('[WIRE-050] [WIRE-051] [WIRE-052] what is signed is lines in this order', () => {
  writeManifest()
  const manifest = loadManifest(manifestFile(), publicKeyFile())
  expect(signedManifestText(manifest).split('\n').slice(1)).toEqual([
    '2.0.0',
    'linux',
    'x64',
    'stable',
    'a'.repeat(64),
    '30000000',
    '1.0.0',
    '1790000000000',
    '1.8.0,1.9.0',
    base.url,
  ])
})

test('a manifest with a wrong field is refused by the name of the field', () => {
  const f = (changes: Record<string, unknown>, field: string) =>
    expect(() =>
      parseManifest({ ...base, signature_ed25519: Buffer.alloc(64).toString('base64'), ...changes }),
    ).toThrow(field)
  f({ url: 'http://updates.example.net/x' }, 'url')
  f({ sha256: 'A'.repeat(64) }, 'sha256')
  f({ version: '2' }, 'version')
  f({ size_bytes: 50 * 1024 * 1024 }, 'size_bytes')
  f({ rollout_percent: 101 }, 'rollout_percent')
  f({ signature_ed25519: 'x' }, 'signature_ed25519')
  f({ revoked_versions: 'none' }, 'revoked_versions')
})

test('[WIRE-047] without a manifest every agent gets 204', async () => {
  const own = await startRig()
  expect((await own.call('/update?os=linux&arch=x64&version=1.0.0&channel=stable')).status).toBe(204)
  await own.stop()
})
