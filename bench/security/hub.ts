// The list of findings at a million findings of one company, over HTTP, as a process of its own on embedded PostgreSQL:
// p95 of the first page of every filter, of its middle one and of its last one. Usage: bun bench/security/hub.ts
// [--findings N] [--data DIR]. With --data the seeded database is kept in DIR and used again. Prints a line for every
// list on standard error, and one JSON line.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { createCompany } from '../../apps/hub/companies/companies.ts'
import { loadHubConfig } from '../../apps/hub/config.ts'
import { bringUpToDate, createHub } from '../../apps/hub/hub.ts'
import { createToken, createUser } from '../../apps/hub/identity/accounts.ts'
import { openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { createLogger } from '../../apps/hub/platform/telemetry.ts'
import { addUpFindingCounts } from '../../apps/hub/security/findings/finding-page.ts'
import { startPostgres } from '../../apps/standalone/postgres.ts'
import { atPace, caller, cpuSeconds, quantile, residentMb } from '../hub-load.ts'
import { startHubProcess } from '../hub-process.ts'

const { values: options } = parseArgs({
  options: { data: { type: 'string' }, findings: { type: 'string', default: '1000000' } },
})
const findings = Number(options.findings)
const FINDINGS_OF_SERVER = 500
const VULNERABILITIES = 8000
const PACKAGES = 900
const PER_SECOND = 20
const REQUESTS = 60
const dir = options.data ? resolve(options.data) : mkdtempSync(join(tmpdir(), 'bench-security-'))
mkdirSync(dir, { recursive: true })

const server = await startPostgres(join(dir, 'postgres'), 'bench', join(dir, 'postgres.log'))

type Seeded = { readonly token: string; readonly companyId: string; readonly serverId: string; readonly vulnId: string }

/** A fleet of alike servers: what a vulnerability is decides risk, severity and fix; servers differ in the rest. */
async function seed(): Promise<Seeded> {
  const known = join(dir, 'seeded.json')
  if (existsSync(known)) return Bun.file(known).json()
  const { config } = loadHubConfig(undefined, { 'database.url': server.url })
  const database = openDatabase(server.url, 4)
  await bringUpToDate(database)
  const hub = await createHub(config, createLogger('fatal'), database)
  const made = await inTransaction(database.db, async tx => {
    const { id: companyId } = await createCompany(hub, tx, { name: 'Bench', overrides: { agent_quota: null } })
    const user = await createUser(tx, {
      companyId,
      email: 'bench@example.test',
      name: 'Bench',
      permissions: ['*'],
      superAdmin: false,
    })
    const token = await createToken(tx, { userId: user.id, name: 'bench', ratePerMinute: 1_000_000, expiresAt: null })
    return { companyId, token: token.token }
  })
  const hosts = Math.ceil(findings / FINDINGS_OF_SERVER)
  const { client } = database
  await client`set statement_timeout = 0`
  await client.begin(async sql => {
    await sql`set local statement_timeout = 0`
    await sql`create function pg_temp.id(name text) returns uuid language sql immutable as
      $$ select overlay(overlay(md5(name) placing '4' from 13) placing '8' from 17)::uuid $$`
    // Every tenth scan host is attached to no server.
    await sql`insert into servers (id, company_id, name, sync_version)
      select pg_temp.id('server ' || n), ${made.companyId}, 'server ' || n, n from generate_series(1, ${hosts}::int) n where n % 10 <> 0`
    await sql`insert into scan_hosts (host_id, company_id, server_id, public_key, machine_id_hash, hostname, last_report_at)
      select pg_temp.id('host ' || n), ${made.companyId}, case when n % 10 <> 0 then pg_temp.id('server ' || n) end, 'key',
        md5('id ' || n), 'host-' || n, now() from generate_series(1, ${hosts}::int) n`
    await sql`
      insert into security_findings (id, company_id, server_id, host_id, finding_key, kind, vuln_id, aliases, advisory_ids,
        ecosystem, package_key, packages, installed_version, fixed_version, fix_status, fix_channel, severity_label, minor, kernel,
        reboot_required, cvss_score, kev, risk, priority, status, first_seen_at, last_seen_at, resolved_at, sla_due_at,
        last_event_seq, db_version)
      select pg_temp.id('finding ' || n), ${made.companyId}, case when h % 10 <> 0 then pg_temp.id('server ' || h) end,
        pg_temp.id('host ' || h), md5('key ' || n), 'vulnerability', 'CVE-' || 2018 + v % 8 || '-' || 10000 + v,
        case when v % 3 = 0 then jsonb_build_array('GHSA-' || md5('alias ' || v)) else '[]' end, '[]', 'debian:12', 'package-' || v % ${PACKAGES}::int,
        jsonb_build_array(jsonb_build_object('name', 'package-' || v % ${PACKAGES}::int, 'version', '1.2.3-4', 'arch', 'amd64')),
        '1.2.3-4', case when v % 4 = 0 then '' else '1.2.3-5' end,
        (array['no_fix', 'fixed', 'fixed', 'wont_fix'])[1 + v % 4], 'standard',
        (array['low', 'medium', 'medium', 'high', 'critical', ''])[1 + v % 6], false, false, false, (v * 7 % 101) / 10.0, v % 97 = 0,
        v * 7 % 101, case when v * 7 % 101 >= 90 then 'p1' when v * 7 % 101 >= 70 then 'p2' when v * 7 % 101 >= 40 then 'p3' else 'p4' end,
        (array['open', 'open', 'open', 'open', 'open', 'open', 'resolved', 'resolved', 'resolved', 'accepted'])[1 + (n * 7 + h) % 10],
        now(), now(), case when (n * 7 + h) % 10 in (6, 7, 8) then now() end, now() + interval '20 days', 1, 2026010101
      from (select n, 1 + n / ${FINDINGS_OF_SERVER}::int as h,
        (n % ${FINDINGS_OF_SERVER}::int * 37 + n / ${FINDINGS_OF_SERVER}::int % 5 * 1601) % ${VULNERABILITIES}::int as v
        from generate_series(0, ${findings - 1}::int) n) x`
  })
  await addUpFindingCounts(database.db)
  await client`vacuum analyze security_findings`
  await client`vacuum analyze security_finding_counts`
  await client`vacuum analyze security_finding_name_counts`
  const [one] = await client<{ server_id: string; vuln_id: string }[]>`
    select server_id, vuln_id from security_findings where server_id is not null limit 1`
  await database.close()
  const seeded = { ...made, serverId: one?.server_id ?? '', vulnId: one?.vuln_id ?? '' }
  await Bun.write(known, JSON.stringify(seeded))
  return seeded
}

const startedMs = performance.now()
const facts = await seed()
console.error(`seeded in ${Math.round((performance.now() - startedMs) / 1000)} s`)

const hub = await startHubProcess({
  databaseUrl: server.url,
  readyFile: join(dir, 'hub-ready.json'),
})
const hubUrl = hub.url
const call = caller(hubUrl, facts.token)

const filters = [
  '',
  'status=open',
  'status=accepted',
  'status=resolved&priority=p2',
  'kind=vulnerability',
  'priority=p1',
  'severity_label=high',
  'severity_label=critical&kev=true',
  'fix_status=fixed',
  'fix_status=no_fix&priority=p3',
  'kev=true',
  'kev=false&status=open&severity_label=medium&fix_status=fixed',
  `server_id=${facts.serverId}`,
  'server_id=none',
  `vuln_id=${facts.vulnId}`,
  `vuln_id=${facts.vulnId}&status=open`,
  'search=package-7',
  'search=cve-2021',
  'search=ghsa-a&status=open',
  'search=package-899',
  'search=e&priority=p1&server_id=none',
  'search=nothing-has-it',
]

const p95Of = async (path: string): Promise<number> => {
  await call('GET', path)
  const sorted = await atPace(call, [path], PER_SECOND, sent => sent >= REQUESTS)
  return quantile(sorted, 0.95)
}

try {
  let worstMs = 0
  let worstRatio = 0
  for (const filter of filters) {
    const path = `/security/findings?${filter}`
    const first = (await call('GET', path)) as { readonly meta: { readonly last_page: number; readonly total: number } }
    const { last_page: lastPage, total } = first.meta
    const firstMs = await p95Of(path)
    const deepMs = lastPage > 1 ? await p95Of(`${path}&page=${lastPage}`) : null
    const middleMs = lastPage > 2 ? await p95Of(`${path}&page=${Math.ceil(lastPage / 2)}`) : null
    worstMs = Math.max(worstMs, firstMs, deepMs ?? 0, middleMs ?? 0)
    worstRatio = Math.max(worstRatio, (deepMs ?? 0) / firstMs, (middleMs ?? 0) / firstMs)
    console.error(
      `${filter || '(none)'}: ${total} findings, first ${firstMs} ms, middle ${middleMs} ms, last ${deepMs} ms`,
    )
  }
  const others: Record<string, number> = {}
  for (const [name, path] of [
    ['overview', '/security/overview'],
    ['software', '/security/software'],
    ['server', `/servers/${facts.serverId}/security`],
  ] as const)
    others[`${name}_p95_ms`] = await p95Of(path)
  console.log(
    JSON.stringify({
      bench: 'findings-list',
      question: 'p95 of the list of findings at any filter, and its deep pages (middle, last) against its first',
      findings,
      lists: filters.length,
      worst_p95_ms: worstMs,
      worst_deep_ratio: Math.round(worstRatio * 100) / 100,
      ...others,
      hub_mb: residentMb(hub.pid),
      hub_cpu_s: Math.round(cpuSeconds(hub.pid) * 10) / 10,
    }),
  )
} finally {
  await hub.stop()
  await server.stop()
  if (!options.data) rmSync(dir, { recursive: true, force: true })
}
