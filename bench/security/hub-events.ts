// The security side of the hub, over HTTP, as a process of its own on embedded PostgreSQL: findings of one company, and
// events of the matcher while lists are read. Usage: bun bench/security/hub-events.ts [--findings N]. Prints one
// JSON line.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { createCompany } from '../../apps/hub/companies/companies.ts'
import { loadHubConfig } from '../../apps/hub/config.ts'
import { createHub, openHubDatabase } from '../../apps/hub/hub.ts'
import { createToken, createUser } from '../../apps/hub/identity/accounts.ts'
import { createMatcher } from '../../apps/hub/identity/service-accounts.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { createLogger } from '../../apps/hub/platform/telemetry.ts'
import { startPostgres } from '../../apps/standalone/postgres.ts'
import { atPace, caller, cpuSeconds, quantile, untilCalm } from '../hub-load.ts'
import { startHubProcess } from '../hub-process.ts'

const { values: options } = parseArgs({ options: { findings: { type: 'string', default: '100000' } } })
const FINDINGS = Number(options.findings)
const HOSTS = 1000
const EVENTS_AT_ONCE = 200
const BATCHES = 100
const READS_PER_SECOND = 10

const dir = mkdtempSync(join(tmpdir(), 'bench-security-'))
const server = await startPostgres(join(dir, 'postgres'), 'bench', join(dir, 'postgres.log'))
const hex64 = () => randomBytes(32).toString('hex')

/** A company with its tokens, hosts and findings. */
async function seed() {
  const { config } = loadHubConfig(undefined, { 'database.url': server.url })
  const database = await openHubDatabase(config)
  try {
    const hub = await createHub(config, createLogger('silent'), database)
    const made = await inTransaction(database.db, async tx => {
      const { id: companyId } = await createCompany(hub, tx, { name: 'Bench', planCode: 'dedicated' })
      const user = { companyId, email: 'bench@example.net', name: 'Bench', permissions: ['*'] }
      const { id: userId } = await createUser(tx, user)
      const { token } = await createToken(tx, { userId, name: 'bench', ratePerMinute: 1_000_000, expiresAt: null })
      const { token: matcherToken } = await createMatcher(tx, 'Bench', ['127.0.0.0/8'])
      return { companyId, token, matcherToken }
    })
    const sql = postgres(server.url, { max: 1, onnotice: () => {} })
    await sql`
      insert into scan_hosts (host_id, company_id, public_key, machine_id_hash, hostname)
      select gen_random_uuid(), ${made.companyId}, 'k' || n, md5(n::text), 'host-' || n from generate_series(1, ${HOSTS}::int) n`
    const hosts = await sql<{ host_id: string }[]>`select host_id from scan_hosts`
    await sql`
      insert into security_findings (id, company_id, host_id, finding_key, kind, vuln_id, ecosystem, package_key, installed_version,
        fixed_version, fix_status, fix_channel, severity_label, minor, kernel, reboot_required, cvss_score, risk, priority, status,
        first_seen_at, last_seen_at, last_event_seq, db_version)
      select gen_random_uuid(), ${made.companyId}, h.ids[1 + n % ${HOSTS}::int], md5(n::text) || md5((-n)::text), 'vulnerability',
        'CVE-2026-' || n % 5000, 'debian:12', 'source-' || n % 800, '1.0', '1.1', (array['fixed', 'no_fix', 'wont_fix'])[1 + n % 3],
        'standard', (array['low', 'medium', 'high'])[1 + n % 3], false, false, false, (n % 100) / 10.0, n % 100,
        'p' || (case when n % 100 >= 90 then 1 when n % 100 >= 70 then 2 when n % 100 >= 40 then 3 else 4 end),
        (array['open', 'open', 'open', 'resolved'])[1 + n % 4], now(), now(), 1, 2026060101
      from generate_series(1, ${FINDINGS}::int) n, (select array_agg(host_id) as ids from scan_hosts) h`
    await sql`analyze`
    await sql.end()
    return { ...made, hostIds: hosts.map(row => row.host_id) }
  } finally {
    await database.close()
  }
}

const facts = await seed()
const hub = await startHubProcess({
  databaseUrl: server.url,
  readyFile: join(dir, 'hub-ready.json'),
  env: { SVC_RATE_MATCHER_PER_MINUTE: '1000000' },
})
const hubUrl = hub.url
const call = caller(hubUrl, facts.token)
const match = caller(hubUrl, facts.matcherToken)

// What the seed wrote at once is counted and told of by tasks of the hub, which every hub runs first of all.
await untilCalm(server.url)

let seq = 1000
/** A batch of findings that are new. */
const batchOf = (batch: number) => ({
  events: Array.from({ length: EVENTS_AT_ONCE }, (_, index) => ({
    event_id: hex64(),
    type: 'finding.opened',
    company_id: facts.companyId,
    server_id: null,
    host_id: facts.hostIds[(batch * 3 + (index >> 6)) % HOSTS],
    seq: ++seq,
    occurred_at: new Date().toISOString(),
    payload: {
      finding_key: hex64(),
      kind: 'vulnerability',
      vuln_id: `CVE-2026-${seq % 5000}`,
      aliases: [],
      advisory_ids: ['DSA-1-1'],
      ecosystem: 'debian:12',
      package_key: `source-${seq % 800}`,
      packages: [{ name: 'libsource1', version: '1.0', arch: 'amd64' }],
      installed_version: '1.0',
      fixed_version: '1.1',
      fix_status: 'fixed',
      fix_channel: 'standard',
      severity_label: 'medium',
      minor: false,
      kernel: false,
      reboot_required: false,
      cvss_score: (seq % 100) / 10,
      first_seen_at: new Date().toISOString(),
      db_version: 2026060101,
    },
  })),
})

// Made before: the hashes of their ids would take the processor from what is measured.
const batches = Array.from({ length: BATCHES }, (_, batch) => batchOf(batch))
const latenciesMs: number[] = []
let isDone = false
const paths = ['/security/findings', '/security/findings?status=open&priority=p1', '/security/findings?page=1000']
const reads = atPace(call, paths, READS_PER_SECOND, () => isDone)
const postgresPid = Number((await Bun.file(join(dir, 'postgres', 'postmaster.pid')).text()).split('\n')[0])
const [cpuBefore, dbBefore, startedMs] = [cpuSeconds(hub.pid), cpuSeconds(postgresPid), performance.now()]
for (const batch of batches) {
  const sentMs = performance.now()
  const { data } = (await match('POST', '/security/matcher/events', batch)) as { data: { accepted: string[] } }
  latenciesMs.push(performance.now() - sentMs)
  if (data.accepted.length !== EVENTS_AT_ONCE) throw new Error(`of a batch ${data.accepted.length} events are accepted`)
}
const seconds = (performance.now() - startedMs) / 1000
isDone = true
const readMs = await reads
latenciesMs.sort((a, b) => a - b)
const sql = postgres(server.url, { max: 1, onnotice: () => {} })
const [{ applied } = { applied: 0 }] = await sql<{ applied: number }[]>`
  select count(*)::int as applied from security_findings where last_event_seq > 1000`
await sql.end()
if (applied !== BATCHES * EVENTS_AT_ONCE) throw new Error(`only ${applied} events were applied`)
console.log(
  JSON.stringify({
    bench: 'hub-events',
    findings: FINDINGS,
    events_per_second: Math.round((BATCHES * EVENTS_AT_ONCE) / seconds),
    batch_p50_ms: quantile(latenciesMs, 0.5),
    batch_p95_ms: quantile(latenciesMs, 0.95),
    events_per_cpu_second: Math.round(
      (BATCHES * EVENTS_AT_ONCE) / (cpuSeconds(hub.pid) - cpuBefore + cpuSeconds(postgresPid) - dbBefore),
    ),
    cpu_hub_seconds: Math.round((cpuSeconds(hub.pid) - cpuBefore) * 100) / 100,
    list_p95_ms_meanwhile: quantile(readMs, 0.95),
  }),
)
await hub.stop()
await server.stop()
rmSync(dir, { recursive: true, force: true })
