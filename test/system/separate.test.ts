// The executables as an operator runs them: hub, ingest, worker and agent as processes of their own, set up by files
// and by the commands of the hub, as README.md says in "Running it for real".
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../apps/standalone/ports.ts'
import { Executable, type ExecutableName, runCommand } from '../support/executable.ts'
import { newDatabase, stopPostgres } from '../support/postgres.ts'
import { SimulatedAgent } from '../support/simulated-agent.ts'
import type { Json } from '../support/site.ts'
import { pause, until } from '../support/until.ts'

setDefaultTimeout(120_000)
const directory = mkdtempSync(join(tmpdir(), 'svc-separate-'))
const path = (name: string): string => join(directory, name)
const write = (name: string, text: string): string => {
  writeFileSync(path(name), text, { mode: 0o600 })
  return path(name)
}
const config: Record<Exclude<ExecutableName, 'standalone'>, string> = {
  hub: path('hub.yaml'),
  'collector-ingest': path('collector.yaml'),
  'collector-worker': path('collector.yaml'),
  agent: path('agent.yaml'),
  matcher: path('matcher.yaml'),
}
const executable = (name: keyof typeof config, word: readonly string[] = []): Executable =>
  new Executable(name, [...word, '--config', config[name]], path(`${name}.ready`))
const hub = executable('hub', ['serve'])
const ingest = executable('collector-ingest')
const worker = executable('collector-worker')
const agent = executable('agent', ['run'])

let hubUrl = ''
let agentUrl = ''
let adminUrl = ''
let adminToken = ''
let company = ''
let apiToken = ''
let license = ''

/** A command of the hub that must succeed; what it prints with --json. */
async function hubCommand(...words: string[]): Promise<Json> {
  const { code, out, err } = await runCommand('hub', [...words, '--config', config.hub, '--json'])
  if (code !== 0) throw new Error(`hub ${words.join(' ')} ended with ${code}: ${err}`)
  return JSON.parse(out)
}

async function api(method: string, where: string, body?: unknown): Promise<{ status: number; body: Json }> {
  const response = await fetch(`${hubUrl}/api/v1${where}`, {
    method,
    headers: {
      authorization: `Bearer ${apiToken}`,
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? null : JSON.parse(text) }
}

async function data(method: string, where: string, body?: unknown): Promise<Json> {
  const answer = await api(method, where, body)
  if (answer.status >= 300) throw new Error(`${method} ${where}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}

const adminStatus = async (): Promise<Json> => {
  const response = await fetch(`${adminUrl}/internal/v1/status`, { headers: { authorization: `Bearer ${adminToken}` } })
  return ((await response.json()) as Json).data
}

const serverOf = async (name: string): Promise<Json> =>
  (await data('GET', '/servers?include=health')).find((server: Json) => server.name === name)
async function alertsOf(serverId: string): Promise<Json[]> {
  const alerts: Json[] = []
  for (let page = 1; ; page++) {
    const { body } = await api('GET', `/monitoring/alerts?server_id=${serverId}&page=${page}`)
    alerts.push(...body.data)
    if (page >= body.meta.last_page) return alerts
  }
}

async function simulated(name: string): Promise<{ sender: SimulatedAgent; serverId: string }> {
  const { server_id } = await hubCommand('server', 'create', '--company', company, '--name', name, '--hostname', name)
  return { sender: await SimulatedAgent.enroll(agentUrl, license, name), serverId: server_id }
}

/**
 * Ten samples a second, also while nobody takes them: there are more to send until the last process has been restarted.
 */
const pace = (): Promise<void> => pause(100)

const rule = (threshold: number) => ({
  name: 'swap',
  kind: 'threshold',
  scope: { all: true },
  metric: 'swap_used_percent',
  operator: '>',
  threshold,
  for_seconds: 0,
  recover_for_seconds: 0,
  severity: 'warning',
})

beforeAll(async () => {
  const [hubPort, agentPort, adminPort] = [freePort(), freePort(), freePort()]
  hubUrl = `http://127.0.0.1:${hubPort}`
  agentUrl = `http://127.0.0.1:${agentPort}`
  adminUrl = `http://127.0.0.1:${adminPort}`
  write('database.url', `${await newDatabase()}\n`)
  write(
    'hub.yaml',
    `
listen: 127.0.0.1:${hubPort}
database: { url_file: ${path('database.url')} }
ops: { listen: 127.0.0.1:0 }
rate: { default_per_minute: 1000000, collector_per_minute: 1000000, enroll_per_minute: 1000 }
`,
  )
  await hubCommand('migrate')
  company = (await hubCommand('company', 'create', '--name', 'Example Ltd', '--agent-quota', '500')).company_id
  const user = ['--company', company, '--email', 'ops@example.net', '--name', 'Ops', '--admin']
  await hubCommand('user', 'create', ...user)
  apiToken = (await hubCommand('token', 'create', '--user', 'ops@example.net', '--expires-in', '90d')).token
  const urls = ['--admin-url', adminUrl, '--base-url', agentUrl]
  const collector = await hubCommand('service', 'create', '--kind', 'collector', '--name', 'eu-1', ...urls)
  adminToken = collector.admin_token
  write('collector.token', `${collector.token}\n`)
  write('admin.token', `${adminToken}\n`)
  write(
    'collector.yaml',
    `
data_dir: ${path('collector')}
hub: { url: ${hubUrl}, token_file: ${path('collector.token')} }
collector_id: ${collector.collector_id}
ops: { listen: 127.0.0.1:0 }
listen: 127.0.0.1:${agentPort}
admin: { listen: 127.0.0.1:${adminPort}, token_file: ${path('admin.token')} }
heartbeat: { interval: 1s }
ingest: { limits: { metrics_per_minute: 1000000, metrics_burst: 1000000 } }
alerting: { flap_transitions: 0, rules_state_interval: 1s }
`,
  )
  await hubCommand('server', 'create', '--company', company, '--name', 'this', '--hostname', hostname())
  await hub.start()
  const made = await api('POST', '/monitoring/licenses', { name: 'all', max_uses: 500 })
  if (made.status !== 201) throw new Error(JSON.stringify(made))
  license = made.body.token
  write('agent.license', `${license}\n`)
  write(
    'agent.yaml',
    `
collector_url: ${agentUrl}
license_file: ${path('agent.license')}
state_dir: ${path('agent-state')}
interval: 10s
`,
  )
})
afterAll(async () => {
  for (const each of [agent, ingest, worker, hub]) await each.kill()
  await stopPostgres()
  rmSync(directory, { recursive: true, force: true })
})

test('each executable says its version, checks its configuration and names every fault with its key', async () => {
  const bad = write('bad.yaml', 'listen: 127.0.0.1:99999\nnonsense: 1\nlog: { level: loud }\n')
  for (const name of ['hub', 'collector-ingest', 'collector-worker', 'agent'] as const) {
    const [version, good, faulty] = await Promise.all([
      runCommand(name, ['--version']),
      runCommand(name, ['check-config', '--config', config[name]]),
      runCommand(name, ['check-config', '--config', bad]),
    ])
    expect([version.code, version.out.trim()]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+/)])
    expect([name, good.code, good.err]).toEqual([name, 0, ''])
    expect([name, faulty.code]).toEqual([name, 1])
    for (const key of ['nonsense', 'log.level']) expect(faulty.out + faulty.err).toContain(key)
  }
})

test('[OPS-016] [BUS-004] [OPS-017] ingest, worker and agent start from their files, say ready, and this host enrolls', async () => {
  // Whoever starts first waits for nobody.
  const [ingestReady, workerReady] = await Promise.all([ingest.start(), worker.start()])
  expect(ingestReady).toMatchObject({ agent_url: agentUrl, pid: ingest.pid })
  expect(workerReady).toMatchObject({ admin_url: adminUrl, pid: worker.pid })
  const { agent_id } = await agent.start()
  expect(agent_id).toMatch(/^[0-9a-f-]{36}$/)
  for (const each of [ingest, worker, agent, hub]) {
    expect(statSync(path(`${each.name}.ready`)).mode & 0o777).toBe(0o600)
    await until(`${each.name} to say ready`, () => each.output.includes('ready'))
  }
  for (const ready of [ingestReady, workerReady]) {
    expect((await fetch(`${ready.ops_url}/healthz`)).status).toBe(200)
    const answer = await fetch(`${ready.ops_url}/readyz`)
    expect([answer.status, await answer.json()]).toEqual([200, { ready: true, failing: [] }])
  }
  expect((await adminStatus()).role).toBe('worker')
})

test('[PRES-017] metrics of this host arrive, are stored, and its health says online', async () => {
  const { id } = await serverOf('this')
  const health = await until(
    'the server to be online',
    async () => {
      const { body } = await api('GET', `/servers/${id}/health`)
      return body.data.status === 'online' && body.data.metrics.mem_used_percent.length > 0 && body
    },
    60_000,
  )
  expect(health.collector).toEqual({ available: true, reason: null })
  const series = await until(
    'points of mem_used_percent',
    async () => {
      const { body } = await api('GET', `/servers/${id}/health/series?metric=mem_used_percent`)
      return body.data.series?.[0]?.points.length > 0 && body
    },
    60_000,
  )
  expect(series.collector).toEqual({ available: true, reason: null })
})

test('[SYNC-034] [HAL-030] a rule holds at once; its alert is opened, acknowledged and resolved', async () => {
  const { sender, serverId } = await simulated('alerts')
  const made = await data('POST', '/monitoring/rules', rule(50))
  await until('the rule to be loaded', async () => (await adminStatus()).rules.loaded >= 1)
  const startMs = Date.now()
  const send = (value: number, afterMs: number) =>
    sender.send([{ name: 'swap_used_percent', points: [[startMs + afterMs, value]] }])
  await until('the alert', async () => {
    await send(90, Date.now() - startMs)
    return (await alertsOf(serverId)).length > 0
  })
  const [open] = await alertsOf(serverId)
  expect(open).toMatchObject({ state: 'open', type: 'threshold', severity: 'warning' })
  const acknowledged = await data('POST', `/monitoring/alerts/${open.id}/acknowledge`, { comment: 'seen' })
  expect(acknowledged.state).toBe('acknowledged')
  await data('PATCH', `/monitoring/rules/${made.id}`, { threshold: 95 })
  await until('the changed rule to end it', async () => {
    await send(90, Date.now() - startMs)
    return (await alertsOf(serverId))[0].state === 'resolved'
  })
  await data('PATCH', `/monitoring/rules/${made.id}`, { threshold: 50 })
})

test('[REG-014] a revoked agent gets 403 with its next batch', async () => {
  const { sender, serverId } = await simulated('revoked')
  expect((await sender.send([])).status).toBe(200)
  await data('POST', `/monitoring/agents/${sender.agentId}/revoke`, {})
  const refused = await until('the refusal', async () => {
    const answer = await sender.send([])
    return answer.status !== 200 && answer
  })
  expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([403, 'agent_revoked'])
  expect((await data('GET', `/servers/${serverId}`)).id).toBe(serverId)
})

test('[REG-015] [REG-017] the send after the answer of DELETE is refused; a server is known to the admin API with its first batch', async () => {
  const { sender, serverId } = await simulated('deleted')
  expect((await sender.send([])).status).toBe(200)
  const headers = { authorization: `Bearer ${adminToken}` }
  const status = await fetch(`${adminUrl}/internal/v1/servers/${serverId}/status?company_id=${company}`, { headers })
  expect(status.status).toBe(200)
  const deleted = await fetch(`${adminUrl}/internal/v1/agents/${sender.agentId}`, { method: 'DELETE', headers })
  expect(deleted.status).toBe(204)
  expect((await sender.send([])).status).toBe(403)
})

test('[ADM-024] [SYNC-024] [SYNC-032] [SYNC-033] a check made in the hub is in the configuration of the agents at once', async () => {
  const { sender } = await simulated('checked')
  const etagOf = async (): Promise<string | null> => {
    const response = await fetch(`${agentUrl}/agent/v1/config`, {
      headers: {
        authorization: `Bearer ${sender.token}`,
        'x-svc-proto': '1',
        'x-svc-agent-version': '1.0.0',
      },
    })
    return response.status === 200 ? response.headers.get('etag') : null
  }
  const before = await etagOf()
  expect(before).not.toBeNull()
  const check = { name: 'web', type: 'http', target: { url: 'https://example.net/' }, scope: { all: true } }
  await data('POST', '/monitoring/checks', check)
  const ready = JSON.parse(await Bun.file(path('collector-ingest.ready')).text())
  await until('the check in ingest', async () => {
    const text = await (await fetch(`${ready.ops_url}/metrics`)).text()
    return /^svc_checks_loaded 1$/m.test(text)
  })
  expect(await etagOf()).not.toBe(before)
  const { checks } = await until('the check in /status', async () => {
    const status = await adminStatus()
    return status.checks?.loaded === 1 && status
  })
  expect(checks).toMatchObject({ invalid: 0, disabled: 0, truncated: 0, last_sync_error: null })
  expect(checks.since).toBeGreaterThan(0)
  // Every server of the company, since the check is for all.
  expect(checks.servers).toBeGreaterThanOrEqual(2)
})

test('[HAG-013] [COL-086] [REG-009] a renewed token is pushed: a collector that did not ask knows it, also while the hub is away', async () => {
  const [agentPort, adminPort] = [freePort(), freePort()]
  const urls = ['--admin-url', `http://127.0.0.1:${adminPort}`, '--base-url', `http://127.0.0.1:${agentPort}`]
  const made = await hubCommand('service', 'create', '--kind', 'collector', '--name', 'eu-2', ...urls)
  write('second.token', `${made.token}\n`)
  write('second-admin.token', `${made.admin_token}\n`)
  const file = write(
    'second.yaml',
    `
data_dir: ${path('second')}
hub: { url: ${hubUrl}, token_file: ${path('second.token')} }
collector_id: ${made.collector_id}
ops: { listen: 127.0.0.1:0 }
listen: 127.0.0.1:${agentPort}
admin: { listen: 127.0.0.1:${adminPort}, token_file: ${path('second-admin.token')} }
registry: { sync_interval: 1h }
`,
  )
  const second = (['collector-ingest', 'collector-worker'] as const).map(
    name => new Executable(name, ['--config', file], path(`second-${name}.ready`)),
  )
  const { sender } = await simulated('renewed')
  try {
    await Promise.all(second.map(each => each.start()))
    const elsewhere = (token: string) =>
      new SimulatedAgent(`http://127.0.0.1:${agentPort}`, sender.agentId, token).send([]).then(({ status }) => status)
    expect(await elsewhere(sender.token)).toBe(200)
    const { ops_url } = JSON.parse(await Bun.file(path('hub.ready')).text())
    const pushes = async (): Promise<number> => {
      const text = await (await fetch(`${ops_url}/metrics`)).text()
      return Number(/^hub_collector_requests_total\{call="push",result="ok"\} (\d+)$/m.exec(text)?.[1] ?? 0)
    }
    const before = await pushes()
    const renewed = await sender.renew()
    expect(renewed).not.toBe(sender.token)
    await until('the push to both collectors', async () => (await pushes()) >= before + 2)
    expect(await hub.stop()).toBe(0)
    await until('the new token to be known', async () => (await elsewhere(renewed)) === 200)
    expect(await elsewhere(sender.token)).toBe(200)
  } finally {
    for (const each of second) await each.kill()
    if (hub.pid === 0) await hub.start()
  }
})

test('with the collector stopped the health of a server is answered with available=false', async () => {
  expect(await ingest.stop()).toBe(0)
  expect(await worker.stop()).toBe(0)
  for (const each of [ingest, worker]) expect(existsSync(path(`${each.name}.ready`))).toBe(false)
  const { id } = await serverOf('this')
  const health = await api('GET', `/servers/${id}/health`)
  expect([health.status, health.body.collector.available]).toEqual([200, false])
  const series = await api('GET', `/servers/${id}/health/series?metric=mem_used_percent`)
  expect([series.status, series.body.collector.available]).toEqual([200, false])
  expect((await api('GET', '/servers?include=health')).status).toBe(200)
  await Promise.all([ingest.start(), worker.start()])
  await until(
    'the health to be back',
    async () => (await api('GET', `/servers/${id}/health`)).body.collector.available,
    60_000,
  )
})

test('[ING-038] [SNAP-006] [SNAP-007] each process is restarted in turn under load: no acknowledged sample is missing, every alert is told once', async () => {
  const servers = await Promise.all(Array.from({ length: 4 }, (_, index) => simulated(`load-${index}`)))
  const acked = servers.map(() => 0)
  const baseMs = Date.now() - 7_200_000
  let isOver = false
  const pumps = servers.map(async ({ sender }, index) => {
    while (!isOver) {
      const sample = acked[index]!
      try {
        const points: [number, number][] = [[baseMs + sample * 30_000, sample % 4 < 2 ? 90 : sample % 4]]
        if ((await sender.send([{ name: 'swap_used_percent', points }], 300)).status === 200) acked[index] = sample + 1
        else await pace()
      } catch {
        await pace()
      }
      // One sample stands for thirty seconds, and all must lie in the past.
      if (acked[index]! >= 230) return
      await pace()
    }
  })
  const rounds: [Executable, 'stop' | 'kill'][] = [
    [worker, 'stop'],
    [ingest, 'stop'],
    [hub, 'stop'],
    [worker, 'kill'],
    [ingest, 'kill'],
    [hub, 'kill'],
  ]
  for (const [process, how] of rounds) {
    const before = [...acked]
    if (how === 'stop') expect([process.name, await process.stop()]).toEqual([process.name, 0])
    else await process.kill()
    await process.start()
    const goesOn = () => acked.every((count, index) => count >= before[index]! + 4 || count >= 230)
    await until('four more samples of each', goesOn, 30_000)
  }
  isOver = true
  await Promise.all(pumps)
  await until(
    'everything to be evaluated, stored and told',
    async () => {
      const { bus_lag, outbox_depth } = await adminStatus()
      return bus_lag === 0 && outbox_depth === 0
    },
    60_000,
  )
  for (const [index, { serverId }] of servers.entries()) {
    const count = acked[index]!
    expect(count).toBeGreaterThan(20)
    const window = `from=${new Date(baseMs).toISOString()}&to=${new Date(baseMs + count * 30_000).toISOString()}`
    const { body } = await api('GET', `/servers/${serverId}/health/series?metric=swap_used_percent&step=30s&${window}`)
    expect(body.data.series[0].points.map((point: number[]) => point[1])).toEqual(
      Array.from({ length: count }, (_, sample) => (sample % 4 < 2 ? 90 : sample % 4)),
    )
    const alerts = await alertsOf(serverId)
    expect(alerts.length).toBe(Math.ceil(count / 4))
    expect(alerts.filter(alert => alert.state !== 'resolved').length).toBe((count - 1) % 4 < 2 ? 1 : 0)
  }
})

test('the agent ends in order on SIGTERM, and goes on with what it has on the next start, without its licence', async () => {
  expect(await agent.stop()).toBe(0)
  write('agent.yaml', `collector_url: ${agentUrl}\nstate_dir: ${path('agent-state')}\ninterval: 10s\n`)
  const { agent_id } = await agent.start()
  expect(agent_id).toMatch(/^[0-9a-f-]{36}$/)
  expect(await agent.stop()).toBe(0)
})
