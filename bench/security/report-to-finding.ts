// How long from the report of one host until its findings stand in the hub (MAT-186)? A hub and a matcher as processes
// of their own, on embedded PostgreSQL; hosts that report one after the other, and many at one time. Throws when p99 of
// the first is above 2 s.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import postgres from 'postgres'
import { createCompany } from '../../apps/hub/companies/companies.ts'
import { loadHubConfig } from '../../apps/hub/config.ts'
import { createHub, openHubDatabase } from '../../apps/hub/hub.ts'
import { createToken, createUser } from '../../apps/hub/identity/accounts.ts'
import { createMatcher } from '../../apps/hub/identity/service-accounts.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { createLogger } from '../../apps/hub/platform/telemetry.ts'
import { startPostgres } from '../../apps/standalone/postgres.ts'
import { packagesOf, reportOf, ScanClient } from '../../test/matcher/scan-client.ts'
import { runCommand } from '../../test/support/executable.ts'
import { caller, cpuSeconds, quantile } from '../hub-load.ts'
import { debianTracker } from './feeds.ts'

const HOSTS = 50
const PACKAGES = 800
const VULNERABILITIES = 45_000
const P99_MS_MAX = 2_000
const apps = resolve(import.meta.dir, '../../apps')

type Process = { readonly pid: number; readonly ready: Record<string, unknown>; stop(): Promise<void> }

async function start(words: readonly string[], readyFile: string, env: Record<string, string>): Promise<Process> {
  const child = Bun.spawn(['bun', ...words, '--ready-file', readyFile], {
    env: { ...process.env, ...env },
    stdout: 'ignore',
    stderr: 'inherit',
  })
  while (!existsSync(readyFile)) {
    if (child.exitCode !== null) throw new Error(`${words.join(' ')} does not start`)
    await Bun.sleep(20)
  }
  const stop = async (): Promise<void> => {
    child.kill()
    await child.exited
  }
  return { pid: child.pid, ready: await Bun.file(readyFile).json(), stop }
}

/** Of sources of the tracker, most of whose fixes they have: as many findings as a server of Debian. */
const packages = (isUpgraded: boolean) =>
  packagesOf(
    ...Array.from(
      { length: PACKAGES },
      (_, at) => [`source-${3_200 + at}`, isUpgraded && at % 20 === 0 ? '99-1' : '8.30-1'] as const,
    ),
  )

async function seed(url: string): Promise<{ companyId: string; token: string; matcherToken: string }> {
  const { config } = loadHubConfig(undefined, { 'database.url': url })
  const database = await openHubDatabase(config)
  try {
    const hub = await createHub(config, createLogger('silent'), database)
    return await inTransaction(database.db, async tx => {
      const { id: companyId } = await createCompany(hub, tx, { name: 'Bench', planCode: 'dedicated' })
      const user = { companyId, email: 'bench@example.net', name: 'Bench', permissions: ['*'] }
      const { id: userId } = await createUser(tx, user)
      const { token } = await createToken(tx, { userId, name: 'bench', ratePerMinute: 1_000_000, expiresAt: null })
      const { token: matcherToken } = await createMatcher(tx, 'Bench', ['127.0.0.0/8'])
      return { companyId, token, matcherToken }
    })
  } finally {
    await database.close()
  }
}

async function startMatcher(dir: string, hubUrl: string, token: string): Promise<Process> {
  mkdirSync(dir)
  const file = join(dir, 'tracker.json')
  writeFileSync(file, debianTracker(VULNERABILITIES))
  const built = await runCommand('matcher', [
    'db',
    'update',
    '--source',
    `debian=${file}`,
    '--data-dir',
    join(dir, 'data'),
  ])
  if (built.code !== 0) throw new Error(`the database was not built: ${built.err}`)
  const config = join(dir, 'matcher.yaml')
  writeFileSync(
    config,
    JSON.stringify({
      listen: '127.0.0.1:0',
      admin: { listen: '127.0.0.1:0', token: 'admin-token-of-the-bench' },
      ops: { listen: '127.0.0.1:0' },
      hub: { url: hubUrl, token },
      data_dir: join(dir, 'data'),
      db: { update_interval: 'off' },
      limits: { enroll_per_minute: 100_000 },
    }),
  )
  return start([join(apps, 'matcher/main.ts'), 'run', '--config', config], join(dir, 'ready.json'), {})
}

class ReportBench {
  constructor(
    private readonly sql: postgres.Sql,
    private readonly clients: readonly ScanClient[],
  ) {}

  /** Ms from the report until the hub has of the host what the matcher answered. */
  async sample(client: ScanClient, isUpgraded: boolean): Promise<number> {
    const report = reportOf(client.name, { packages: packages(isUpgraded) })
    const began = performance.now()
    const { status, body } = await client.report(report)
    if (status !== 200) throw new Error(`the report answers ${status}: ${JSON.stringify(body)}`)
    for (;;) {
      const [row] = await this.sql<{ open: number; is_scanned: boolean }[]>`
        select (select count(*)::int from security_findings where host_id = ${client.hostId} and status = 'open') as open,
          exists (select 1 from security_server_scans where host_id = ${client.hostId}) as is_scanned`
      if (row?.is_scanned && row.open === body.open_findings) return performance.now() - began
      await Bun.sleep(5)
    }
  }

  async alone(): Promise<number[]> {
    const times: number[] = []
    for (const client of this.clients) times.push(await this.sample(client, false))
    return times.sort((a, b) => a - b)
  }

  async atOneTime(): Promise<number[]> {
    const times = await Promise.all(this.clients.map(client => this.sample(client, true)))
    return times.sort((a, b) => a - b)
  }
}

export async function benchReportToFinding(): Promise<readonly Record<string, unknown>[]> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-report-'))
  const server = await startPostgres(join(dir, 'postgres'), 'bench', join(dir, 'postgres.log'))
  const running: Process[] = []
  const sql = postgres(server.url, { max: 20, onnotice: () => {} })
  try {
    const { token, matcherToken } = await seed(server.url)
    const hub = await start([join(apps, 'hub/main.ts'), 'serve', '--listen', '127.0.0.1:0'], join(dir, 'hub.json'), {
      SVC_DATABASE_URL: server.url,
      SVC_LOG_LEVEL: 'warn',
    })
    running.push(hub)
    const hubUrl = String(hub.ready.hub_url)
    const matcher = await startMatcher(join(dir, 'matcher'), hubUrl, matcherToken)
    running.push(matcher)
    const call = caller(hubUrl, token)
    const made = await call('POST', '/security/scan-hosts/enrolment-codes', { max_uses: HOSTS })
    const { code } = (made as { data: { code: string } }).data
    const clients: ScanClient[] = []
    for (let host = 0; host < HOSTS; host++) {
      const client = new ScanClient(String(matcher.ready.scan_url), `host-${host}`)
      const { status, body } = await client.enroll(code)
      if (status !== 201) throw new Error(`the enrollment answers ${status}: ${JSON.stringify(body)}`)
      clients.push(client)
    }
    const bench = new ReportBench(sql, clients)
    const cpuBefore = [cpuSeconds(hub.pid), cpuSeconds(matcher.pid)] as const
    const alone = await bench.alone()
    const atOnce = await bench.atOneTime()
    const [{ open } = { open: 0 }] = await sql<{ open: number }[]>`
      select count(*)::int as open from security_findings where status = 'open'`
    const figures = {
      question: 'from the report of one host to its findings at the hub',
      hosts: HOSTS,
      packages: PACKAGES,
      findings_per_host: Math.round(open / HOSTS),
      p50_ms: quantile(alone, 0.5),
      p99_ms: quantile(alone, 0.99),
      all_at_one_time_p50_ms: quantile(atOnce, 0.5),
      all_at_one_time_last_ms: quantile(atOnce, 1),
      hub_cpu_ms_a_report: Math.round(((cpuSeconds(hub.pid) - cpuBefore[0]) * 1000) / (2 * HOSTS)),
      matcher_cpu_ms_a_report: Math.round(((cpuSeconds(matcher.pid) - cpuBefore[1]) * 1000) / (2 * HOSTS)),
    }
    if (figures.p99_ms > P99_MS_MAX) throw new Error(`p99 is above ${P99_MS_MAX} ms: ${JSON.stringify(figures)}`)
    return [figures]
  } finally {
    for (const each of running.reverse()) await each.stop()
    await sql.end()
    await server.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}
