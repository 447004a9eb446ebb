// Resources on a hub of 1,000 companies, as a process of its own on embedded PostgreSQL. Usage: bun bench/resources.ts
// [--data DIR] [--only lists,allocate,addresses,graph,search,export,plan] [--seed] [--paths TEXT,TEXT]. With --data the
// seeded database is kept in DIR, and what is measured is a copy of it; --seed makes the rows of those parts and
// measures nothing. Prints one JSON line: wall-clock times in ms, beside the CPU seconds of hub and database.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { stringify } from 'yaml'
import { loadHubConfig } from '../apps/hub/config.ts'
import { createHub, openHubDatabase } from '../apps/hub/hub.ts'
import { createLogger } from '../apps/hub/platform/telemetry.ts'
import { startPostgres } from '../apps/standalone/postgres.ts'
import { caller, cpuSeconds, quantile, residentMb } from './hub-load.ts'
import { startHubProcess } from './hub-process.ts'
import { type Seeded, seedCompany } from './hub-seed.ts'
import { listPaths, seedLists } from './resources-lists.ts'

const { values: options } = parseArgs({
  options: {
    data: { type: 'string' },
    only: { type: 'string', default: 'lists,allocate,addresses,graph,search,export,plan' },
    seed: { type: 'boolean', default: false },
    paths: { type: 'string', default: '' },
  },
})
const parts = options.only.split(',')
const dir = options.data ? resolve(options.data) : mkdtempSync(join(tmpdir(), 'bench-resources-'))
mkdirSync(dir, { recursive: true })
const COMPANIES = 1_000
const DOCUMENTS = 1_000_000
const ROUNDS = 20
/** The company whose half full /12 is measured, and the addresses in it. */
const LARGE = 'Other 7'
const ALLOCATING = 'Other 8'
const ADDRESSES = 499_000

const server = await startPostgres(join(dir, 'postgres'), 'bench', join(dir, 'postgres.log'))
const databaseUrl = (name: string): string => server.url.replace(/[^/]+$/, name)
/** Seeded once, and what each run is a copy of. */
const [TEMPLATE, RUN] = ['bench_template', 'bench_run']
const admin = postgres(server.url, { max: 1, onnotice: () => {} })
const seededFile = join(dir, 'seeded-resources.json')
type Kept = { readonly facts: Seeded; readonly parts: readonly string[] }

async function openTemplate(): Promise<Kept> {
  if (existsSync(seededFile)) return JSON.parse(readFileSync(seededFile, 'utf8'))
  await admin.unsafe(`drop database if exists ${TEMPLATE}`)
  await admin.unsafe(`create database ${TEMPLATE}`)
  const facts = await seedCompany(databaseUrl(TEMPLATE))
  const sql = postgres(databaseUrl(TEMPLATE), { max: 1, onnotice: () => {} })
  await sql`insert into companies (id, name, slug) select gen_random_uuid(), 'Other ' || i, 'other-' || i
    from generate_series(1, ${COMPANIES}::int) i`
  await sql`insert into monitoring_settings (company_id) select id from companies on conflict do nothing`
  await sql.end()
  return { facts, parts: [] }
}

/** Rows that `insert` makes, put into the indexes of their table all at once: a tenth of the time of one by one. */
async function withIndexesLast(sql: postgres.Sql, table: string, insert: () => Promise<unknown>) {
  const indexes = await sql<{ name: string; definition: string }[]>`
    select indexname as name, indexdef as definition from pg_indexes
    where tablename = ${table} and indexname not in (select conname from pg_constraint)`
  for (const { name } of indexes) await sql`drop index ${sql(name)}`
  await insert()
  await sql`set maintenance_work_mem = '1GB'`
  for (const { definition } of indexes) await sql.unsafe(definition)
}

/** Documents of which half are of the company, the others of its neighbours. */
const seedDocuments = async (sql: postgres.Sql, { companyId }: Seeded) => {
  await withIndexesLast(
    sql,
    'search_documents',
    () => sql`
      insert into search_documents (company_id, kind, resource_id, name, subtitle, text, exact)
      select case when i % 2 = 0 then ${companyId}::uuid else c.id end,
        (array['server', 'ip_address', 'subnet'])[1 + i % 3], gen_random_uuid(), 'server web-' || i,
        null, 'server web-' || i || ' rack ' || md5(i::text), array['10.' || i / 65536 || '.' || i / 256 % 256 || '.' || i % 256]
      from generate_series(1, ${DOCUMENTS}::int) i join companies c on c.name = 'Other ' || 1 + i % ${COMPANIES}::int`,
  )
  await sql.unsafe('vacuum analyze search_documents')
}

/** As many events as an export may have rows, of a thousand alerts. */
const seedEvents = async (sql: postgres.Sql, { companyId }: Seeded) => {
  await sql`set session_replication_role = replica`
  await sql`
    insert into monitoring_alert_events (id, company_id, server_id, alert_id, event_id, seq, type, occurred_at, payload)
    select gen_random_uuid(), ${companyId}, md5('server' || i % 100)::uuid, md5('alert' || i % 1000)::uuid,
      gen_random_uuid()::text, i, 'alert.reminder', now() - make_interval(secs => i * 0.01),
      jsonb_build_object('seq', i, 'severity', 'warning', 'value', 95, 'threshold', 90, 'series_key', 'cpu_usage_percent')
    from generate_series(1, ${DOCUMENTS}::int) i`
  await sql`set session_replication_role = origin`
  await sql.unsafe('vacuum analyze monitoring_alert_events')
}

/** Every other address of a /12, of a company of its own. */
const seedAddresses = async (sql: postgres.Sql) => {
  await sql`set session_replication_role = replica`
  await sql`insert into subnets (id, company_id, name, cidr) select gen_random_uuid(), id, 'large', '10.16.0.0/12'
    from companies where name = ${LARGE}`
  await sql`
    insert into ip_addresses (id, company_id, name, address, search_text, subnet_id)
    select gen_random_uuid(), s.company_id, host(a), a, host(a), s.id
    from subnets s join companies c on c.id = s.company_id, generate_series(1, ${ADDRESSES}::int) i,
      lateral (select '10.16.0.0'::inet + 2 * i as a) x
    where c.name = ${LARGE}`
  await sql`set session_replication_role = origin`
  await sql.unsafe('vacuum analyze ip_addresses')
}

/** The rows of parts that need many. */
const seeds: Readonly<Record<string, (sql: postgres.Sql, facts: Seeded) => Promise<void>>> = {
  lists: (sql, { companyId, userId }) => seedLists(sql, companyId, userId),
  search: seedDocuments,
  export: seedEvents,
  addresses: seedAddresses,
}

/** Makes the rows that the parts need and the template lacks. */
async function seedTemplate(): Promise<Seeded> {
  const kept = await openTemplate()
  const sql = postgres(databaseUrl(TEMPLATE), { max: 1, onnotice: () => {} })
  const seeded = new Set(kept.parts)
  for (const part of parts) {
    if (!seeded.has(part)) await seeds[part]?.(sql, kept.facts)
    seeded.add(part)
    writeFileSync(seededFile, JSON.stringify({ facts: kept.facts, parts: [...seeded] }))
  }
  await sql.end()
  return kept.facts
}

const facts = await seedTemplate()
const { companyId } = facts
if (options.seed) {
  await admin.end()
  await server.stop()
  process.exit(0)
}
await admin.unsafe(`drop database if exists ${RUN}`)
await admin.unsafe(`create database ${RUN} template ${TEMPLATE} strategy file_copy`)
await admin.unsafe('checkpoint')
const sql = postgres(databaseUrl(RUN), { max: 1, onnotice: () => {} })
const hub = await startHubProcess({
  databaseUrl: databaseUrl(RUN),
  readyFile: join(dir, 'hub-ready.json'),
})
const hubUrl = hub.url
const call = caller(hubUrl, facts.token)
const postgresPid = Number((await Bun.file(join(dir, 'postgres', 'postmaster.pid')).text()).split('\n')[0])

async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await act()
  return performance.now() - startedMs
}

/** The p95 of a call that is made again and again, one after the other. */
async function p95(path: string, ask: typeof call): Promise<number> {
  await ask('GET', path)
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) times.push(await timed(() => ask('GET', path)))
  return quantile(
    times.sort((a, b) => a - b),
    0.95,
  )
}

/** The p95 of each path, beside the CPU time of hub and database for a request: what a busy host changes less. */
async function p95OfAll(
  paths: readonly string[],
  ask = call,
): Promise<Record<string, { p95_ms: number; cpu_ms: number }>> {
  const all: Record<string, { p95_ms: number; cpu_ms: number }> = {}
  for (const path of paths) {
    const before = cpuSeconds(hub.pid) + cpuSeconds(postgresPid)
    const p95_ms = await p95(path, ask)
    const cpu = cpuSeconds(hub.pid) + cpuSeconds(postgresPid) - before
    all[path] = { p95_ms, cpu_ms: Math.round((cpu * 1_000) / (ROUNDS + 1)) }
    console.error(`${path} ${JSON.stringify(all[path])}`)
  }
  return all
}

/** Lists of as many rows as a company may have, up to 100,000. */
async function lists() {
  const asked = options.paths.split(',')
  return { lists: await p95OfAll(listPaths.filter(path => asked.some(text => path.includes(text)))) }
}

/** `count` connections between `nodes` services. */
const seedConnections = (count: number, nodes: number, name: string) => sql`
  insert into connections (id, company_id, name, source_kind, source_name, source_key, target_kind, target_name,
    target_key, port, type, criticality, state_since)
  select gen_random_uuid(), ${companyId}, ${name} || ' ' || i, 'service', ${name} || '-' || s, 'service:' || ${name} || '-' || s,
    'service', ${name} || '-' || t, 'service:' || ${name} || '-' || t, 1 + i, (array['http', 'database'])[1 + i % 2],
    (array['hard', 'soft'])[1 + i % 2], now() - make_interval(secs => i)
  from generate_series(1, ${count}::int) i,
    lateral (select i % ${nodes}::int as s, (i % ${nodes}::int + 1 + (i * 7919) % (${nodes}::int - 1)) % ${nodes}::int as t) x`

/** 32 callers side by side, each for the next free address of one subnet, `turns` times. */
async function allocateSideBySide(there: typeof call, subnet: string, turns: number) {
  const times: number[] = []
  const before = cpuSeconds(hub.pid) + cpuSeconds(postgresPid)
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      for (let turn = 0; turn < turns; turn++)
        times.push(await timed(() => there('POST', '/ips/allocate', { subnet_id: subnet })))
    }),
  )
  const cpu = cpuSeconds(hub.pid) + cpuSeconds(postgresPid) - before
  times.sort((a, b) => a - b)
  return {
    cpu_ms: Math.round((cpu * 100_000) / times.length) / 100,
    p50_ms: quantile(times, 0.5),
    p95_ms: quantile(times, 0.95),
  }
}

/**
 * The first allocations of a hub that has just started, those after them, and then those of one whose code is compiled:
 * until then the compiler of the runtime takes half of the hub's processor time.
 */
async function allocate() {
  // The company of the lists has as many subnets as it may have.
  const [company] = await sql<{ id: string }[]>`select id from companies where name = ${ALLOCATING}`
  if (!company) throw new Error('the companies were not seeded')
  const there = caller(hubUrl, facts.token, company.id)
  const answer = await there('POST', '/subnets', { cidr: '172.16.0.0/16' })
  const subnet = (answer as { data: { id: string } }).data.id
  const allocate_first = await allocateSideBySide(there, subnet, 64)
  const allocated = await allocateSideBySide(there, subnet, 128)
  await allocateSideBySide(there, subnet, 256)
  return { allocate_first, allocate: allocated, allocate_compiled: await allocateSideBySide(there, subnet, 128) }
}

/** Pages and allocations among 500,000 addresses. */
async function addresses() {
  const [large] = await sql<{ id: string; company_id: string }[]>`
    select s.id, s.company_id from subnets s join companies c on c.id = s.company_id where c.name = ${LARGE}`
  if (!large) throw new Error('the addresses were not seeded')
  const there = caller(hubUrl, facts.token, large.company_id)
  const times: number[] = []
  const allocated = () => there('POST', '/ips/allocate', { subnet_id: large.id, from: 'last' })
  for (let turn = 0; turn < ROUNDS; turn++) times.push(await timed(allocated))
  return {
    addresses: await p95OfAll(['/ips?sort=address', '/ips?sort=-address', '/ips?sort=address&page=20000'], there),
    allocate_of_half_full_p95_ms: quantile(
      times.sort((a, b) => a - b),
      0.95,
    ),
  }
}

async function graph() {
  await sql`delete from connections where company_id = ${companyId}`
  await seedConnections(5_000, 2_000, 'node')
  await sql.unsafe('vacuum analyze connections')
  const paths = ['max_nodes=2000', 'max_nodes=2000&depth=10&root=service:node-7']
  return { graph: await p95OfAll(paths.map(query => `/connections/graph?${query}`)) }
}

/** Searches of a sort, each for other words; `n` is a document of the company. */
const SORTS: Readonly<Record<string, (n: number) => string>> = {
  exact: n => `10.${n >> 16}.${(n >> 8) % 256}.${n % 256}`,
  named: n => `web-${n}`,
  common: n => ['server', 'rack', 'web', 'rack web', 'server rack'][n % 5] ?? '',
  misspelled: n => `servre web-${n}`,
  unknown: n => `zzqq${n}xxyy`,
}
const SEARCHES = 200

/** Each sort of search, and that no hit is of a neighbour: their documents have the odd numbers. */
async function search() {
  const answer: Record<string, { p95_ms: number; cpu_ms: number; hits: number }> = {}
  for (const [sort, wordOf] of Object.entries(SORTS)) {
    const times: number[] = []
    let hits = 0
    const before = cpuSeconds(hub.pid) + cpuSeconds(postgresPid)
    for (let turn = 0; turn < SEARCHES; turn++) {
      const path = `/search?q=${encodeURIComponent(wordOf(2 * ((turn * 7919 + 1) % (DOCUMENTS / 2))))}`
      const startedMs = performance.now()
      const { data } = (await call('GET', path)) as { data: { name: string }[] }
      times.push(performance.now() - startedMs)
      const foreign = data.find(({ name }) => Number(/web-(\d+)$/.exec(name)?.[1] ?? 0) % 2 === 1)
      if (foreign) throw new Error(`${path} finds ${foreign.name}, which is another company's`)
      hits += data.length
    }
    if (hits > 0 === (sort === 'unknown')) throw new Error(`${hits} hits of ${sort} words`)
    const cpu = cpuSeconds(hub.pid) + cpuSeconds(postgresPid) - before
    const cpu_ms = Math.round((cpu * 1_000) / SEARCHES)
    answer[sort] = {
      p95_ms: quantile(
        times.sort((a, b) => a - b),
        0.95,
      ),
      cpu_ms,
      hits,
    }
    console.error(`${sort} ${JSON.stringify(answer[sort])}`)
  }
  return { search: answer }
}

type Exported = {
  readonly id: string
  readonly state: string
  readonly rows: number
  readonly bytes: number
  readonly sha256: string
  readonly error: string | null
  readonly download_url: string
}

/** Downloads an export by its link alone. Throws where rows, bytes or digest are not those that it says. */
async function verifyDownload(of: Exported) {
  const response = await fetch(`${hubUrl}${of.download_url}`)
  if (response.status !== 200 || !response.body) throw new Error(`the link answers ${response.status}`)
  const hash = new Bun.CryptoHasher('sha256')
  const [newline, counted] = [10, { lines: 0, bytes: 0 }]
  for await (const chunk of response.body) {
    hash.update(chunk)
    counted.bytes += chunk.byteLength
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, at + 1)) counted.lines++
  }
  const found = { rows: counted.lines - 1, bytes: counted.bytes, sha256: hash.digest('hex') }
  const { rows, bytes, sha256 } = of
  if (!Bun.deepEquals(found, { rows, bytes, sha256 }) || rows !== DOCUMENTS)
    throw new Error(`the file is ${JSON.stringify(found)}, the export says ${JSON.stringify({ rows, bytes, sha256 })}`)
}

/** The same link, of a time that is over: sealed with the key of the hub, which the database has. */
async function verifyLateLink({ id, download_url }: Exported) {
  const { config } = loadHubConfig(undefined, { 'database.url': databaseUrl(RUN) })
  const database = await openHubDatabase(config)
  const { sealer } = await createHub(config, createLogger('silent'), database)
  const token = new URL(download_url, hubUrl).searchParams.get('token') ?? ''
  const link: { until: number } = JSON.parse(sealer.open(token) ?? '{}')
  const leftMs = link.until - Date.now()
  await database.close()
  const late = sealer.seal(JSON.stringify({ ...link, until: Date.now() - 1 }))
  const path = `${hubUrl}/api/v1/exports/${id}/download?token=${encodeURIComponent(late)}`
  const { status } = await fetch(path)
  if (status !== 401 || !(leftMs > 0 && leftMs <= 15 * 60_000))
    throw new Error(`a link is valid for ${leftMs} ms more, and answers ${status} afterwards`)
}

async function exported() {
  const before = residentMb(hub.pid)
  let most = before
  const body = { resource: 'alert-events', format: 'csv' }
  const made = (await call('POST', '/exports', body)) as { data: { id: string } }
  const startedMs = performance.now()
  for (;;) {
    const { data } = (await call('GET', `/exports/${made.data.id}`)) as { data: Exported }
    most = Math.max(most, residentMb(hub.pid))
    if (data.state === 'failed') throw new Error(`the export failed: ${data.error}`)
    if (data.state === 'ready') {
      const export_seconds = Math.round((performance.now() - startedMs) / 100) / 10
      await verifyDownload(data)
      most = Math.max(most, residentMb(hub.pid))
      await verifyLateLink(data)
      return { export_rows: data.rows, export_seconds, export_more_mb: most - before }
    }
    await Bun.sleep(100)
  }
}

/** 25 manifests, of which one is a zone with 5,000 records. */
async function plan() {
  const me = (await call('GET', '/me')) as { data: { company: { slug: string } } }
  const { slug } = me.data.company
  const manifest = (kind: string, name: string, spec: unknown) => ({
    path: `${kind}/${slug}/${name}.yml`,
    // In flow style: a zone of 5,000 records stays within the size of a manifest.
    contents: stringify(
      { apiVersion: 'hub/v1', kind, metadata: { company: slug, name }, spec },
      { collectionStyle: 'flow', lineWidth: 0 },
    ),
  })
  const records = Array.from({ length: 5_000 }, (_, index) => ({
    name: `h${index}`,
    type: 'A',
    value: `10.0.${index >> 8}.${index & 255}`,
  }))
  const manifests = [
    manifest('dns-zone', 'bench', { zone: 'bench.example', records }),
    ...Array.from({ length: 24 }, (_, index) => manifest('server', `s-${index}`, { tags: ['bench'] })),
  ]
  const times: number[] = []
  for (let round = 0; round < 3; round++)
    times.push(await timed(() => call('POST', '/iac/validate', { manifests, title: 'Bench' })))
  return { plan_ms: quantile(times, 1) }
}

const measures: Readonly<Record<string, () => Promise<object>>> = {
  lists,
  allocate,
  addresses,
  graph,
  search,
  export: exported,
  plan,
}
const answer: Record<string, unknown> = { bench: 'resources' }
try {
  for (const name of parts) {
    const part = measures[name]
    if (!part) throw new Error(`there is no part ${name}: ${Object.keys(measures).join(', ')}`)
    const before = [cpuSeconds(hub.pid), cpuSeconds(postgresPid)] as const
    Object.assign(answer, await part())
    const round = (value: number) => Math.round(value * 10) / 10
    answer[`${name}_cpu_hub`] = round(cpuSeconds(hub.pid) - before[0])
    answer[`${name}_cpu_db`] = round(cpuSeconds(postgresPid) - before[1])
  }
  console.log(JSON.stringify(answer))
} finally {
  await hub.stop()
  await sql.end()
  await admin.unsafe(`drop database if exists ${RUN}`)
  await admin.end()
  await server.stop()
  if (!options.data) rmSync(dir, { recursive: true, force: true })
}
