// The hub on a database of some size, over HTTP, as a process of its own on embedded PostgreSQL: 10,000 servers, 1,000
// rules, 100,000 alerts and a million alert events in one company, 90,000 servers in others. Usage: bun bench/hub.ts
// [--data DIR] [--only memory,events,lists,sync,tags] [--paths TEXT,TEXT] [--hub CHECKOUT]. With --data the seeded
// database is kept in DIR and used again; with --paths only lists whose path has a TEXT are asked for. Prints a line
// for every list on standard error, and one JSON line.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { startPostgres } from '../apps/standalone/postgres.ts'
import { atPace, caller, cpuSeconds, quantile, residentMb, untilCalm } from './hub-load.ts'
import { type HubProcess, startHubProcess } from './hub-process.ts'
import { benchTag, type Seeded, seededId, seedHub, sizes } from './hub-seed.ts'

const { values: options } = parseArgs({
  options: {
    data: { type: 'string' },
    only: { type: 'string' },
    paths: { type: 'string', default: '' },
    // The checkout whose hub is measured, when that is not this one: both versions of a pair are then called alike.
    hub: { type: 'string', default: join(import.meta.dir, '..') },
  },
})
const parts = new Set(options.only?.split(',') ?? ['memory', 'events', 'lists', 'sync', 'tags'])
const dir = options.data ? resolve(options.data) : mkdtempSync(join(tmpdir(), 'bench-hub-'))
mkdirSync(dir, { recursive: true })
const TEMPLATE = 'hub_seeded'
const RUN = 'hub_run'
const EVENTS_AT_ONCE = 200
const BATCHES = 30
const PER_SECOND = 50
const REQUESTS = 150

const server = await startPostgres(join(dir, 'postgres'), 'bench', join(dir, 'postgres.log'))
const databaseUrl = (name: string): string => server.url.replace(/[^/]+$/, name)
const admin = postgres(server.url, { max: 1, onnotice: () => {} })

async function seeded(): Promise<Seeded> {
  const known = join(dir, 'seeded.json')
  if (existsSync(known)) return Bun.file(known).json()
  const startedMs = performance.now()
  await admin.unsafe(`drop database if exists ${TEMPLATE}`)
  await admin.unsafe(`create database ${TEMPLATE}`)
  const made = await seedHub(databaseUrl(TEMPLATE))
  await Bun.write(known, JSON.stringify(made))
  console.error(`seeded in ${Math.round((performance.now() - startedMs) / 1000)} s`)
  return made
}

const readyFile = join(dir, 'hub-ready.json')

/** Starts a hub on a database. Its start, with its migrations and its first tasks, is over when this returns. */
async function startHub(name: string): Promise<HubProcess> {
  const env = { SVC_RATE_COLLECTOR_PER_MINUTE: '1000000' }
  const started = await startHubProcess({ databaseUrl: databaseUrl(name), readyFile, env, checkout: options.hub })
  await untilCalm(databaseUrl(name))
  return started
}

/** What the hub has to migrate it migrates once, and not in every copy just before something is measured. */
async function bringTemplateUpToDate(): Promise<void> {
  const first = await startHub(TEMPLATE)
  await first.stop()
  const sql = postgres(databaseUrl(TEMPLATE), { max: 1, onnotice: () => {} })
  await sql.unsafe('vacuum analyze')
  await sql.end()
}

const facts = await seeded()
await admin.unsafe(`drop database if exists ${RUN}`)
await bringTemplateUpToDate()
await admin.unsafe(`create database ${RUN} template ${TEMPLATE} strategy file_copy`)
await admin.unsafe('checkpoint')
const hub = await startHub(RUN)
const hubUrl = hub.url
const call = caller(hubUrl, facts.token)
const collect = caller(hubUrl, facts.collectorToken)
const postgresPid = Number((await Bun.file(join(dir, 'postgres', 'postmaster.pid')).text()).split('\n')[0])

/** Runs `work`. Returns how long it took, and the CPU seconds of hub and database. */
async function measured<T>(
  work: () => Promise<T>,
): Promise<{ result: T; seconds: number; cpuHub: number; cpuDb: number }> {
  const [hubBefore, dbBefore, startedMs] = [cpuSeconds(hub.pid), cpuSeconds(postgresPid), performance.now()]
  const result = await work()
  const round = (value: number) => Math.round(value * 100) / 100
  return {
    result,
    seconds: round((performance.now() - startedMs) / 1000),
    cpuHub: round(cpuSeconds(hub.pid) - hubBefore),
    cpuDb: round(cpuSeconds(postgresPid) - dbBefore),
  }
}

/** A batch that opens 200 alerts, and one that resolves them. */
function batchOf(poster: number, batch: number) {
  const isOpening = batch % 2 === 0
  return {
    events: Array.from({ length: EVENTS_AT_ONCE }, (_, index) => {
      const serverNumber = 1 + (((poster * BATCHES + batch - (batch % 2)) * EVENTS_AT_ONCE + index) % sizes.servers)
      return {
        event_id: crypto.randomUUID(),
        type: isOpening ? 'alert.opened' : 'alert.resolved',
        seq: 100 + batch,
        occurred_at: new Date().toISOString(),
        company_id: facts.companyId,
        server_id: seededId('server', serverNumber),
        rule_id: seededId('rule', 1 + (index % sizes.rules)),
        rule_version: 1,
        series_key: `cpu_usage_percent{poster="${poster}"}`,
        severity: 'warning',
        value: 91.5,
        threshold: 90,
        suppressed: false,
        suppress_reason: null,
        group_key: null,
        labels: {},
        ...(isOpening ? {} : { reason: 'recovered', duration_seconds: 60, peak_value: 97 }),
      }
    }),
  }
}

async function events() {
  // Made before: the hashes of their ids would take the processor from what is measured.
  const batches = [0, 1].map(poster => Array.from({ length: BATCHES }, (_, batch) => batchOf(poster, batch)))
  const post = async (ofPoster: readonly unknown[]) => {
    for (const batch of ofPoster) await collect('POST', '/monitoring/collector/events', batch)
  }
  const { seconds, cpuHub, cpuDb } = await measured(() => Promise.all(batches.map(post)))
  const count = 2 * BATCHES * EVENTS_AT_ONCE
  const stored = await caller(hubUrl, facts.token)('GET', '/monitoring/alerts/stats')
  if (JSON.stringify(stored).length === 0) throw new Error('no alerts')
  return { events_per_second: Math.round(count / seconds), events_cpu_hub: cpuHub, events_cpu_db: cpuDb }
}

const alert = seededId('alert', 1)
const seenServer = seededId('server', 7)
const deep = (path: string, page: number) => `${path}${path.includes('?') ? '&' : '?'}page=${page}`
/** Every list, with the page to compare the first with: 1,000, or the last one. */
const lists: readonly (readonly [path: string, deepPage: number | null])[] = [
  ['/servers', 660],
  ['/servers?include=health', 660],
  ['/servers?search=server%20001', null],
  ['/servers?search=host-77', null],
  ['/servers?environment=production&role=web', 50],
  ['/servers?status=active', 660],
  ['/servers/trashed', null],
  [`/servers/${seenServer}`, null],
  [`/servers/${seenServer}/health`, null],
  [`/servers/${seenServer}/agents`, null],
  [`/servers/${seenServer}/alerts`, null],
  [`/servers/${seenServer}/checks`, null],
  ['/monitoring/agents', 660],
  ['/monitoring/agents?online=1', 200],
  ['/monitoring/agents?search=host-77', null],
  ['/monitoring/alerts', 1000],
  ['/monitoring/alerts?state=active', 130],
  ['/monitoring/alerts?state=resolved', 1000],
  ['/monitoring/alerts?severity=critical', 1000],
  ['/monitoring/alerts?state=resolved&severity=critical', 1000],
  [`/monitoring/alerts?server_id=${seenServer}`, null],
  ['/monitoring/alerts?opened_from=2020-01-01T00:00:00Z', 1000],
  ['/monitoring/alerts/stats', null],
  [`/monitoring/alerts/${alert}/events`, 1000],
  [`/monitoring/alerts/${alert}/children`, null],
  ['/monitoring/overview', null],
  ['/monitoring/overview/timeline', null],
  ['/monitoring/rules', 66],
  ['/monitoring/rules?search=rule%207', null],
  [`/monitoring/rules/${seededId('rule', 1000)}/servers`, 6],
  ['/monitoring/silences', 66],
  ['/monitoring/silences?status=expired', 66],
  ['/monitoring/checks', 66],
  [`/monitoring/checks?server_id=${seenServer}`, null],
  ['/monitoring/licenses', 66],
  ['/monitoring/licenses?status=active', 66],
  ['/monitoring/collectors', null],
  ['/monitoring/settings', null],
  ['/audit-log', 1000],
  ['/audit-log?action=server.update', 1000],
  ['/audit-log?action=company.create', null],
  [`/audit-log?actor=${facts.userId}`, 1000],
  ['/audit-log?subject=server', 1000],
  [`/audit-log?subject=${seenServer}`, null],
  ['/audit-log?from=2020-01-01T00:00:00Z', 1000],
  [`/audit-log?action=server.update&from=${new Date(Date.now() - 12 * 3_600_000).toISOString()}`, 1000],
  [`/audit-log/subjects/server/${seenServer}`, null],
  ['/me', null],
  ['/me/activity', 1000],
  ['/me/companies', null],
  ['/users', 66],
  ['/users?search=person-77', null],
  ['/roles', null],
  ['/companies', null],
  ['/teams', null],
  ['/webhooks', null],
  ['/notifications', 1000],
  ['/notifications?unread=1', null],
  ['/notifications/unread-count', null],
  ['/notifications/channels', null],
  ['/notifications/deliveries', 1000],
  ['/notifications/deliveries?state=delivered', 1000],
]

async function listFigures() {
  const figures: { path: string; p95: number; deepP95: number | null; cpuMs: number; deepCpuMs: number | null }[] = []
  const one = async (path: string) => {
    for (let warm = 0; warm < 5; warm++) await call('GET', path)
    const { result, cpuHub, cpuDb } = await measured(() => atPace(call, [path], PER_SECOND, sent => sent >= REQUESTS))
    return {
      p50: quantile(result, 0.5),
      p95: quantile(result, 0.95),
      cpuMs: Math.round(((cpuHub + cpuDb) * 10_000) / REQUESTS) / 10,
    }
  }
  for (const [path, deepPage] of lists.filter(([path]) => options.paths.split(',').some(text => path.includes(text)))) {
    const first = await one(path)
    const last = deepPage === null ? null : await one(deep(path, deepPage))
    figures.push({
      path,
      p95: first.p95,
      deepP95: last?.p95 ?? null,
      cpuMs: first.cpuMs,
      deepCpuMs: last?.cpuMs ?? null,
    })
    const tail = last ? `   page ${deepPage}: p50 ${last.p50} p95 ${last.p95} ms, ${last.cpuMs} ms CPU` : ''
    console.error(
      `${path.replace(/[0-9a-f-]{36}/g, 'ID').padEnd(58)} p50 ${first.p50} p95 ${first.p95} ms, ${first.cpuMs} ms CPU${tail}`,
    )
  }
  const worst = [...figures].sort((a, b) => Math.max(b.p95, b.deepP95 ?? 0) - Math.max(a.p95, a.deepP95 ?? 0))[0]
  const median = figures.map(figure => figure.p95).sort((a, b) => a - b)
  const growth = figures.map(({ cpuMs, deepCpuMs }) => (deepCpuMs === null ? 0 : deepCpuMs / Math.max(cpuMs, 0.1)))
  return {
    lists: figures.length,
    list_p95_ms_median: quantile(median, 0.5),
    list_p95_ms_worst: Math.max(worst?.p95 ?? 0, worst?.deepP95 ?? 0),
    list_worst: worst?.path.replace(/[0-9a-f-]{36}/g, 'ID'),
    deep_page_cpu_growth_worst: Math.round(Math.max(...growth) * 10) / 10,
    health_list_p95_ms: figures.find(({ path }) => path.includes('health'))?.p95,
  }
}

async function sync() {
  const pull = async () => {
    let count = 0
    for (let since = 0; ; ) {
      const page = (await collect('GET', `/monitoring/collector/agents?since=${since}&limit=1000`)) as {
        data: { agents: unknown[]; next_since: number; more: boolean }
      }
      count += page.data.agents.length
      since = page.data.next_since
      if (!page.data.more) return count
    }
  }
  const { result, seconds, cpuHub, cpuDb } = await measured(pull)
  return { synced_agents: result, sync_seconds: seconds, sync_cpu_hub: cpuHub, sync_cpu_db: cpuDb }
}

/** Gives a tag to every server, which 100 rules have as their scope, while others read. */
async function tags() {
  const readers = ['/servers', '/monitoring/alerts', '/monitoring/rules', `/servers/${seenServer}`]
  const quiet = await atPace(call, readers, PER_SECOND, sent => sent >= REQUESTS)
  let isDone = false
  const reading = atPace(call, readers, PER_SECOND, () => isDone)
  const ids = Array.from({ length: sizes.servers }, (_, index) => seededId('server', index + 1))
  const atOnce = Number(process.env.BENCH_TAGS_AT_ONCE ?? sizes.servers)
  const { seconds, cpuHub, cpuDb } = await measured(async () => {
    for (let at = 0; at < ids.length; at += atOnce)
      await call('POST', '/servers/bulk/tags', { server_ids: ids.slice(at, at + atOnce), add: [benchTag] })
  })
  isDone = true
  const during = await reading
  return {
    tag_change_seconds: seconds,
    tag_cpu_hub: cpuHub,
    tag_cpu_db: cpuDb,
    reader_p99_ms_quiet: quantile(quiet, 0.99),
    reader_p99_ms_during: quantile(during, 0.99),
  }
}

try {
  const rest = residentMb(hub.pid)
  const figures = {
    ...(parts.has('sync') ? await sync() : {}),
    ...(parts.has('lists') ? await listFigures() : {}),
    ...(parts.has('events') ? await events() : {}),
    ...(parts.has('tags') ? await tags() : {}),
  }
  if (parts.has('memory')) await Bun.sleep(10_000)
  console.log(
    JSON.stringify({ bench: 'hub', memory_mb_at_rest: rest, memory_mb_after: residentMb(hub.pid), ...figures }),
  )
} finally {
  await hub.stop()
  await admin.unsafe(`drop database if exists ${RUN}`)
  await admin.end()
  await server.stop()
  if (!options.data) rmSync(dir, { recursive: true, force: true })
}
