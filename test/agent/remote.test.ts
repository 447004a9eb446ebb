// The running agent under remote configuration, renewing its token, telling its inventory, looking for updates.
import { expect, test } from 'bun:test'
import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'
import { firstConfigPollMs } from '../../core/agent/schedule.ts'
import { renewalDueAtMs } from '../../core/agent/token-renewal.ts'
import { signedManifestText } from '../../core/agent/update-verdict.ts'
import { DAY_MS } from '../../core/limits.ts'
import { AgentConfigSchema, RenewResponseSchema, UpdateManifestSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { FIRST_TOKEN, protocolError, renewedToken } from './peer.ts'
import { type Rig, withRig } from './rig.ts'

const configReads = (rig: Rig): number[] => rig.peer.of('GET /config').map(({ atMs }) => atMs - rig.clock.startMs)
const intervals = (rig: Rig): (number | undefined)[] => rig.peer.batches.map(({ stats }) => stats?.intervalSeconds)
const HOUR_MS = 3_600_000

test('[AGT-004 AGT-018 AGT-019] the config is read at a phase of its own, then every 300 s give or take the jitter', () =>
  withRig(async rig => {
    await rig.start()
    await rig.clock.runUntil(() => configReads(rig).length >= 3, 'three reads')
    const phaseMs = firstConfigPollMs(rig.peer.agentId)
    // The rig's random share is one half: no jitter either way.
    expect(configReads(rig)).toEqual([phaseMs, phaseMs + 300_000, phaseMs + 600_000])
  }))

test('[AGT-020 AGT-022] an etag in an acknowledgement that is not the held one makes the agent read /config with If-None-Match', () =>
  withRig(async rig => {
    rig.peer.setConfig({ etag: 'one', intervalSeconds: 20 })
    await rig.start()
    await rig.clock.runUntil(() => rig.peer.batches.length >= 1, 'a batch')
    expect(configReads(rig)).toEqual([])
    rig.peer.setConfig({ etag: 'two', intervalSeconds: 40 })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 3, 'two more batches')
    expect(rig.peer.of('GET /config')[0]?.headers.get('if-none-match')).toBe('one')
    expect(intervals(rig)).toEqual([20, 20, 40])
    expect(rig.peer.batches.map(({ stats }) => stats?.configEtag)).toEqual(['one', 'one', 'two'])
  }))

test('[AGT-021] reads caused by a changed etag happen at most once in 30 s', () =>
  withRig(async rig => {
    await rig.start({ interval: '15s' })
    let changes = 0
    rig.peer.always('GET /config', () => {
      rig.peer.setConfig({ etag: `changed ${++changes}`, intervalSeconds: 15 })
      return null
    })
    rig.peer.setConfig({ etag: 'start' })
    // Every answer carries an etag that is old by the time of the next acknowledgement.
    rig.peer.always('POST /metrics', () => {
      rig.peer.setConfig({ etag: `changed ${++changes}`, intervalSeconds: 15 })
      return null
    })
    await rig.clock.runUntil(() => configReads(rig).length >= 6, 'six reads')
    const reads = configReads(rig)
    expect(rig.peer.batches.length).toBeGreaterThan(8)
    reads.slice(1).forEach((atMs, index) => {
      expect(atMs - reads[index]!).toBeGreaterThanOrEqual(30_000)
    })
  }))

test('[AGT-023] on 304 the agent keeps its config', () =>
  withRig(async rig => {
    rig.peer.setConfig({ etag: 'one', intervalSeconds: 60 })
    const agent = await rig.start()
    await rig.clock.runUntil(() => configReads(rig).length >= 2, 'two reads')
    await rig.clock.runUntil(() => rig.peer.batches.length >= 8, 'batches')
    expect(rig.peer.of('GET /config').every(({ headers }) => headers.get('if-none-match') === 'one')).toBe(true)
    expect(new Set(intervals(rig))).toEqual(new Set([60]))
    expect(agent.state).toBe('online')
  }))

test('[AGT-024 AGT-025] the last valid config is kept with mode 0600 and holds at a restart without the collector', () =>
  withRig(async rig => {
    rig.peer.setConfig({ etag: 'one', intervalSeconds: 60 })
    const agent = await rig.start()
    await rig.clock.runUntil(() => rig.peer.batches.length >= 1, 'a batch')
    await agent.stop()
    expect(statSync(join(rig.stateDir, 'config')).mode & 0o777).toBe(0o600)
    rig.peer.always('GET /config', () => protocolError(503, 'unavailable'))
    await rig.start()
    await rig.clock.runUntil(() => rig.peer.batches.length >= 3, 'two more batches')
    expect(intervals(rig)).toEqual([60, 60, 60])
    expect(rig.peer.batches.at(-1)?.stats?.configEtag).toBe('one')
  }))

test('[CFG-031] a config that would make the settings invalid is discarded whole, and the saved one stays', () =>
  withRig(async rig => {
    rig.peer.setConfig({ etag: 'good', intervalSeconds: 60 })
    await rig.start()
    await rig.clock.runUntil(() => rig.peer.batches.length >= 1, 'a batch')
    rig.peer.setConfig({ etag: 'bad', intervalSeconds: 90, limits: { bufferBytes: 1000n } })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 4, 'more batches')
    expect(rig.peer.batches.at(-1)?.stats?.intervalSeconds).toBe(30)
    expect(rig.file('config')).toContain('good')
    expect(rig.peer.batches.at(-1)?.stats?.warnings.join()).toContain('discarded')
  }))

test('[AGT-069 AGT-073 CFG-026 CFG-027] collector_url and log_level of a remote config change nothing', () =>
  withRig(async rig => {
    const elsewhere = { etag: 'one', collectorUrl: 'https://elsewhere.example.com', logLevel: 'silent' }
    rig.peer.setConfig(elsewhere)
    const agent = await rig.start()
    await rig.clock.runUntil(() => configReads(rig).length > 0 && rig.peer.batches.length >= 2, 'batches')
    await agent.stop()
    const before = rig.peer.batches.length
    await rig.start({ allow_remote_config: false, collector_url: undefined })
    await rig.clock.runUntil(() => rig.peer.batches.length > before, 'a batch to the same collector')
    expect(rig.status().collector_url).toBe(rig.peer.url)
    expect(rig.lines('collector answered').length).toBeGreaterThan(3)
  }))

test('[CFG-033 CFG-034] with allow_remote_config off only min_agent_version is heard, as a warning', () =>
  withRig(async rig => {
    rig.peer.setConfig({ etag: 'one', intervalSeconds: 60, minAgentVersion: '99.0.0' })
    await rig.start({ allow_remote_config: false })
    await rig.clock.runUntil(() => rig.peer.batches.length >= 2, 'batches')
    expect(intervals(rig)).toEqual([30, 30])
    expect(rig.peer.batches.at(-1)?.stats?.warnings.join()).toContain('99.0.0')
  }))

test('a config that is no protobuf leaves everything as it is', () =>
  withRig(async rig => {
    await rig.start()
    rig.peer.next('GET /config', new Response(Buffer.from([0xff, 0xff, 0xff])))
    await rig.clock.runUntil(() => configReads(rig).length >= 2, 'a second read')
    const reads = configReads(rig)
    expect(reads[1]! - reads[0]!).toBe(2_500)
  }))

const renewals = (rig: Rig): number[] => rig.peer.of('POST /credentials/renew').map(({ atMs }) => atMs)
const lastToken = (rig: Rig): string | null | undefined =>
  rig.peer.of('POST /metrics').at(-1)?.headers.get('authorization')
const RENEW = { renew_period: '4h', interval: '300s' }

test('[AGT-033] the token is renewed when its age reaches the configured period, less the share of the agent', () =>
  withRig(async rig => {
    await rig.start(RENEW)
    await rig.clock.runUntil(() => renewals(rig).length >= 1, 'a renewal', 3 * DAY_MS)
    const atMs = renewals(rig)[0]!
    expect(atMs).toBe(renewalDueAtMs(rig.clock.startMs, 4 * HOUR_MS, rig.peer.agentId))
    await rig.clock.runFor(600_000)
    expect(lastToken(rig)).toBe(`Bearer ${renewedToken(1)}`)
    expect(rig.file('token')).toContain(renewedToken(1))
    expect(rig.logged).not.toContain('agt_renewed')
  }))

test('[AGT-034 AGT-035] while a renewed token cannot be stored, the old one is used, and the renewal is repeated', () =>
  withRig(async rig => {
    await rig.start(RENEW)
    await rig.clock.runFor(600_000)
    // A folder in the place of the file that a write goes through: the disk refuses, root or not.
    const blocked = join(rig.stateDir, 'token.tmp')
    mkdirSync(blocked)
    await rig.clock.runUntil(() => renewals(rig).length >= 1, 'a renewal', 3 * DAY_MS)
    await rig.clock.runFor(600_000)
    expect(lastToken(rig)).toBe(`Bearer ${FIRST_TOKEN}`)
    expect(rig.file('token')).toContain(FIRST_TOKEN)
    await rig.clock.runUntil(() => renewals(rig).length >= 2, 'a second renewal', 2 * HOUR_MS)
    expect(rig.peer.of('POST /credentials/renew')[1]?.headers.get('authorization')).toBe(`Bearer ${FIRST_TOKEN}`)
    rmSync(blocked, { recursive: true })
    await rig.clock.runUntil(() => renewals(rig).length >= 3, 'a third renewal', 2 * HOUR_MS)
    await rig.clock.runFor(600_000)
    expect(lastToken(rig)).toBe(`Bearer ${renewedToken(3)}`)
    expect(rig.file('token')).toContain(renewedToken(3))
  }))

test('[AGT-034] a renewed token that is none is refused, and the one in use stays', () =>
  withRig(async rig => {
    await rig.start(RENEW)
    const answer = (agentToken: string) =>
      new Response(Buffer.from(toBinary(RenewResponseSchema, create(RenewResponseSchema, { agentToken }))))
    rig.peer.next('POST /credentials/renew', answer(`agt_${'a'.repeat(43)}\r\nX-Forged: 1`), answer('agt_short'))
    await rig.clock.runUntil(() => renewals(rig).length >= 2, 'two renewals', 3 * DAY_MS)
    const sends = rig.peer.batches.length
    await rig.clock.runUntil(() => rig.peer.batches.length > sends + 2, 'batches')
    expect(lastToken(rig)).toBe(`Bearer ${FIRST_TOKEN}`)
    expect(rig.file('token')).toContain(FIRST_TOKEN)
    await rig.clock.runUntil(() => renewals(rig).length >= 3, 'a third renewal', 2 * HOUR_MS)
    await rig.clock.runFor(600_000)
    expect(lastToken(rig)).toBe(`Bearer ${renewedToken(1)}`)
  }))

test('[AGT-036 AGT-037] when renewal answers 503 the agent warns once and tries every hour', () =>
  withRig(async rig => {
    await rig.start(RENEW)
    rig.peer.always('POST /credentials/renew', () => protocolError(503, 'unavailable'))
    await rig.clock.runUntil(() => renewals(rig).length >= 4, 'four attempts', 3 * DAY_MS)
    const times = renewals(rig)
    expect(times.slice(1).map((atMs, index) => atMs - times[index]!)).toEqual([HOUR_MS, HOUR_MS, HOUR_MS])
    expect(rig.lines('the collector does not renew tokens now: trying every hour').length).toBe(1)
    expect(lastToken(rig)).toBe(`Bearer ${FIRST_TOKEN}`)
  }))

test('[AGT-003 AGT-026 AGT-027] the inventory is sent at the start and every 6 hours', () =>
  withRig(async rig => {
    await rig.start({ interval: '300s' })
    await rig.clock.runUntil(() => rig.peer.inventories.length >= 3, 'three inventories', DAY_MS)
    const times = rig.peer.of('POST /inventory').map(({ atMs }) => atMs - rig.clock.startMs)
    expect(times).toEqual([0, 6 * HOUR_MS, 12 * HOUR_MS])
    const [facts] = rig.peer.inventories
    expect(facts?.os?.family).toBe('linux')
    expect(facts?.cpu?.threads).toBeGreaterThan(0)
    expect(facts?.memoryTotalBytes).toBeGreaterThan(0n)
    expect(facts?.agentBuild?.version).toMatch(/^\d+\.\d+\.\d+/)
  }))

test('[AGT-028] a change of what is installed sends the inventory again', () =>
  withRig(async rig => {
    const etc = join(rig.stateDir, 'etc')
    mkdirSync(etc)
    writeFileSync(join(etc, 'os-release'), 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\n')
    await rig.start({ interval: '300s' }, { roots: { proc: '/proc', sys: '/sys', etc, dbus: '/var/lib/dbus' } })
    await rig.clock.runUntil(() => rig.peer.inventories.length >= 1, 'an inventory')
    writeFileSync(join(etc, 'os-release'), 'NAME="Debian GNU/Linux"\nVERSION_ID="13"\n')
    await rig.clock.runUntil(() => rig.peer.inventories.length >= 2, 'a second inventory', HOUR_MS)
    expect(rig.peer.inventories.map(({ os }) => os?.version)).toEqual(['12', '13'])
  }))

test('[AGT-029] neither enrollment nor inventory carries a MAC address', () =>
  withRig(async rig => {
    await rig.start()
    await rig.clock.runUntil(() => rig.peer.inventories.length >= 1, 'an inventory')
    const sent = JSON.stringify([rig.peer.enrollments, rig.peer.inventories], (_, value) =>
      typeof value === 'bigint' ? String(value) : value,
    )
    expect(sent).toContain('agentBuild')
    expect(sent).not.toMatch(/(?:[0-9a-f]{2}:){5}[0-9a-f]{2}/i)
  }))

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const MANIFEST = {
  version: '9.1.0',
  os: 'linux',
  arch: process.arch,
  channel: 'stable',
  sha256: 'ab'.repeat(32),
  sizeBytes: 1_000_000,
  minVersion: '0.0.1',
  releasedAtMs: 1_780_000_000_000,
  revokedVersions: ['9.0.0'],
  url: 'https://downloads.example.com/agent',
}

function signedManifest(changed: { url?: string; rolloutPercent?: number } = {}): Response {
  const signature = new Uint8Array(sign(null, Buffer.from(signedManifestText(MANIFEST)), privateKey))
  const manifest = create(UpdateManifestSchema, {
    ...MANIFEST,
    sizeBytes: BigInt(MANIFEST.sizeBytes),
    releasedAtMs: BigInt(MANIFEST.releasedAtMs),
    signatureEd25519: signature,
    rolloutPercent: 10,
    ...changed,
  })
  return new Response(Buffer.from(toBinary(UpdateManifestSchema, manifest)))
}

async function updateFinding(rig: Rig, answer: Response): Promise<unknown> {
  const keyFile = join(rig.stateDir, 'release.pem')
  writeFileSync(keyFile, publicKey.export({ type: 'spki', format: 'pem' }))
  rig.peer.next('GET /update', answer)
  const keys = { 'update.public_key_file': keyFile, 'update.hosts': ['downloads.example.com'], interval: '300s' }
  const agent = await rig.start({ ...keys, state_dir: join(rig.stateDir, 'agent') })
  await rig.clock.runUntil(() => rig.peer.of('GET /update').length >= 1, 'a look for updates', DAY_MS)
  await rig.clock.idle()
  const found: unknown = JSON.parse(rig.file('agent/status.json')).update
  await agent.stop()
  return found
}

test('[AGT-085] the question for an update says os, arch, version and channel, and nothing else', () =>
  withRig(async rig => {
    expect(await updateFinding(rig, new Response(null, { status: 204 }))).toBeNull()
    const query = new URLSearchParams(rig.peer.of('GET /update')[0]?.search)
    expect([...query.keys()].sort()).toEqual(['arch', 'channel', 'os', 'version'])
    expect(query.get('os')).toBe('linux')
    expect(query.get('arch')).toBe(process.arch)
  }))

test('[AGT-086] the agent looks for updates every 6 hours', () =>
  withRig(async rig => {
    await rig.start({ interval: '300s' })
    await rig.clock.runUntil(() => rig.peer.of('GET /update').length >= 3, 'three looks', 2 * DAY_MS)
    const times = rig.peer.of('GET /update').map(({ atMs }) => atMs - rig.clock.startMs)
    expect(times[0]).toBeLessThan(6 * HOUR_MS)
    expect(times.slice(1).map((atMs, index) => atMs - times[index]!)).toEqual([6 * HOUR_MS, 6 * HOUR_MS])
  }))

test('a signed newer version is reported as one that would be installed', () =>
  withRig(async rig => {
    expect(await updateFinding(rig, signedManifest())).toBe('version 9.1.0 is offered and would be installed')
  }))

test('[AGT-087] a manifest whose signature does not verify is refused', () =>
  withRig(async rig => {
    const finding = await updateFinding(rig, signedManifest({ url: 'https://downloads.example.com/other' }))
    expect(finding).toBe('version 9.1.0 is refused: the signature does not verify')
  }))

test('rollout_percent is not under the signature', () =>
  withRig(async rig => {
    expect(await updateFinding(rig, signedManifest({ rolloutPercent: 55 }))).toContain('would be installed')
  }))

test('the config that an enrollment carries is applied at once', () =>
  withRig(async rig => {
    rig.peer.setConfig(create(AgentConfigSchema, { etag: 'enrolled', intervalSeconds: 45 }))
    await rig.start()
    await rig.clock.runUntil(() => rig.peer.batches.length >= 1, 'a batch')
    expect(intervals(rig)).toEqual([45])
  }))
