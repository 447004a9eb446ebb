// The hub's client of the collectors' admin API. Queries: 3 s, one retry, a circuit breaker a collector (decision
// G-124: five failures in a row within 60 s, then 30 s without a call, then one to try); an answer of null means that
// the collector cannot answer, which is never an error of the request. Calls made by jobs (reload, push, purge) go
// outside the breaker and throw, so that the job is tried again.
import { circuitBreaker, handleAll, type IBreaker, type IPolicy, retry, wrap } from 'cockatiel'
import { sql } from 'drizzle-orm'
import type { Logger } from 'pino'
import { adminPrefix, type FieldFault, faultsHeader, parseFaults } from '../../../core/admin-api/envelope.ts'
import {
  companyValuesPath,
  mergeValues,
  type PackedValues,
  parseCompanyValues,
} from '../../../core/admin-api/values.ts'
import { isLoopback } from '../../../core/config/address.ts'
import { limits } from '../../../core/limits.ts'
import type { HubConfig } from '../config.ts'
import type { Sealer } from '../identity/sealer.ts'
import type { Database, Executor } from '../platform/db/connect.ts'
import type { HubMetrics } from '../platform/telemetry.ts'

type CollectorTarget = { readonly id: string; readonly adminUrl: string; readonly adminToken: string }
/** Why this hub cannot call a collector. */
export type Unreachable = 'not_registered' | 'no_address' | 'no_token' | 'refused_address'
export type CollectorResponse = {
  readonly status: number
  readonly body: unknown
  /** The parameters that the collector refused. */
  readonly faults: readonly FieldFault[]
}

const BREAK_AFTER_FAILURES = 5
const BREAK_WINDOW_MS = 60_000
const HALF_OPEN_AFTER_MS = 30_000
/** The id of the collector in the configuration, when no collector is registered. */
const CONFIGURED_ID = 'configured'

type TargetRow = { id: string; admin_url: string | null; admin_token_sealed: string | null }

/** Breaks after this many failures in a row, if the first of them lies within the window. */
export class FailuresInWindow implements IBreaker {
  /** When the failures since the last success were, as many as count; oldest first. */
  state: number[] = []

  constructor(
    private readonly failuresMax: number,
    private readonly windowMs: number,
    private readonly now: () => number,
  ) {}

  success(): void {
    this.state = []
  }

  failure(): boolean {
    const nowMs = this.now()
    this.state = [...this.state, nowMs].slice(-this.failuresMax)
    return this.state.length === this.failuresMax && nowMs - (this.state[0] ?? 0) <= this.windowMs
  }
}

export class CollectorClient {
  private readonly policies = new Map<string, IPolicy>()

  constructor(
    private readonly config: HubConfig,
    private readonly database: Database,
    private readonly sealer: Sealer,
    private readonly log: Logger,
    private readonly metrics: HubMetrics,
  ) {}

  private toTarget(row: TargetRow): CollectorTarget | null {
    const reached = this.reachOf(row)
    return typeof reached === 'string' ? null : reached
  }

  private reachOf(row: TargetRow): CollectorTarget | Unreachable {
    const usesConfigured = row.admin_url === null
    const adminUrl = row.admin_url ?? this.config['collector.admin_url']
    const sealed = row.admin_token_sealed === null ? null : this.sealer.open(row.admin_token_sealed)
    const adminToken = usesConfigured ? (this.config['collector.admin_token'] ?? sealed) : sealed
    if (!adminUrl) return 'no_address'
    if (!adminToken) return 'no_token'
    const url = URL.parse(adminUrl)
    if (!url) return 'refused_address'
    if (url.protocol === 'http:' && !isLoopback(url.hostname) && !this.config['listen.insecure']) {
      this.log.error({ collector_id: row.id }, 'plain http to another server is refused: the collector is not called')
      return 'refused_address'
    }
    return { id: row.id, adminUrl: adminUrl.replace(/\/+$/, ''), adminToken }
  }

  private configured(): CollectorTarget | null {
    return this.toTarget({ id: CONFIGURED_ID, admin_url: null, admin_token_sealed: null })
  }

  /** Every registered collector that can be called; online ones first. */
  async targets(db: Executor = this.database.db): Promise<CollectorTarget[]> {
    const rows = await db.execute<TargetRow>(sql`
      select id, admin_url, admin_token_sealed from monitoring_collectors
      order by coalesce(last_heartbeat_at > now() - make_interval(secs => ${limits.collectorOnlineMs / 1000}), false) desc,
        internal_id`)
    const targets = rows.map(row => this.toTarget(row)).filter(target => target !== null)
    if (rows.length > 0) return targets
    const configured = this.configured()
    return configured ? [configured] : []
  }

  /**
   * The ids of every registered collector, for jobs that run later: a command of the hub may know neither the key that
   * opens their tokens nor the address in the configuration of the running hub.
   */
  async ids(db: Executor): Promise<string[]> {
    const rows = await db.execute<{ id: string }>(sql`select id from monitoring_collectors order by internal_id`)
    if (rows.length > 0) return rows.map(row => row.id)
    return this.configured() ? [CONFIGURED_ID] : []
  }

  /** A collector by id, or the reason why it cannot be called. */
  async reach(id: string): Promise<CollectorTarget | Unreachable> {
    if (id === CONFIGURED_ID) return this.configured() ?? 'not_registered'
    const rows = await this.database.db.execute<TargetRow>(
      sql`select id, admin_url, admin_token_sealed from monitoring_collectors where id = ${id}`,
    )
    return rows[0] ? this.reachOf(rows[0]) : 'not_registered'
  }

  async target(id: string): Promise<CollectorTarget | null> {
    const reached = await this.reach(id)
    return typeof reached === 'string' ? null : reached
  }

  /** The collector to ask about a server: its agent's, else the first online one; null when there is none. */
  async targetOfServer(companyId: string, serverId: string): Promise<CollectorTarget | null> {
    const rows = await this.database.db.execute<TargetRow>(sql`
      select c.id, c.admin_url, c.admin_token_sealed from monitoring_agents a
      join monitoring_collectors c on c.id = a.collector_id
      where a.company_id = ${companyId} and a.server_id = ${serverId} and a.state <> 'revoked'
      order by a.enrolled_at desc limit 1`)
    const own = rows[0] ? this.toTarget(rows[0]) : null
    return own ?? (await this.targets())[0] ?? null
  }

  /** The collectors that a company's agents report to; the first online one when none is known. */
  private async targetsOfCompany(companyId: string): Promise<CollectorTarget[]> {
    const rows = await this.database.db.execute<TargetRow>(sql`
      select id, admin_url, admin_token_sealed from monitoring_collectors where id in (
        select collector_id from monitoring_agents where company_id = ${companyId} and state <> 'revoked')`)
    const own = rows.map(row => this.toTarget(row)).filter(target => target !== null)
    return own.length > 0 ? own : (await this.targets()).slice(0, 1)
  }

  /**
   * The newest value of a metric on every server of a company that has one; of a server that two collectors know, the
   * newer. Null: none of the collectors can answer. `isWhole` is false when some of it may be missing.
   */
  async valuesOfCompany(companyId: string, metric: string): Promise<(PackedValues & { isWhole: boolean }) | null> {
    const targets = await this.targetsOfCompany(companyId)
    const path = companyValuesPath(companyId, metric)
    const answers = await Promise.all(targets.map(target => this.query(target, 'values', path)))
    const columns = answers.map(answer => (answer?.status === 200 ? parseCompanyValues(answer.body) : null))
    const known = columns.filter(each => each !== null)
    if (known.length === 0) return null
    const isWhole = known.length === targets.length && known.every(each => !each.truncated)
    return { ...mergeValues(known), isWhole }
  }

  /** One call; throws on network faults and on an answer later than `timeoutMs`. */
  async call(
    target: CollectorTarget,
    method: string,
    path: string,
    body: unknown,
    timeoutMs: number,
  ): Promise<CollectorResponse> {
    const response = await fetch(`${target.adminUrl}${adminPrefix}${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${target.adminToken}`,
        Accept: 'application/json',
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    let parsed: unknown = null
    try {
      parsed = text === '' ? null : JSON.parse(text)
    } catch {
      if (response.ok) throw new Error('the collector answered something that is not JSON')
    }
    return { status: response.status, body: parsed, faults: parseFaults(response.headers.get(faultsHeader)) }
  }

  private policyOf(id: string): IPolicy {
    const known = this.policies.get(id)
    if (known) return known
    const breaker = circuitBreaker(handleAll, {
      halfOpenAfter: HALF_OPEN_AFTER_MS,
      breaker: new FailuresInWindow(BREAK_AFTER_FAILURES, BREAK_WINDOW_MS, Date.now),
    })
    const policy = wrap(retry(handleAll, { maxAttempts: 1 }), breaker)
    this.policies.set(id, policy)
    return policy
  }

  /** A query, with retry and breaker. Null: the collector cannot answer. 4xx answers are answers. */
  async query(target: CollectorTarget, name: string, path: string): Promise<CollectorResponse | null> {
    try {
      const answer = await this.policyOf(target.id).execute(async () => {
        const got = await this.call(target, 'GET', path, undefined, this.config['collector.timeout'])
        if (got.status >= 500) throw new Error(`the collector answered ${got.status}`)
        return got
      })
      const isRefused = answer.status === 401 || answer.status === 403
      if (isRefused) this.log.error({ collector_id: target.id }, 'the collector refuses the admin token')
      this.metrics.collectorRequests.inc({ call: name, result: isRefused ? 'refused' : 'ok' })
      return isRefused ? null : answer
    } catch (error) {
      this.log.warn({ collector_id: target.id, call: name, error: String(error) }, 'the collector cannot answer')
      this.metrics.collectorRequests.inc({ call: name, result: 'unavailable' })
      return null
    }
  }
}
