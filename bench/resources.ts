// Resources on a hub of 1,000 companies, as a process of its own on embedded PostgreSQL. Usage: bun bench/resources.ts
// [--only lists,allocate,graph,search,export,plan]. Each part makes its rows first. Prints one JSON line: wall-clock
// times in ms, beside the CPU seconds of hub and database.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { stringify } from 'yaml'
import { startPostgres } from '../apps/standalone/postgres.ts'
import { caller, cpuSeconds, quantile, residentMb } from './hub-load.ts'
import { seedCompany } from './hub-seed.ts'
import { listPaths, seedLists } from './resources-lists.ts'

const { values: options } = parseArgs({ options: { only: { type: 'string' } } })
const dir = mkdtempSync(join(tmpdir(), 'bench-resources-'))
const COMPANIES = 1_000
const DOCUMENTS = 1_000_000
const ROUNDS = 20

const server = await startPostgres(join(dir, 'postgres'), 'bench', join(dir, 'postgres.log'))
const facts = await seedCompany(server.url)
const sql = postgres(server.url, { max: 1, onnotice: () => {} })
const { companyId } = facts
await sql`insert into companies (id, name, slug) select gen_random_uuid(), 'Other ' || i, 'other-' || i
  from generate_series(1, ${COMPANIES}::int) i`
await sql`insert into monitoring_settings (company_id) select id from companies on conflict do nothing`

const readyFile = join(dir, 'hub-ready.json')
const hub = Bun.spawn(
  ['bun', join(import.meta.dir, '../apps/hub/main.ts'), 'serve', '--listen', '127.0.0.1:0', '--ready-file', readyFile],
  { env: { ...process.env, SVC_DATABASE_URL: server.url, SVC_LOG_LEVEL: 'warn' }, stdout: 'ignore', stderr: 'inherit' },
)
while (!existsSync(readyFile)) {
  if (hub.exitCode !== null) throw new Error('the hub does not start')
  await Bun.sleep(20)
}
const { hub_url: hubUrl }: { hub_url: string } = await Bun.file(readyFile).json()
const call = caller(hubUrl, facts.token)
const postgresPid = Number((await Bun.file(join(dir, 'postgres', 'postmaster.pid')).text()).split('\n')[0])

async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now()
  await act()
  return performance.now() - startedMs
}

/** The p95 of a call that is made again and again, one after the other. */
async function p95(path: string): Promise<number> {
  await call('GET', path)
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) times.push(await timed(() => call('GET', path)))
  return quantile(
    times.sort((a, b) => a - b),
    0.95,
  )
}

/** The p95 of each path, beside the CPU time of hub and database for a request: what a busy host changes less. */
async function p95OfAll(paths: readonly string[]): Promise<Record<string, { p95_ms: number; cpu_ms: number }>> {
  const all: Record<string, { p95_ms: number; cpu_ms: number }> = {}
  for (const path of paths) {
    const before = cpuSeconds(hub.pid) + cpuSeconds(postgresPid)
    const p95_ms = await p95(path)
    const cpu = cpuSeconds(hub.pid) + cpuSeconds(postgresPid) - before
    all[path] = { p95_ms, cpu_ms: Math.round((cpu * 1_000) / (ROUNDS + 1)) }
    console.error(`${path} ${JSON.stringify(all[path])}`)
  }
  return all
}

/** Lists of as many rows as a company may have, up to 100,000. */
async function lists() {
  await seedLists(sql, companyId, facts.userId)
  return { lists: await p95OfAll(listPaths) }
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

/** 64 times 32 requests side by side, each for the next free address of one subnet. */
async function allocate() {
  const answer = await call('POST', '/subnets', { cidr: '172.16.0.0/16' })
  const subnet = (answer as { data: { id: string } }).data.id
  const times: number[] = []
  const seconds =
    (await timed(() =>
      Promise.all(
        Array.from({ length: 32 }, async () => {
          for (let turn = 0; turn < 16; turn++)
            times.push(await timed(() => call('POST', '/ips/allocate', { subnet_id: subnet })))
        }),
      ),
    )) / 1000
  return {
    a_allocation_ms: Math.round((seconds * 10_000) / times.length) / 10,
    allocate_p95_ms: quantile(
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

async function search() {
  await sql`insert into search_documents (company_id, kind, resource_id, name, subtitle, text, exact)
    select case when i % 2 = 0 then ${companyId}::uuid else (select id from companies where name = 'Other ' || 1 + i % 1000) end,
      (array['server', 'ip_address', 'subnet'])[1 + i % 3], gen_random_uuid(), 'server web-' || i,
      null, 'server web-' || i || ' rack ' || md5(i::text), array['10.' || i / 65536 || '.' || i / 256 % 256 || '.' || i % 256]
    from generate_series(1, ${DOCUMENTS}::int) i`
  await sql.unsafe('vacuum analyze search_documents')
  const words = ['10.3.2.4', 'web-423456', 'server', 'servre web-4234', 'zzqqxxyy', 'rack web']
  return { search: await p95OfAll(words.map(word => `/search?q=${encodeURIComponent(word)}`)) }
}

async function exported() {
  await sql`insert into audit_log (id, company_id, actor_type, actor_name, action, subject_type, subject_id)
    select gen_random_uuid(), ${companyId}, 'system', 'Bench', 'server.update', 'server', i::text
    from generate_series(1, ${DOCUMENTS - 1_000}::int) i`
  const before = residentMb(hub.pid)
  let most = before
  const made = (await call('POST', '/exports', { resource: 'audit-log', format: 'csv' })) as { data: { id: string } }
  const startedMs = performance.now()
  for (;;) {
    const { data } = (await call('GET', `/exports/${made.data.id}`)) as {
      data: { state: string; rows: number; error: string | null }
    }
    most = Math.max(most, residentMb(hub.pid))
    if (data.state === 'failed') throw new Error(`the export failed: ${data.error}`)
    if (data.state === 'ready')
      return {
        export_rows: data.rows,
        export_seconds: Math.round((performance.now() - startedMs) / 100) / 10,
        export_more_mb: most - before,
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

const parts: Readonly<Record<string, () => Promise<object>>> = {
  lists,
  allocate,
  graph,
  search,
  export: exported,
  plan,
}
const answer: Record<string, unknown> = { bench: 'resources' }
try {
  for (const name of options.only?.split(',') ?? Object.keys(parts)) {
    const part = parts[name]
    if (!part) throw new Error(`there is no part ${name}: ${Object.keys(parts).join(', ')}`)
    const before = [cpuSeconds(hub.pid), cpuSeconds(postgresPid)] as const
    Object.assign(answer, await part())
    const round = (value: number) => Math.round(value * 10) / 10
    answer[`${name}_cpu_hub`] = round(cpuSeconds(hub.pid) - before[0])
    answer[`${name}_cpu_db`] = round(cpuSeconds(postgresPid) - before[1])
  }
  console.log(JSON.stringify(answer))
} finally {
  hub.kill()
  await hub.exited
  await sql.end()
  await server.stop()
  rmSync(dir, { recursive: true, force: true })
}
