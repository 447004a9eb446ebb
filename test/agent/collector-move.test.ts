// The move to another collector by remote configuration, between two collectors that serve https.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { generateKeyPairSync, sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatSignedAddress, parseSignedAddress, signedAddressText } from '../../core/agent/signed-address.ts'
import { makeCertificate } from './certificate.ts'
import { Peer, protocolError } from './peer.ts'
import { type Rig, withRig } from './rig.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const SIGNED_AT_MS = 1_790_000_000_000
let folder = ''
let certFile = ''
let home: Peer
let other: Peer

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-move-'))
  const { key, cert, certFile: file } = makeCertificate(folder)
  certFile = file
  home = new Peer({ key, cert })
  other = new Peer({ key, cert })
  writeFileSync(join(folder, 'key.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
})
afterEach(async () => {
  await home.stop()
  await other.stop()
  rmSync(folder, { recursive: true, force: true })
})

const keys = () => ({
  collector_url: home.url,
  'tls.ca_file': certFile,
  'update.public_key_file': join(folder, 'key.pub'),
})

/** An address as a collector is configured to tell it; `signedUrl` is what the signature is over. */
function signed(url: string, signedAtMs = SIGNED_AT_MS, signedUrl = url): string {
  const signature = sign(null, Buffer.from(signedAddressText(signedUrl, signedAtMs)), privateKey).toString('base64url')
  return formatSignedAddress({ url, signedAtMs, signature })
}

function tell(rig: Rig, collectorUrl: string, etag = 'one'): void {
  for (const peer of [home, other]) {
    peer.now = () => rig.clock.now()
    peer.setConfig({ etag, collectorUrl })
  }
}

const hasMoved = (rig: Rig) => rig.status().collector_url === other.url
const warnings = (rig: Rig) => String(rig.status().warnings)

test('[AGT-070 AGT-071 AGT-072] a signed https address is taken over once the new collector has answered /ping, and kept over restarts', () =>
  withRig(async rig => {
    tell(rig, signed(other.url))
    other.next('GET /ping', protocolError(503, 'unavailable'), new Response('{"server_time_ms":1}'))
    const agent = await rig.start(keys())
    await rig.clock.runUntil(() => other.of('GET /ping').length >= 2, 'two looks')
    expect(warnings(rig)).toContain('does not answer /ping')
    expect(other.of('POST /metrics')).toEqual([])
    await rig.clock.runUntil(() => other.batches.length >= 2, 'batches at the new collector')
    expect(other.of('GET /ping').length).toBe(3)
    expect(other.of('GET /ping').every(({ headers }) => !headers.has('authorization'))).toBe(true)
    expect(warnings(rig)).toBe('')
    const atHome = home.batches.length
    await agent.stop()
    const before = other.batches.length
    const restarted = await rig.start(keys())
    await rig.clock.runUntil(() => other.batches.length > before, 'a batch after the restart')
    await restarted.stop()
    expect(home.batches.length).toBe(atHome)
    await rig.start({ ...keys(), allow_remote_config: false })
    await rig.clock.runUntil(() => home.batches.length > atHome, 'a batch at home, remote configuration locked')
  }))

test('[AGT-073] an agent that locked remote config does not even ask the other collector', () =>
  withRig(async rig => {
    tell(rig, signed(other.url))
    await rig.start({ ...keys(), allow_remote_config: false })
    await rig.clock.runUntil(() => home.of('GET /config').length >= 2, 'two reads of the config')
    expect(other.seen).toEqual([])
  }))

const stays = (name: string, address: () => string, expected: string, changed: Record<string, unknown> = {}) =>
  test(name, () =>
    withRig(async rig => {
      tell(rig, address())
      await rig.start({ ...keys(), ...changed })
      await rig.clock.runUntil(() => home.of('GET /config').length >= 2, 'two reads of the config')
      await rig.clock.runUntil(() => home.batches.length >= 2, 'batches at home')
      expect(hasMoved(rig)).toBe(false)
      expect(other.seen).toEqual([])
      expect(warnings(rig)).toContain(expected)
      expect(home.batches.at(-1)?.stats?.warnings.join()).toContain(expected)
    }),
  )

stays(
  '[AGT-070] a signed address that is not https is not taken over',
  () => signed(other.url.replace('https:', 'http:')),
  'it is not an https address',
)
stays(
  '[AGT-071] an address with a signature over another one is not taken over',
  () => signed(other.url, SIGNED_AT_MS, 'https://elsewhere.example.com'),
  'its signature does not verify',
)
stays(
  '[AGT-071] an address whose signature is no signature is not taken over',
  () => `${other.url}#ed25519=none`,
  'its signature is not in the form',
)
stays('[AGT-071] without a public key no signature is trusted', () => signed(other.url), 'update.public_key_file', {
  'update.public_key_file': undefined,
})

test('an address without a signature is information only', () =>
  withRig(async rig => {
    tell(rig, other.url)
    await rig.start(keys())
    await rig.clock.runUntil(() => home.of('GET /config').length >= 2, 'two reads of the config')
    expect(other.seen).toEqual([])
    expect(warnings(rig)).toBe('')
  }))

test('a new collector that does not know the agent is not moved to', () =>
  withRig(async rig => {
    tell(rig, signed(other.url))
    other.always('GET /config', () => protocolError(401, 'unauthorized'))
    await rig.start(keys())
    await rig.clock.runUntil(() => warnings(rig).includes('it does not take this agent'), 'a warning')
    expect(other.of('GET /config').length).toBeGreaterThan(0)
    expect(hasMoved(rig)).toBe(false)
  }))

test('an older signed address that is played again moves nothing back', () =>
  withRig(async rig => {
    tell(rig, signed(other.url))
    await rig.start(keys())
    await rig.clock.runUntil(() => other.batches.length >= 1, 'a batch at the new collector')
    tell(rig, signed(home.url, SIGNED_AT_MS - 1), 'two')
    await rig.clock.runUntil(() => warnings(rig).includes('older'), 'a warning')
    expect(hasMoved(rig)).toBe(true)
    tell(rig, signed(home.url, SIGNED_AT_MS + 1), 'three')
    await rig.clock.runUntil(() => rig.status().collector_url === home.url, 'the move back')
  }))

test('an agent that never moved refuses an address that was signed before another that it was told', () =>
  withRig(async rig => {
    // It is at the address that was signed last; the one before, perhaps of somebody else's by now, is played again.
    tell(rig, signed(home.url, SIGNED_AT_MS))
    const agent = await rig.start(keys())
    await rig.clock.runUntil(() => home.of('GET /config').length >= 1 && home.batches.length >= 1, 'the config')
    expect(warnings(rig)).toBe('')
    await agent.stop()
    tell(rig, signed(other.url, SIGNED_AT_MS - 1), 'two')
    // Not even a new enrollment makes it forget.
    rmSync(join(rig.stateDir, 'token'))
    const again = await rig.start(keys())
    await rig.clock.runUntil(() => warnings(rig).includes('older'), 'a warning')
    expect(other.seen).toEqual([])
    await again.stop()
    tell(rig, signed(other.url, SIGNED_AT_MS + 1), 'three')
    await rig.start(keys())
    await rig.clock.runUntil(() => hasMoved(rig), 'the move to the newer one')
  }))

test('of an address that could not be moved to the instant counts too, and it may be tried again itself', () =>
  withRig(async rig => {
    tell(rig, signed(other.url))
    other.always('GET /ping', () => protocolError(503, 'unavailable'))
    await rig.start(keys())
    await rig.clock.runUntil(() => other.of('GET /ping').length >= 1, 'a look')
    tell(rig, signed(rig.peer.url.replace('http:', 'https:'), SIGNED_AT_MS - 1), 'two')
    await rig.clock.runUntil(() => warnings(rig).includes('older'), 'a warning')
    tell(rig, signed(rig.peer.url.replace('http:', 'https:'), SIGNED_AT_MS), 'three')
    await rig.clock.runUntil(
      () => home.of('GET /config').at(-1)?.headers.get('if-none-match') === 'three',
      'a third look',
    )
    expect(warnings(rig)).toContain('older')
    expect(rig.peer.of('GET /ping')).toEqual([])
    other.always('GET /ping', null)
    tell(rig, signed(other.url), 'four')
    await rig.clock.runUntil(() => hasMoved(rig), 'the move')
  }))

test('an operator who configures another collector ends the move', () =>
  withRig(async rig => {
    tell(rig, signed(other.url))
    const agent = await rig.start(keys())
    await rig.clock.runUntil(() => hasMoved(rig), 'the move')
    await agent.stop()
    const before = rig.peer.batches.length
    await rig.start({ ...keys(), collector_url: rig.peer.url })
    await rig.clock.runUntil(() => rig.peer.batches.length > before, 'a batch at the configured collector')
  }))

test('a signed address is read back as it was written', () => {
  const address = { url: 'https://c.example.com:8443/a', signedAtMs: 5, signature: 'x'.repeat(86) }
  expect(parseSignedAddress(formatSignedAddress(address))).toEqual(address)
  expect(parseSignedAddress('https://c.example.com')).toBeNull()
  expect(parseSignedAddress('https://c.example.com#x')).toHaveProperty('fault')
})
