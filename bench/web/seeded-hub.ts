// A hub of its own for the benchmarks of the web interface: embedded PostgreSQL with a seeded company, the hub as a
// process, and a stub of the collector that counts.
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import postgres from 'postgres'
import { newSessionToken, tokenHash } from '../../apps/hub/identity/token-forms.ts'
import { sessionCookie } from '../../apps/hub/platform/http/caller.ts'
import { startPostgres } from '../../apps/standalone/postgres.ts'
import { caller } from '../hub-load.ts'
import { startHubProcess } from '../hub-process.ts'
import { type Seeded, seededId, seedHub, sizes } from '../hub-seed.ts'
import { ADMIN_TOKEN, StubCollector } from './stub-collector.ts'

/** Beside its servers: 3,000 alerts that are active, two hundred rules, and a record of each kind that has a list. */
const sizesOf = (servers: number) => ({
  ...sizes,
  ...{ servers, rules: 200, taggedRules: 20, alerts: 3_000, activePercent: 100, events: 30_000, eventsOfOne: 100 },
  ...{ others: 0, serversOfOther: 0, audits: 10_000, notes: 500, people: 100 },
})

export type SeededHub = {
  readonly url: string
  /** The address of the company's pages. */
  readonly base: string
  readonly pid: number
  readonly collector: StubCollector
  readonly ids: { readonly server: string; readonly alert: string; readonly rule: string; readonly check: string }
  /** A session of the company's user; the value of its cookie. */
  readonly newSession: () => Promise<string>
  /** An alert opens, as the collector tells it. */
  readonly openAlert: () => Promise<void>
  readonly stop: () => Promise<void>
}

type Store = { readonly url: (name: string) => string; readonly sql: postgres.Sql; readonly stop: () => Promise<void> }

async function startStore(dir: string): Promise<Store> {
  const server = await startPostgres(join(dir, 'postgres'), 'bench', join(dir, 'postgres.log'))
  const sql = postgres(server.url, { max: 1, onnotice: () => {} })
  const stop = async (): Promise<void> => {
    await sql.end()
    await server.stop()
  }
  return { url: name => server.url.replace(/[^/]+$/, name), sql, stop }
}

/** The database of that many servers, kept in `dir`: a copy of it is worked on. Resolves to what was seeded. */
async function seededStore({ sql, url }: Store, dir: string, servers: number): Promise<Seeded> {
  const template = `web_${servers}`
  const known = join(dir, `${template}.json`)
  if (!existsSync(known)) {
    const startedMs = performance.now()
    await sql.unsafe(`drop database if exists ${template}`)
    await sql.unsafe(`create database ${template}`)
    await Bun.write(known, JSON.stringify(await seedHub(url(template), sizesOf(servers))))
    console.error(`seeded ${servers} servers in ${Math.round((performance.now() - startedMs) / 1000)} s`)
  }
  await sql.unsafe('drop database if exists web_run')
  await sql.unsafe(`create database web_run template ${template} strategy file_copy`)
  return Bun.file(known).json()
}

async function newSession(sql: postgres.Sql, userId: string): Promise<string> {
  const token = newSessionToken()
  await sql`insert into sessions (id, token_hash, csrf_token, user_id)
    values (${crypto.randomUUID()}, ${tokenHash(token)}, ${newSessionToken()}, ${userId})`
  return token
}

let seq = 1_000
const openedEvent = (companyId: string) => ({
  ...{ event_id: crypto.randomUUID(), type: 'alert.opened', seq: ++seq, occurred_at: new Date().toISOString() },
  ...{ company_id: companyId, server_id: seededId('server', 1 + (seq % 100)), rule_id: seededId('rule', 1) },
  ...{ rule_version: 1, series_key: `cpu_usage_percent{bench="${seq}"}`, severity: 'critical', value: 97 },
  ...{ threshold: 90, suppressed: false, suppress_reason: null, group_key: null, labels: {} },
})

/** Starts a hub with a company of that many servers. `dir`: where seeded databases are kept; null: nowhere. */
export async function startSeededHub(servers: number, keptIn: string | null): Promise<SeededHub> {
  const dir = keptIn === null ? mkdtempSync(join(tmpdir(), 'bench-web-')) : resolve(keptIn)
  mkdirSync(dir, { recursive: true })
  const store = await startStore(dir)
  const facts = await seededStore(store, dir, servers)
  const collector = new StubCollector(servers)
  const hub = await startHubProcess({
    databaseUrl: store.url('web_run'),
    readyFile: join(dir, 'hub-ready.json'),
    env: {
      SVC_COLLECTOR_ADMIN_URL: collector.url,
      SVC_COLLECTOR_ADMIN_TOKEN: ADMIN_TOKEN,
      // The seeded agents are online for as long as it takes.
      SVC_AGENTS_ONLINE_THRESHOLD: '24h',
      SVC_RATE_WEB_PER_MINUTE: '1000000',
      SVC_RATE_SESSION_PER_MINUTE: '1000000',
    },
  })
  const { url } = hub
  const run = postgres(store.url('web_run'), { max: 1, onnotice: () => {} })
  const collect = caller(url, facts.collectorToken)
  return {
    ...{ url, pid: hub.pid, collector, base: `${url}/c/bench` },
    ids: {
      ...{ server: seededId('server', 8), alert: seededId('alert', 8) },
      ...{ rule: seededId('rule', 21), check: seededId('check', 8) },
    },
    newSession: () => newSession(run, facts.userId),
    openAlert: async () => {
      await collect('POST', '/monitoring/collector/events', { events: [openedEvent(facts.companyId)] })
    },
    stop: async () => {
      await hub.stop()
      await collector.stop()
      await run.end()
      await store.stop()
      if (keptIn === null) rmSync(dir, { recursive: true, force: true })
    },
  }
}

export const cookieOf = (token: string): string => `${sessionCookie}=${token}`
