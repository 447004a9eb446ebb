// What a newcomer does, against the real executable: start, list the server, read its CPU, break a rule, see the alert,
// mend it, see it resolved. The server's own agent and two simulated ones report.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { allocatorSetting } from '../../apps/process/allocator-setting.ts'
import { compiledCommand, environmentOf, sourceCommand } from '../support/executable.ts'
import { SimulatedAgent } from '../support/simulated-agent.ts'
import { type Json, type SiteProcess, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'

/** The same walk runs against the sources, and against the compiled executable where it was built. */
const commands: [string, readonly string[]][] = [['from source', sourceCommand('standalone')]]
if (process.env.CHECK_COMPILED === '1') commands.push(['compiled', compiledCommand('standalone')])

for (const [form, command] of commands) {
  let site: SiteProcess
  beforeAll(async () => {
    site = await startSiteProcess({
      config: 'interval: 10s\nrate:\n  default_per_minute: 100000\n',
      command,
      isFirstStart: true,
    })
  }, 90_000)
  afterAll(async () => {
    await site?.stop()
  }, 120_000)

  const list = async (path: string): Promise<Json[]> => {
    const { status, body } = await site.api('GET', path)
    expect(status).toBe(200)
    return body.data
  }

  test(`${form}: the allocator seldom looks for what it can give back, and the site is the process that was started`, () => {
    expect(environmentOf(site.pid)).toContain(`${allocatorSetting.name}=${allocatorSetting.value}`)
    expect(site.facts.pid).toBe(site.pid)
  })

  test(`${form}: agents are answered before snapshots are loaded and the samples store is open`, () => {
    const started = [...site.output().matchAll(/^starting collector: (.*)$/gm)].map(([, part]) => part)
    expect(started).toEqual(['registry, bus', 'agent API', 'evaluation, samples store (ClickHouse), admin API'])
  })

  test(`${form}: the collector is listed with the addresses that it has`, async () => {
    const [collector] = await list('/api/v1/monitoring/collectors')
    expect(collector).toMatchObject({ base_url: site.facts.agent_url, admin_url: site.facts.admin_url })
  })

  test(`${form}: this host is listed, and its CPU of the last ten minutes can be read`, async () => {
    const servers = await until('this host in the list', async () => {
      const found = await list('/api/v1/servers?include=health')
      return found.length > 0 && found
    })
    const server = servers.find(candidate => candidate.hostname === hostname())
    expect(server).toBeDefined()
    const from = new Date(Date.now() - 600_000).toISOString()
    const points = await until(
      'points of cpu_usage_percent',
      async () => {
        const { status, body } = await site.api(
          'GET',
          `/api/v1/servers/${server.id}/health/series?metric=cpu_usage_percent&from=${from}`,
        )
        expect(status).toBe(200)
        return body.data.series?.[0]?.points
      },
      40_000,
    )
    for (const [ts, value] of points) {
      expect(ts).toBeGreaterThan(Date.now() - 700_000)
      expect(value).toBeGreaterThanOrEqual(0)
      expect(value).toBeLessThanOrEqual(100)
    }
    const health = await until('a health that is online', async () => {
      const { status, body } = await site.api('GET', `/api/v1/servers/${server.id}/health`)
      expect(status).toBe(200)
      return body.data.status === 'online' && body
    })
    expect(health.collector.available).toBe(true)
    expect(health.data.summary.memory_percent).toBeGreaterThan(0)
  }, 120_000)

  test(`${form}: [HAL-037, HAL-038] a rule that this host breaks opens an alert within two reporting cycles; mended, it resolves`, async () => {
    const rule = await site.api('POST', '/api/v1/monitoring/rules', {
      name: 'Memory above one percent',
      kind: 'threshold',
      scope: { all: true },
      metric: 'mem_used_percent',
      operator: '>',
      threshold: 1,
      for_seconds: 0,
      severity: 'warning',
    })
    expect(rule.status).toBe(201)
    const ruleId = rule.body.data.id
    const alert = await until(
      'an open alert of the rule',
      async () => (await list('/api/v1/monitoring/alerts?state=open')).find(candidate => candidate.rule?.id === ruleId),
      40_000,
    )
    expect(alert.series_key).toBe('mem_used_percent')
    expect(alert.last_value).toBeGreaterThan(1)
    const edited = await site.api('PATCH', `/api/v1/monitoring/rules/${ruleId}`, { threshold: 100 })
    expect(edited.status).toBe(200)
    await until(
      'the alert to resolve',
      async () => (await list('/api/v1/monitoring/alerts?state=resolved')).find(candidate => candidate.id === alert.id),
      40_000,
    )
  }, 100_000)

  test(`${form}: [ENR-041, EVAL-005, EVAL-011] two servers that enroll are judged each by itself`, async () => {
    for (const name of ['sim-a', 'sim-b']) {
      const created = await site.api('POST', '/api/v1/servers', { name, hostname: name })
      expect(created.status).toBe(201)
    }
    const rule = await site.api('POST', '/api/v1/monitoring/rules', {
      name: 'Swap in use',
      kind: 'threshold',
      scope: { all: true },
      metric: 'swap_used_percent',
      operator: '>=',
      threshold: 50,
      severity: 'critical',
    })
    expect(rule.status).toBe(201)
    const [a, b] = await Promise.all(
      ['sim-a', 'sim-b'].map(name => SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, name)),
    )
    const nowMs = Date.now()
    const send = (agent: SimulatedAgent, tsMs: number, value: number) =>
      agent.send([{ name: 'swap_used_percent', points: [[tsMs, value]] }])
    expect((await send(a!, nowMs - 2000, 80)).ack?.acceptedPoints).toBe(1)
    expect((await send(b!, nowMs - 2000, 20)).ack?.acceptedPoints).toBe(1)
    const alerts = () =>
      list('/api/v1/monitoring/alerts').then(all => all.filter(alert => alert.rule?.id === rule.body.data.id))
    const opened = await until('the alert of sim-a', async () => {
      const found = await alerts()
      return found.length > 0 && found
    })
    expect(opened.map(alert => [alert.server.name, alert.state, alert.last_value])).toEqual([['sim-a', 'open', 80]])
    expect((await send(a!, nowMs - 1000, 10)).status).toBe(200)
    await until('the alert of sim-a to resolve', async () =>
      (await alerts()).every(alert => alert.state === 'resolved'),
    )
    expect(await alerts()).toHaveLength(1)
  }, 120_000)

  test(`${form}: [COL-045] what an agent says of its buffer and its warnings is shown within two reports`, async () => {
    expect((await site.api('POST', '/api/v1/servers', { name: 'sim-c', hostname: 'sim-c' })).status).toBe(201)
    const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, 'sim-c')
    const warnings = ['remote config: interval_seconds 5 is not 10 to 300', '<b>collectors</b>\u0000: disk_include']
    const says = { bufferBytes: 40_000_000n, bufferBatches: 9, warnings }
    expect((await agent.send([], 30, says)).status).toBe(200)
    const shown = await until('what it says', async () => {
      const [found] = await list('/api/v1/monitoring/agents?search=sim-c')
      return found?.last_warning && found
    })
    expect(shown).toMatchObject({ buffer_bytes: 40_000_000, buffer_batches: 9 })
    expect([shown.last_warning, Date.now() - Date.parse(shown.last_warning_at) < 60_000]).toEqual([
      '<b>collectors</b> : disk_include',
      true,
    ])
  }, 60_000)

  test(`${form}: the ready file is private, and the stop is in order`, async () => {
    expect(existsSync(join(site.dataDir, 'secrets.json'))).toBe(true)
    const startedAt = performance.now()
    expect(await site.stop()).toBe(0)
    expect(performance.now() - startedAt).toBeLessThan(15_000)
  }, 120_000)
}
