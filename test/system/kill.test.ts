// kill -9 of the whole site at random moments under load: no acknowledged sample is missing, no alert lost, doubled or
// stuck. The seed is printed; KILLS and SEED change the run, and HACKING.md has the long one.
import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { SimulatedAgent } from '../support/simulated-agent.ts'
import { type Json, newTempDir, type SiteProcess, startSiteProcess } from '../support/site.ts'
import { until } from '../support/until.ts'

const KILLS = Number(process.env.KILLS ?? 8)
const SEED = Number(process.env.SEED ?? Date.now() % 1_000_000)
const AGENTS = 6
/** Samples of a server go two above the threshold, two below, and so on. */
const isAbove = (sample: number): boolean => sample % 4 < 2
/** A value of its own for nearly every sample, so that an average shows one that is missing or doubled. */
const sampleValue = (sample: number): number => (isAbove(sample) ? 60 : 0) + ((sample * 7) % 31)

const CONFIG = `
interval: 10s
rate:
  default_per_minute: 1000000
  collector_per_minute: 1000000
ingest:
  limits:
    metrics_per_minute: 1000000
    metrics_burst: 1000000
alerting:
  flap_transitions: 0
  rules_state_interval: 1s
`

/** mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

type Server = { readonly name: string; token: string; agentId: string; serverId: string; acked: number }

/**
 * Sends sample after sample, each until it is acknowledged, as an agent with a buffer does; ends when the site is gone.
 */
async function pump(site: SiteProcess, server: Server, baseMs: number, isOver: () => boolean): Promise<void> {
  const agent = new SimulatedAgent(site.facts.agent_url, server.agentId, server.token)
  agent.seq = server.acked
  while (!isOver()) {
    const sample = server.acked
    const points: [number, number][] = [[baseMs + sample * 1000, sampleValue(sample)]]
    try {
      const { status } = await agent.send([{ name: 'swap_used_percent', points }], 300)
      if (status === 200) server.acked++
    } catch {
      return
    }
  }
}

async function allPages(site: SiteProcess, path: string): Promise<Json[]> {
  const rows: Json[] = []
  for (let page = 1; ; page++) {
    const { body } = await site.api('GET', `${path}${path.includes('?') ? '&' : '?'}page=${page}`)
    rows.push(...body.data)
    if (page >= body.meta.last_page) return rows
  }
}

const adminJson = async (site: SiteProcess, path: string): Promise<Json> => {
  const response = await fetch(`${site.facts.admin_url}/internal/v1${path}`, {
    headers: { authorization: `Bearer ${site.facts.admin_token}` },
  })
  return (await response.json()) as Json
}

test(`[SNAP-008, ING-038, SYNC-034] a site killed ${KILLS} times under load keeps every acknowledged sample and tells every alert once`, async () => {
  console.log(`seed ${SEED}`)
  const random = randomOf(SEED)
  const dir = newTempDir()
  const dataDir = join(dir, 'data')
  const start = () => startSiteProcess({ dataDir, config: CONFIG, args: ['--no-local-agent'] })
  let site = await start()
  try {
    const servers: Server[] = []
    for (let index = 0; index < AGENTS; index++) {
      const name = `server-${index}`
      const created = await site.api('POST', '/api/v1/servers', { name, hostname: name })
      expect(created.status).toBe(201)
      const { agentId, token } = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, name)
      servers.push({ name, token, agentId, serverId: created.body.data.id, acked: 0 })
    }
    const rule = await site.api('POST', '/api/v1/monitoring/rules', {
      name: 'swap',
      kind: 'threshold',
      scope: { all: true },
      metric: 'swap_used_percent',
      operator: '>',
      threshold: 50,
      severity: 'warning',
    })
    expect(rule.status).toBe(201)
    // 202 from one process means: pulled, and in force in every shard.
    const reload = await fetch(`${site.facts.admin_url}/internal/v1/reload/rules`, {
      method: 'POST',
      headers: { authorization: `Bearer ${site.facts.admin_token}` },
    })
    expect(reload.status).toBe(202)
    const baseMs = Date.now() - 20 * 3_600_000
    for (let kill = 0; kill < KILLS; kill++) {
      let isOver = false
      const pumps = servers.map(server => pump(site, server, baseMs, () => isOver))
      const killAt = performance.now() + 100 + random() * 1400
      await until('the moment to kill', () => performance.now() >= killAt)
      await site.kill()
      isOver = true
      await Promise.all(pumps)
      site = await start()
    }
    // The last sample of each server is below the threshold: every alert that opened must have resolved.
    for (const server of servers) {
      const agent = new SimulatedAgent(site.facts.agent_url, server.agentId, server.token)
      agent.seq = server.acked
      // What was under way at the last kill may be stored without its acknowledgement: it is sent again, as an agent
      // does.
      do {
        const tsMs = baseMs + server.acked * 1000
        const sent = await agent.send([{ name: 'swap_used_percent', points: [[tsMs, sampleValue(server.acked)]] }], 300)
        expect(sent.status).toBe(200)
        server.acked++
      } while (server.acked % 4 !== 0)
    }
    await until('bus and outbox to drain', async () => {
      const { data } = await adminJson(site, '/status')
      return data.bus_lag === 0 && data.outbox_depth === 0
    })
    let samples = 0
    for (const server of servers) {
      samples += server.acked
      await expectSamples(site, server, baseMs)
      await expectAlerts(site, server, rule.body.data.id, baseMs)
    }
    console.log(`${samples} samples acknowledged, ${samples / 4} alerts`)
    expect(samples).toBeGreaterThan(AGENTS * 4)
  } finally {
    await site.kill()
    rmSync(dir, { recursive: true, force: true })
  }
}, 600_000)

/**
 * Every acknowledged sample is stored, once, with its value. Samples are a second apart, a query's step is 30 s:
 * counted in the database's own terms, by sum.
 */
async function expectSamples(site: SiteProcess, server: Server, baseMs: number): Promise<void> {
  const from = new Date(baseMs).toISOString()
  const to = new Date(baseMs + server.acked * 1000).toISOString()
  const query = (agg: string) =>
    adminJson(
      site,
      `/servers/${server.serverId}/series?company_id=${site.facts.company_id}&metric=swap_used_percent&from=${from}&to=${to}&step=30s&agg=${agg}`,
    )
  const average: [number, number][] = (await query('avg')).data.series[0].points
  const expected = new Map<number, number[]>()
  for (let sample = 0; sample < server.acked; sample++) {
    const bucket = Math.floor((baseMs + sample * 1000) / 30_000) * 30_000
    expected.set(bucket, [...(expected.get(bucket) ?? []), sampleValue(sample)])
  }
  expect(average.map(([ts, value]) => [ts, Math.round(value * 1e6) / 1e6])).toEqual(
    [...expected].map(([bucket, values]) => [
      bucket,
      Math.round((values.reduce((sum, value) => sum + value, 0) / values.length) * 1e6) / 1e6,
    ]),
  )
}

/** One alert for every time that the value rose, all resolved, each with its opening and its resolving event. */
async function expectAlerts(site: SiteProcess, server: Server, ruleId: string, baseMs: number): Promise<void> {
  const alerts = (await allPages(site, `/api/v1/monitoring/alerts?server_id=${server.serverId}`)).filter(
    alert => alert.rule?.id === ruleId,
  )
  expect(alerts.filter(alert => alert.state !== 'resolved')).toEqual([])
  const openedAt = alerts.map(alert => (Date.parse(alert.opened_at) - baseMs) / 1000).sort((a, b) => a - b)
  expect(openedAt).toEqual(Array.from({ length: server.acked / 4 }, (_, rise) => rise * 4))
  expect(alerts.filter(alert => alert.event_count !== 2)).toEqual([])
}
