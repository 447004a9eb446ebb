import { afterAll, beforeAll, expect, test } from 'bun:test'
import { fromBinary } from '@bufbuild/protobuf'
import { AgentConfigSchema } from '../../proto/gen/svc/agent/v1/agent_pb.ts'
import { ackOf, agentRecord, companyId, errorOf, type Rig, serverId, someSeries, startRig } from './rig.ts'
import { id, ScriptedHub } from './scripted-hub.ts'

const check = (name: string, changes: Record<string, unknown> = {}) => ({
  id: id(name),
  company_id: companyId,
  sync_version: 1,
  deleted: false,
  enabled: true,
  scope: { all: true, server_ids: [], resolved_server_ids: [] },
  type: 'tcp',
  name,
  target: { target: 'db.example.net:5432' },
  timeout_seconds: 3,
  ...changes,
})

let rig: Rig
beforeAll(async () => {
  rig = await startRig({
    agents: [agentRecord({ interval_seconds: 60 })],
    keys: {
      'ingest.limits.config_per_minute': 1000,
      'ingest.limits.metrics_per_minute': 1000,
      'agents.min_version': '1.0.0',
    },
  })
})
afterAll(() => rig.stop())

const getConfig = async () => {
  const response = await rig.call('/config')
  expect(response.status).toBe(200)
  return { response, config: fromBinary(AgentConfigSchema, await response.bytes()) }
}

test('[CFG-001] [CFG-002] [WIRE-018] the config comes with an ETag, and 304 for who has it', async () => {
  const { response, config } = await getConfig()
  expect(config).toMatchObject({
    intervalSeconds: 60,
    checks: [],
    minAgentVersion: '1.0.0',
    collectorUrl: rig.ingest.url,
    logLevel: '',
  })
  expect(config.collectors).toBeUndefined()
  expect(config.limits).toMatchObject({ maxSeries: 500, maxBatchBytes: 1_048_576n, bufferBytes: 67_108_864n })
  expect(response.headers.get('etag')).toBe(`"${config.etag}"`)
  for (const tag of [`"${config.etag}"`, config.etag, `W/"${config.etag}"`, `"other", "${config.etag}"`]) {
    const same = await rig.call('/config', { headers: { 'if-none-match': tag } })
    expect(same.status).toBe(304)
    expect(await same.text()).toBe('')
  }
  expect((await rig.call('/config', { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
})

test('[CFG-010] [CFG-011] [CFG-012] [SYNC-024] [ING-006] the etag changes with the checks, and every ack tells it', async () => {
  const before = (await getConfig()).config.etag
  expect((await ackOf(await rig.send({ series: someSeries(1) }))).configEtag).toBe(before)
  rig.hub.feeds.checks!.push(check('db'))
  expect(await rig.checks.reload()).toBe('applied')
  const ack = await ackOf(await rig.send({ series: someSeries(1) }))
  expect(ack.configEtag).not.toBe(before)
  const { config } = await getConfig()
  expect(config.etag).toBe(ack.configEtag)
  expect(config.checks).toHaveLength(1)
  expect(config.checks[0]).toMatchObject({
    id: id('db'),
    type: 'tcp',
    target: 'db.example.net:5432',
    timeoutSeconds: 3,
    url: '',
    port: 0,
  })
  expect(await rig.checks.reload()).toBe('applied')
  expect((await getConfig()).config.etag).toBe(config.etag)
})

test('[CFG-005] [CFG-006] [CFG-017] checks of another company or server are not given, whatever the request says', async () => {
  rig.hub.feeds.checks!.push(
    check('foreign', { company_id: id('other company'), sync_version: 2 }),
    check('elsewhere', { scope: { all: false, server_ids: [id('other server')] }, sync_version: 3 }),
  )
  await rig.checks.reload()
  const response = await rig.call(`/config?company_id=${id('other company')}&server_id=${id('other server')}`)
  const config = fromBinary(AgentConfigSchema, await response.bytes())
  expect(config.checks.map(c => c.id)).toEqual([id('db')])
})

test('[SYNC-023] [SYNC-025] a deleted check leaves the config', async () => {
  rig.hub.feeds.checks!.push(check('db', { deleted: true, sync_version: 4 }))
  await rig.checks.reload()
  expect((await getConfig()).config.checks).toEqual([])
})

test('[ADM-024] a check of the feed that is none is counted, named once in the log, and the others hold', async () => {
  const named = () =>
    rig.logLines
      .filter(line => line.msg === 'a check of the hub is not valid and is skipped')
      .map(line => line.check_id)
  const before = rig.checks.counts()
  rig.hub.feeds.checks!.push(check('none', { type: 'nonsense', sync_version: 5 }))
  expect(await rig.checks.reload()).toBe('applied')
  rig.hub.feeds.checks!.push(check('one more', { sync_version: 6 }))
  expect(await rig.checks.reload()).toBe('applied')
  expect(rig.checks.counts()).toMatchObject({ loaded: before.loaded + 1, invalid: 1 })
  expect(named()).toEqual([id('none')])
})

test('[CFG-003] [CFG-013] a hub without a checks feed and without an interval leaves both unset', async () => {
  const hub = new ScriptedHub()
  hub.script = ({ path }) => (path === '/checks' ? hub.error(404, 'not_found') : null)
  const own = await startRig({ hub })
  const config = fromBinary(AgentConfigSchema, await (await own.call('/config')).bytes())
  expect(config).toMatchObject({ intervalSeconds: 0, checks: [], minAgentVersion: '', logLevel: '' })
  // Nothing is wrong with it: a reload answers that everything was read.
  expect(await own.checks.reload()).toBe('applied')
  expect(config.collectors).toBeUndefined()
  expect(config.limits?.maxSeries).toBe(500)
  expect(config.collectorUrl).toBe(own.ingest.url)
  await own.stop()
  expect(hub.to('/servers/attributes')).toEqual([])
  await hub.stop()
})

test('[CFG-035] config calls over 2 a minute answer 429 with Retry-After', async () => {
  const own = await startRig()
  expect((await own.call('/config')).status).toBe(200)
  expect((await own.call('/config')).status).toBe(200)
  const third = await own.call('/config')
  expect(Number(third.headers.get('retry-after'))).toBeGreaterThan(25)
  expect(await errorOf(third)).toBe('429 rate_limited')
  expect(serverId).toBe(own.registry.byAgent(id('agent'))!.serverId)
  await own.stop()
})

test('[MAT-047] [CFG-010] an agent that is to scan is told where, with its code, and the etag tells of it', async () => {
  const plain = await getConfig()
  expect(plain.config.scan).toBeUndefined()
  const held = rig.registry.latestOfServer(companyId, serverId)!
  const scan = { matcherUrl: 'https://matcher.example.net', enrolCode: 'scn_abc' }
  rig.registry.apply([{ ...held, syncVersion: held.syncVersion + 1, scan }])
  const invited = await getConfig()
  expect(invited.config.scan).toMatchObject(scan)
  expect(invited.config.etag).not.toBe(plain.config.etag)
  rig.registry.apply([{ ...held, syncVersion: held.syncVersion + 2 }])
  const again = await getConfig()
  expect([again.config.scan, again.config.etag]).toEqual([undefined, plain.config.etag])
})
