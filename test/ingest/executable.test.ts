import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { busConsumers } from '../../apps/collector/bus/bus.ts'
import { FileBusReader } from '../../apps/collector/bus/file-bus-reader.ts'
import {
  allCollectorKeys,
  collectorPaths,
  ingestKeys,
  loadCollectorConfig,
  workerKeys,
} from '../../apps/collector/config.ts'
import { isRecordFault, parseAgentRecord } from '../../apps/collector/store/registry/agent-record-faults.ts'
import { RegistryStore } from '../../apps/collector/store/registry/file-registry-store.ts'
import { AgentRegistry } from '../../apps/collector/store/registry/registry.ts'
import { checkReadyFile, ReadyFile } from '../../apps/process/executable.ts'
import { sha256Hex } from '../../core/series/hash.ts'
import { commandOf, Executable, type ExecutableName, runCommand } from '../support/executable.ts'
import { until } from '../support/until.ts'
import { firstCertificate } from './certificates.ts'
import { agentId, agentRecord, protoHeaders, token } from './rig.ts'
import { hubToken, id, ScriptedHub } from './scripted-hub.ts'

let directory = ''
let hub: ScriptedHub
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'svc-exe-'))
  hub = new ScriptedHub()
})
afterAll(async () => {
  await hub.stop()
  rmSync(directory, { recursive: true, force: true })
})

function write(name: string, text: string): string {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

const run = (args: string[], environment: Record<string, string> = {}) =>
  Bun.spawn([...commandOf('collector-ingest'), ...args], {
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, ...environment },
  })

const post = (url: string, asToken = token) =>
  fetch(`${url}/agent/v1/metrics`, { method: 'POST', headers: { ...protoHeaders, authorization: `Bearer ${asToken}` } })

test('[OPS-020] a ready file that a killed process left is gone before the next one answers', () => {
  const path = join(directory, 'left.json')
  new ReadyFile(path).write({ pid: 1 })
  expect(existsSync(path)).toBe(true)
  const next = new ReadyFile(path)
  expect(existsSync(path)).toBe(false)
  next.write({ pid: 2 })
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ pid: 2 })
})

test('[OPS-020] a ready file that could not be written refuses the start of every executable, and names its option', async () => {
  const missing = join(directory, 'nowhere')
  const path = join(missing, 'ready.json')
  const said = `--ready-file ${path}: the directory ${missing} is not there\n`
  const dataDir = join(directory, 'not-started')
  const config = write(
    'not-started.yaml',
    `data_dir: ${dataDir}\nadmin: { token: x }\nops: { listen: "127.0.0.1:0" }\n`,
  )
  const agentConfig = write('agent.yaml', `state_dir: ${dataDir}\ncollector_url: http://127.0.0.1:1\n`)
  const starts: [ExecutableName, string[], string][] = [
    ['collector-ingest', ['--config', config], said],
    ['collector-worker', ['--config', config], said],
    ['matcher', ['run', '--config', config], said],
    ['hub', ['serve', '--database-url', 'postgres://127.0.0.1:1/x'], `hub: ${said}`],
    ['agent', ['run', '--config', agentConfig], `cannot start: ${said}`],
    ['standalone', ['--data-dir', dataDir, '--hub-listen', '127.0.0.1:0'], `standalone: ${said}`],
  ]
  for (const [name, words, told] of starts) {
    const { code, err } = await runCommand(name, [...words, '--ready-file', path])
    expect([name, code, err]).toEqual([name, 1, told])
  }
  expect(existsSync(dataDir)).toBe(false)
  // The process makes its data directory itself.
  expect(() => checkReadyFile(path, directory)).not.toThrow()
  expect(() => checkReadyFile(path, join(directory, 'now'))).toThrow('--ready-file')
})

test('[OPS-020] [OPS-016] [BUS-004] [REG-014] [REG-017] the executable starts, says ready, serves, follows the shared registry and stops in order', async () => {
  hub.feeds.agents!.push(agentRecord())
  const tokenFile = write('token', `${hubToken}\n`)
  const dataDir = join(directory, 'data')
  const config = write(
    'ingest.yaml',
    [
      'listen: 127.0.0.1:0',
      'ops: { listen: 127.0.0.1:0 }',
      `data_dir: ${dataDir}`,
      `hub: { url: "${hub.url}", token_file: ${tokenFile} }`,
      `collector_id: ${id('collector')}`,
    ].join('\n'),
  )
  const readyFile = join(directory, 'ready.json')
  const child = run(['--config', config, '--ready-file', readyFile], {
    SVC_INGEST_LIMITS_METRICS_BURST: '100',
    SVC_BUS_MAX_AGE: '1s',
  })
  const text = async () => {
    try {
      return readFileSync(readyFile, 'utf8')
    } catch {
      return ''
    }
  }
  await until('the ready file', async () => (await text()) !== '', 60_000)
  expect(statSync(readyFile).mode & 0o777).toBe(0o600)
  const ready = JSON.parse(await text()) as { agent_url: string; ops_url: string; pid: number }
  expect(ready.pid).toBe(child.pid)
  expect(await (await fetch(`${ready.ops_url}/readyz`)).json()).toEqual({ ready: true, failing: [] })
  expect((await fetch(`${ready.ops_url}/healthz`)).status).toBe(200)
  expect((await post(ready.agent_url)).status).toBe(200)
  const metricsText = await (await fetch(`${ready.ops_url}/metrics`)).text()
  expect(metricsText).toContain('svc_ingest_batches_total 1')
  expect(metricsText).toContain('svc_http_requests_total{endpoint="metrics",code="200"} 1')
  expect(metricsText).toContain('svc_bus_lag 1')
  expect(metricsText).toContain('svc_registry_agents{state="active"} 1')
  expect(metricsText).toContain('svc_build_info{version="')

  // It is not ready while what waits on the bus is too old, for every batch gets 503 then.
  const failing = async () => ((await (await fetch(`${ready.ops_url}/readyz`)).json()) as { failing: string[] }).failing
  await until('a bus at its bound', async () => (await failing()).includes('bus'))
  expect(await failing()).toEqual(['bus'])
  expect((await post(ready.agent_url)).status).toBe(503)
  const reader = new FileBusReader(collectorPaths(dataDir).bus, Object.values(busConsumers))
  for (const consumer of Object.values(busConsumers)) await reader.pass(consumer, 0, await reader.lastPosition())
  await reader.close()
  await until('room on the bus', async () => (await failing()).length === 0)

  // Revocations and pushes of another process on the same data_dir reach ingest by the shared file.
  const store = new RegistryStore(collectorPaths(dataDir).registry)
  const others = new AgentRegistry(store)
  others.revoke(agentId)
  const fresh = { agent_id: id('fresh'), server_id: id('fresh server'), token_hash: sha256Hex('agt_fresh') }
  const record = parseAgentRecord(agentRecord(fresh))
  if (isRecordFault(record)) throw new Error(record.field)
  others.push(record)
  // A push is in force with its answer.
  expect((await post(ready.agent_url, 'agt_fresh')).status).toBe(200)
  // So does the counter of a reload call.
  const pulls = hub.to('/checks').length
  store.raiseReload('checks')
  await until('the pull of checks', () => hub.to('/checks').length > pulls)
  store.close()
  await until('the revocation', async () => (await post(ready.agent_url)).status === 403)

  await until('a heartbeat', () => hub.to('/heartbeat').length > 0)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  expect(await text()).toBe('')
  const output = await new Response(child.stdout).text()
  expect(output).toContain('"msg":"ready"')
  expect(output).not.toContain(hubToken)
  // What was seen is told at the stop.
  expect(hub.to('/agents/seen').length).toBeGreaterThan(0)
}, 120_000)

test('check-config says every fault with its key, and exits 1', async () => {
  const bad = write('bad.yaml', 'nonsense: 1\nlisten: 5\nhub: { url: "ftp://x" }\nregistry: { sync_interval: soon }\n')
  const child = run(['check-config', '--config', bad])
  expect(await child.exited).toBe(1)
  const said = await new Response(child.stderr).text()
  for (const key of ['nonsense', 'listen', 'hub.url', 'registry.sync_interval']) expect(said).toContain(key)
  expect(said).not.toContain('    at ')
  const good = run(['check-config', '--config', write('good.yaml', 'listen: 127.0.0.1:0\n')])
  expect(await good.exited).toBe(0)
})

test('an address that agents cannot use, a proxy that is none and a file that is not there are faults of the configuration', () => {
  const f = (file: Record<string, unknown>) =>
    loadCollectorConfig(allCollectorKeys, file, {}).faults.map(fault => `${fault.key} ${fault.value} ${fault.message}`)
  const missing = join(directory, 'missing.pem')
  expect(f({ collector_url: 'collector.example.net' })).toEqual([
    'collector_url collector.example.net must be an http:// or https:// address',
  ])
  expect(f({ collector_url: 'https://c.example.net#ed25519=short' })[0]).toContain('its signature is not in the form')
  for (const entry of ['proxy.example.net', '10.0.0.0/33', '10.0.0.0/8/8', '::1/129'])
    expect(f({ trusted_proxies: [entry] })).toEqual([
      `trusted_proxies ${entry} is no address and no range such as 10.0.0.0/8`,
    ])
  expect(f({ 'tls.cert_file': missing, 'tls.key_file': import.meta.path })).toEqual([
    `tls.cert_file ${missing} cannot be read (ENOENT)`,
  ])
  const good = { collector_url: 'https://c.example.net:8443', trusted_proxies: ['10.0.0.1', 'fd00::/8'] }
  expect(f(good)).toEqual([])
})

test('what an ingest process cannot start with fails its check: files of the update that are not there, a token that is empty', async () => {
  const missing = join(directory, 'no-manifest.json')
  const config = write(
    'no-start.yaml',
    `update: { manifest_file: ${missing}, public_key_file: ${missing} }\nhub: { url: "http://127.0.0.1:1", token: "" }\n`,
  )
  for (const words of [['check-config'], []]) {
    const child = run([...words, '--config', config])
    const said = await new Response(child.stderr).text()
    expect([await child.exited, said]).toEqual([
      1,
      [
        'hub.token is needed with hub.url\n',
        `update.manifest_file = ${missing} cannot be read (ENOENT)\n`,
        `update.public_key_file = ${missing} cannot be read (ENOENT)\n`,
      ].join(''),
    ])
  }
})

test('[WIRE-049] SIGHUP takes a new token of the hub; faults of other keys are told, and hold up no emergency stop', async () => {
  const tokenFile = write('changing-token', 'an-old-token\n')
  const text = `listen: 127.0.0.1:0\ndata_dir: ${join(directory, 'changing')}\nhub: { url: "${hub.url}", token_file: ${tokenFile} }\n`
  const config = write('changing.yaml', text)
  const ingest = new Executable('collector-ingest', ['--config', config], join(directory, 'changing.json'))
  const isShown = (shown: string) => hub.requests.some(one => one.headers.get('authorization') === `Bearer ${shown}`)
  const hangUp = async (...words: string[]) => {
    const from = ingest.output.length
    process.kill(ingest.pid, 'SIGHUP')
    for (const word of words) await until(word, () => ingest.output.slice(from).includes(word))
  }
  await ingest.start()
  try {
    await until('the old token', () => isShown('an-old-token'))
    write('changing-token', 'a-new-token\n')
    await hangUp('token of the hub is read again')
    await until('the new token', () => isShown('a-new-token'))
    write('changing.yaml', `${text}tls: { cert_file: ${config}, key_file: ${config} }\nupdate: { stop: true }\n`)
    await hangUp('update manifest is read again', 'cannot reload the token of the hub', 'tls.cert_file')
  } finally {
    expect(await ingest.stop()).toBe(0)
  }
})

test('a collector_id that the hub cannot have given is a fault of the configuration', () => {
  const f = (collectorId: string) => loadCollectorConfig(allCollectorKeys, { collector_id: collectorId }, {}).faults
  for (const value of ['', 'eu-1', '317732c8-13aa-42d8-a4c3', '317732C8-13AA-42D8-A4C3-3D79EBBECD65'])
    expect(f(value)).toEqual([
      { key: 'collector_id', value, message: 'must be the id that the hub gave this collector, a UUID in lower case' },
    ])
  expect(f(id('collector'))).toEqual([])
})

test('plain HTTP beyond this host is a fault of the configuration, served or called', () => {
  const f = (file: Record<string, unknown>) =>
    loadCollectorConfig(allCollectorKeys, file, {}).faults.map(fault => fault.key)
  const open = {
    listen: '0.0.0.0:1',
    'admin.listen': '10.0.0.1:1',
    'ops.listen': '[::]:1',
    'hub.url': 'http://hub.example.net',
    'hub.token': 'x',
  }
  expect(f(open)).toEqual(['listen', 'admin.listen', 'ops.listen', 'hub.url'])
  expect(f({ ...open, 'listen.insecure': true })).toEqual([])
  const files = {
    'tls.cert_file': write('first.crt', firstCertificate.cert),
    'tls.key_file': write('first.key', firstCertificate.key),
  }
  expect(f({ listen: '0.0.0.0:1', ...files })).toEqual([])
  expect(
    f({ listen: '[::1]:1', 'hub.url': 'http://127.0.0.1:1', 'hub.token': 'x', 'agents.min_version': '1' }),
  ).toEqual(['agents.min_version'])
})

test('a start with a fault in the configuration is refused', async () => {
  const child = run(['--config', write('faulty.yaml', 'ingest: { limits: { max_points: -1 } }\n')])
  expect(await child.exited).toBe(1)
  expect(await new Response(child.stderr).text()).toContain('ingest.limits.max_points = -1 must be')
})

test('a port that another process has is refused in words, also where that one would share it', async () => {
  const holder = Bun.serve({ hostname: '127.0.0.1', port: 0, reusePort: true, fetch: () => new Response() })
  const address = `127.0.0.1:${holder.port}`
  const child = run(['--config', write('taken.yaml', `listen: ${address}\ndata_dir: ${join(directory, 'taken')}\n`)])
  expect(await child.exited).toBe(1)
  expect(await new Response(child.stderr).text()).toContain(`cannot serve on ${address}: another process has the port`)
  await holder.stop(true)
})

test('an address that this host does not have is refused in one line, however many threads were to listen', async () => {
  const address = '203.0.113.9:8081'
  const config = write(
    'no-address.yaml',
    `listen: ${address}\nlisten.insecure: true\ningest.threads: 4\ndata_dir: ${join(directory, 'no-address')}\n`,
  )
  const child = run(['--config', config])
  expect(await child.exited).toBe(1)
  expect(await new Response(child.stderr).text()).toBe(
    `listen: cannot serve on ${address}: this host has no such address\n`,
  )
})

const defaults = (keys: typeof ingestKeys | typeof workerKeys) => loadCollectorConfig(keys, undefined, {}).config

test('[OPS-006] [OPS-007] [OPS-008] [OPS-010] [OPS-012] [OPS-013] [OPS-014] [OPS-015] [ING-024] the defaults are those of the contract', () => {
  const { config: worker } = loadCollectorConfig(workerKeys, undefined, {})
  const { config: ingest } = loadCollectorConfig(ingestKeys, undefined, {})
  expect(worker['alerting.no_data_after']).toBe(300_000)
  expect(worker['alerting.flap_window']).toBe(1_800_000)
  expect(worker['alerting.flap_transitions']).toBe(4)
  expect(worker['alerting.flap_stable']).toBe(1_800_000)
  expect(worker['alerting.group_down.enabled']).toBe(true)
  expect(worker['alerting.rules_state_interval']).toBe(30_000)
  expect(worker['alerting.rules_sync_interval']).toBe(60_000)
  expect(worker['alerting.silences_sync_interval']).toBe(60_000)
  expect(ingest['redis.cache_ttl']).toBe(15_000)
  expect(ingest['ingest.limits.max_series_per_company']).toBe(0)
  expect(ingest['debug.accept_json']).toBe(false)
  expect(defaults(ingestKeys).collector_id).toBeNull()
})

test('[OPS-009] [OPS-011] overrides of a company and the snapshot directory are read, and checked', () => {
  const file = (ratio: number) => ({
    alerting: { rules_dir: '/var/lib/svc/rules', group_down: { companies: { [id('company')]: { min: 3, ratio } } } },
  })
  const { config, faults } = loadCollectorConfig(workerKeys, file(0.5), {})
  expect(faults).toEqual([])
  expect(config['alerting.rules_dir']).toBe('/var/lib/svc/rules')
  expect(config['alerting.group_down.companies']).toEqual({ [id('company')]: { min: 3, ratio: 0.5 } })
  for (const ratio of [0, 2])
    expect(loadCollectorConfig(workerKeys, file(ratio), {}).faults.map(fault => fault.key)).toEqual([
      `alerting.group_down.companies.${id('company')}.ratio`,
    ])
  const other = { 'alerting.group_down': { ratio: 0, companies: { acme: { min: 3 } } } }
  expect(loadCollectorConfig(workerKeys, other, {}).faults.map(fault => fault.key)).toEqual([
    'alerting.group_down.companies.acme',
    'alerting.group_down.ratio',
  ])
})

test('[OPS-016] a samples store that cannot be one is a fault of the configuration, its password not repeated', () => {
  const f = (clickhouse: object) => loadCollectorConfig(workerKeys, { clickhouse }, {}).faults
  for (const url of ['mysql://u:s3cret@h', 'embedded:', 'h:8123', ''])
    expect(f({ url })).toEqual([
      { key: 'clickhouse.url', value: '', message: 'must be http(s)://host:port, or embedded:DIR' },
    ])
  for (const url of ['http://u:s3cret@h:8123', 'https://h', 'embedded:/var/lib/svc', null])
    expect(f({ url })).toEqual([])
  expect(f({ database: 'svc; drop' }).map(fault => fault.key)).toEqual(['clickhouse.database'])
  for (const [url, cluster] of [
    ['http://h', "a' b"],
    ['embedded:/x', 'main'],
    [null, 'main'],
  ])
    expect(f({ url, cluster }).map(fault => fault.key)).toEqual(['clickhouse.cluster'])
  expect(f({ url: 'http://h', cluster: 'main-1' })).toEqual([])
})

test('[SYNC-041] the period of seen reports cannot reach a third of the online threshold', () => {
  expect(loadCollectorConfig(ingestKeys, undefined, {}).config['seen.interval']).toBeLessThan(100_000)
  expect(loadCollectorConfig(ingestKeys, { seen: { interval: '101s' } }, {}).faults.map(fault => fault.key)).toEqual([
    'seen.interval',
  ])
})

test('listen can be written nested beside listen.insecure', () => {
  const { config, faults } = loadCollectorConfig(
    ingestKeys,
    { listen: { address: '0.0.0.0:8081', insecure: true } },
    {},
  )
  expect(faults).toEqual([])
  expect(config.listen).toBe('0.0.0.0:8081')
  expect(config['listen.insecure']).toBe(true)
})
