// A real hub on a real database for tests over HTTP: started once a test file, with companies and tokens made as the
// commands make them.
import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { createCompany } from '../../apps/hub/companies/companies.ts'
import { loadHubConfig } from '../../apps/hub/config.ts'
import { type RunningHub, startHub } from '../../apps/hub/hub.ts'
import { createToken, createUser } from '../../apps/hub/identity/accounts.ts'
import { createCollector, createMatcher } from '../../apps/hub/identity/service-accounts.ts'
import type { PlanOverrides } from '../../apps/hub/platform/db/schema-identity.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { createLogger } from '../../apps/hub/platform/telemetry.ts'
import { newHubDatabase, stopPostgres } from '../support/postgres.ts'
import { disagreement, operationFor } from './answers.ts'

// biome-ignore lint/suspicious/noExplicitAny: an answer is whatever came over HTTP; tests assert on it.
export type Json = any
export type Answer = { status: number; headers: Headers; body: Json }
export type Call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answer>

const NEVER = null
const MANY = 1_000_000

/**
 * Throws for an answer that the OpenAPI document does not have. 405 and 404 of paths that no route has are in no
 * operation.
 */
function holdToDocument(method: string, path: string, { status, headers, body }: Answer): void {
  const { pathname } = new URL(path.startsWith('/api') ? path : `/api/v1${path}`, 'http://hub')
  const operation = operationFor(method, pathname)
  const fault = operation && disagreement(operation, status, headers.get('content-type'), body)
  if (fault) throw new Error(`${method} ${path}: ${fault}: ${JSON.stringify(body)?.slice(0, 1000)}`)
}

/** Calls the API with a token; paths are below /api/v1 unless they start with /api. */
export function caller(url: string, token: string | null): Call {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(path.startsWith('/api') ? `${url}${path}` : `${url}/api/v1${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { Authorization: `Bearer ${token}` }),
        Accept: 'application/json',
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const answer = { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
    holdToDocument(method, path, answer)
    return answer
  }
}

export type Tenant = { companyId: string; userId: string; email: string; token: string; call: Call }

export class TestHub {
  private constructor(
    readonly running: RunningHub,
    readonly databaseUrl: string,
  ) {}

  static async start(settings: Record<string, unknown> = {}, log?: Logger): Promise<TestHub> {
    return TestHub.on(await newHubDatabase(), settings, log)
  }

  /** A further hub on the database of this one, which goes on without it. */
  peer(settings: Record<string, unknown> = {}, log?: Logger): Promise<TestHub> {
    return TestHub.on(this.databaseUrl, settings, log)
  }

  private static async on(
    databaseUrl: string,
    settings: Record<string, unknown>,
    log: Logger = createLogger(process.env.HUB_TEST_LOG ?? 'fatal'),
  ): Promise<TestHub> {
    const { config, faults } = loadHubConfig(undefined, {
      'database.url': databaseUrl,
      listen: '127.0.0.1:0',
      'ops.listen': '127.0.0.1:0',
      'log.level': 'fatal',
      'jobs.backoff_scale': 0.0002,
      // Tests give events fixed times; the clean-up must not take them in mid-test.
      'events.retention_days': 3650,
      'rate.default_per_minute': MANY,
      'rate.collector_per_minute': MANY,
      'rate.matcher_per_minute': MANY,
      'rate.enroll_per_minute': MANY,
      'rate.enroll_failures': MANY,
      'rate.mail_per_minute': MANY,
      ...settings,
    })
    if (faults.length > 0) throw new Error(JSON.stringify(faults))
    return new TestHub(await startHub({ config, log }), databaseUrl)
  }

  get url(): string {
    return this.running.url
  }

  get hub() {
    return this.running.hub
  }

  /** Keeps a task of the clock from running, for a test that runs it itself and looks at what came of it. */
  async holdTask(name: string): Promise<void> {
    await this.hub.database.client`
      insert into system_settings (key, value, updated_at) values (${`schedule.${name}`}, 'true', now() + interval '1 day')
      on conflict (key) do update set updated_at = excluded.updated_at`
  }

  /** A company with an administrator and a token of theirs. */
  async tenant(
    overrides: PlanOverrides = { agent_quota: null, metrics_retention_days: null },
    more: { parentId?: string; personal?: boolean; planCode?: string } = {},
  ): Promise<Tenant> {
    const companyId = await inTransaction(
      this.hub.database.db,
      async tx => (await createCompany(this.hub, tx, { name: `Company ${randomUUID()}`, overrides, ...more })).id,
    )
    const user = await this.user(companyId, ['*'])
    return { companyId, ...user }
  }

  /** A user of a company with a token of theirs. */
  async user(
    companyId: string,
    permissions: string[],
    options: { superAdmin?: boolean; tokenPermissions?: string[] } = {},
  ): Promise<Omit<Tenant, 'companyId'>> {
    const email = `${randomUUID()}@example.test`
    return inTransaction(this.hub.database.db, async tx => {
      const user = await createUser(tx, {
        companyId,
        email,
        name: 'Test user',
        permissions,
        superAdmin: options.superAdmin ?? false,
      })
      const { token } = await createToken(tx, {
        userId: user.id,
        name: 'test',
        permissions: options.tokenPermissions ?? null,
        expiresAt: NEVER,
      })
      return { userId: user.id, email, token, call: caller(this.url, token) }
    })
  }

  /** A further token of a user. */
  async token(
    userId: string,
    options: { permissions?: string[]; ipRanges?: string[]; rate?: number; expiresAt?: Date | null } = {},
  ): Promise<{ id: string; token: string; call: Call }> {
    const made = await inTransaction(this.hub.database.db, tx =>
      createToken(tx, {
        userId,
        name: 'test',
        permissions: options.permissions ?? null,
        ipRanges: options.ipRanges ?? null,
        ratePerMinute: options.rate ?? null,
        expiresAt: options.expiresAt ?? NEVER,
      }),
    )
    return { ...made, call: caller(this.url, made.token) }
  }

  /** A collector's service account; calls are below /monitoring/collector. */
  async collector(
    adminUrl: string | null = null,
  ): Promise<{ id: string; token: string; adminToken: string; call: Call }> {
    const made = await inTransaction(this.hub.database.db, tx =>
      createCollector(this.hub, tx, { name: 'Test collector', adminUrl }),
    )
    const call = caller(this.url, made.token)
    return {
      id: made.id,
      token: made.token,
      adminToken: made.adminToken ?? '',
      call: (method, path, body, headers) => call(method, `/monitoring/collector${path}`, body, headers),
    }
  }

  /** A matcher's service account, allowed from loopback; calls are below /security/matcher. */
  async matcher(ipRanges: readonly string[] = ['127.0.0.0/8']): Promise<{ id: string; token: string; call: Call }> {
    const made = await inTransaction(this.hub.database.db, tx => createMatcher(tx, 'Test matcher', ipRanges))
    const call = caller(this.url, made.token)
    return {
      id: made.id,
      token: made.token,
      call: (method, path, body, headers) => call(method, `/security/matcher${path}`, body, headers),
    }
  }

  async stop(): Promise<void> {
    await this.running.stop()
    await stopPostgres()
  }
}

/** Waits until `probe` gives a value that is neither null nor false; fails after thirty seconds. */
export async function until<T>(what: string, probe: () => Promise<T | null | false | undefined>): Promise<T> {
  const deadline = performance.now() + 30_000
  for (;;) {
    const value = await probe()
    if (value) return value
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await Bun.sleep(20)
  }
}
