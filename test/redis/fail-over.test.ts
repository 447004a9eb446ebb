// Redis as operators run it: by Sentinels that put a replica in the place of a primary, over TLS, with a user of few
// rights. Ingest and worker are processes of their own.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RedisBusWriter } from '../../apps/collector/bus/redis-bus.ts'
import { plainAddress } from '../../apps/collector/store/redis/redis-address.ts'
import { openRedis, whenReady } from '../../apps/collector/store/redis/redis-client.ts'
import { redisKeys, streamOf } from '../../apps/collector/store/redis/redis-keys.ts'
import { durabilityFaults } from '../../apps/collector/store/redis/redis-setup-faults.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { id } from '../ingest/scripted-hub.ts'
import { CertificateMaker } from '../support/certificates.ts'
import { entryOf } from '../support/clickhouse.ts'
import { startTestRedis } from '../support/redis.ts'
import { startTestSentinel, type TestSentinel } from '../support/redis-sentinel.ts'
import { until } from '../support/until.ts'
import { admin, agentFor, agentOf, failing, type Process, Site, serverOf } from './processes.ts'

setDefaultTimeout(120_000)

const company = id('company of a fail-over')
const server = serverOf(company, 'alone')
const UNLIMITED = { 'ingest.limits.metrics_per_minute': '1000000', 'ingest.limits.metrics_burst': '1000000' }

/** A site with one server, one rule on it, one ingest and one worker. */
async function openSite(keys: Readonly<Record<string, string>>, redis: Parameters<typeof Site.start>[1]) {
  const site = await Site.start({ ...UNLIMITED, 'alerting.flap_transitions': '0', ...keys }, redis)
  site.hub.feeds.agents!.push(agentOf(server))
  site.addRule(company)
  const [ingest, worker] = await Promise.all([site.startIngest(), site.startWorker()])
  let sample = 0
  const baseMs = Date.now() - 3_600_000
  const send = async (value: number): Promise<number> => {
    const points = [[baseMs + ++sample * 1000, value]] as const
    return (await agentFor(ingest, server).send([{ name: 'swap_used_percent', points }], 300)).status
  }
  const sendTaken = (value: number) => until('a batch to be taken', async () => (await send(value)) === 200, 60_000)
  const told = (): string[] => {
    const events = new Map(site.hub.taken.map(event => [event.event_id, event]))
    return [...events.values()].filter(event => event.server_id === server.serverId).map(event => String(event.type))
  }
  const toldOf = (types: readonly string[]) =>
    until(`the hub to be told of ${types.at(-1)}`, () => String(told()) === String(types), 60_000)
  return { site, ingest, worker, send, sendTaken, told, toldOf }
}

const metricOf = async (running: Process, name: string): Promise<number> => {
  const text = await (await fetch(`${running.opsUrl}/metrics`)).text()
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1])
}

describe('Sentinel', () => {
  let sentinel: TestSentinel
  let opened: Awaited<ReturnType<typeof openSite>>

  beforeAll(async () => {
    sentinel = await startTestSentinel()
    opened = await openSite({ 'redis.url': sentinel.url }, sentinel.primary)
  })
  afterAll(async () => {
    await opened.site.close()
    await sentinel.close()
  })

  test('[BUS-005, SNAP-005] a replica that lacks the newest writes takes the place of the primary: what is lost is named, no alert is stuck or doubled, agents go on', async () => {
    const { ingest, worker, sendTaken, toldOf } = opened
    await sendTaken(90)
    await toldOf(['alert.opened'])
    await sentinel.cutReplica()
    // The hub hears of these two, and the replica does not.
    await sendTaken(10)
    await toldOf(['alert.opened', 'alert.resolved'])
    await sendTaken(90)
    await toldOf(['alert.opened', 'alert.resolved', 'alert.opened'])
    await sentinel.primary.kill()
    await sentinel.promoted()
    await sendTaken(91)
    await until('the loss to be counted', async () => (await metricOf(ingest, 'svc_bus_lost_batches_total')) === 2)
    expect(ingest.log()).toContain('Redis came back without batches that were acknowledged')
    await until('what the hub knows', async () => (await metricOf(worker, 'svc_recommitted_events_total')) === 2)
    await until('the worker is well', async () => (await failing(worker)).length === 0)
    await sendTaken(10)
    await toldOf(['alert.opened', 'alert.resolved', 'alert.opened', 'alert.resolved'])
  })
})

test('[BUS-005] with redis.wait_replicas a batch that no replica has is not acknowledged', async () => {
  const sentinel = await startTestSentinel()
  const { site, send, sendTaken } = await openSite(
    { 'redis.url': sentinel.url, 'redis.wait_replicas': '1' },
    sentinel.primary,
  )
  try {
    await sendTaken(10)
    await sentinel.cutReplica()
    expect(await send(10)).toBe(503)
    await sentinel.mendReplica()
    await sendTaken(10)
  } finally {
    await site.close()
    await sentinel.close()
  }
})

test('Redis over TLS: the authority and the certificate of the configuration are used, and without them nothing is sent', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'redis-tls-'))
  const maker = new CertificateMaker(folder)
  const ca = maker.make({ subject: '/CN=authority of the test', isAuthority: true })
  const issued = (name: string) => maker.make({ subject: `/CN=${name}`, sans: 'IP:127.0.0.1', issuer: ca })
  const [shown, client] = [issued('redis'), issued('collector')]
  const redis = await startTestRedis({ tls: { ca, server: shown, client } })
  const causes: string[] = []
  const open = (address: Parameters<typeof openRedis>[0]['address']) =>
    openRedis({ address, name: 'test', onTrouble: cause => void causes.push(cause), onRecovered: () => {} })
  const address = { ...plainAddress(redis.url), ca: ca.pem, certificate: client.pem, key: client.key }
  const trusting = open(address)
  await whenReady(trusting)
  expect(await trusting.set('key', 'value')).toBe('OK')
  const stranger = maker.make({ subject: '/CN=another authority', isAuthority: true })
  const distrusting = open({ ...address, ca: stranger.pem })
  await until('the refusal', () => causes.length > 0)
  expect(distrusting.status).not.toBe('ready')
  for (const each of [trusting, distrusting]) each.disconnect()
  await redis.close()
  rmSync(folder, { recursive: true, force: true })
})

/** The lines of the aclfile in the README. */
function aclOfReadme(): readonly string[] {
  const readme = readFileSync(join(import.meta.dir, '../../apps/collector/README.md'), 'utf8')
  return [...readme.matchAll(/^user \w+ (?:on|off) .*$/gm)].map(([line]) => line)
}

test('[BUS-005] with the aclfile of the README what was acknowledged is there when Redis was killed, and without its first line a worker warns', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'redis-acl-'))
  const file = join(folder, 'users.acl')
  const lines = aclOfReadme().map(line => line.replace('PASSWORD', 'secret'))
  expect(lines).toHaveLength(2)
  const login = { username: 'svc', password: 'secret' }
  const keys = redisKeys('svc:')
  const kept: number[] = []
  const faults: string[][] = []
  for (const rights of [lines, ['user default off', lines[1]]]) {
    writeFileSync(file, rights.join('\n'))
    const redis = await startTestRedis({ more: ['--aclfile', file], login })
    const writer = new RedisBusWriter({
      redis: redis.client,
      keys,
      bytesMax: 1024 ** 3,
      ageMaxMs: 3_600_000,
      onError: () => {},
    })
    const batch = entryOf(company, server.serverId, [{ metric: 'cpu_usage_percent', points: [[Date.now(), 1]] }])
    expect(await writer.publish(server.serverId, batch)).toBeNull()
    faults.push(await durabilityFaults(redis.client, keys, false))
    await redis.kill()
    await redis.start()
    kept.push(await redis.client.xlen(keys.stream(streamOf(shardOfServer(server.serverId)))))
    await writer.close()
    await redis.close()
  }
  // The second is for Redis to say: version 7.0 loses it.
  expect(kept[0]).toBe(1)
  expect(faults[0]).toEqual([])
  expect(faults[1]?.[0]).toStartWith('the user default may not SET, INCR, DEL, PEXPIREAT, HSET')
  rmSync(folder, { recursive: true, force: true })
})

test('the user of the README has every right that ingest and worker need', async () => {
  const redis = await startTestRedis()
  const rights = aclOfReadme()[1]!.split(' ').slice(4)
  await redis.client.call('ACL', 'SETUSER', 'svc', 'on', '>secret', ...rights)
  const url = redis.url.replace('redis://', 'redis://svc:secret@')
  const { site, ingest, worker, sendTaken, toldOf } = await openSite({ 'redis.url': url }, redis)
  try {
    await sendTaken(90)
    await toldOf(['alert.opened'])
    await sendTaken(10)
    await toldOf(['alert.opened', 'alert.resolved'])
    for (const feed of ['rules', 'silences', 'checks', 'settings'])
      expect((await admin(worker, 'POST', `/reload/${feed}`)).status).toBe(202)
    expect((await admin(worker, 'GET', '/status')).body.data.agents_online).toBe(1)
    expect((await admin(worker, 'DELETE', `/companies/${company}/data`)).status).toBe(200)
    expect((await admin(worker, 'DELETE', `/agents/${server.agentId}`)).status).toBe(204)
    for (const running of [ingest, worker]) expect(await running.stop()).toBe(0)
    expect(await redis.client.call('ACL', 'LOG')).toEqual([])
    for (const running of [ingest, worker]) expect(running.log()).not.toContain('NOPERM')
  } finally {
    await site.close()
  }
})
