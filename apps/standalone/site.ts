// A whole site in one process: database, hub, collector, and an agent for this host, started in that order and
// stopped in the other. Every part is the one that runs alone elsewhere; only the wiring is here.
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import type { Logger } from 'pino'
import { type RunningAgent, startAgent } from '../agent/agent.ts'
import { createLogger } from '../collector/telemetry.ts'
import { ensureFirstSite, type FirstSite } from '../hub/bootstrap.ts'
import { type RunningHub, startHub } from '../hub/hub.ts'
import { makeHubRole } from '../hub/platform/db/hub-role.ts'
import type { SiteConfig, SiteOptions } from './config.ts'
import type { DataDir } from './data-dir.ts'
import { freePort } from './ports.ts'
import { startPostgres } from './postgres.ts'
import { type SiteThreads, startSiteCollector } from './site-collector.ts'

/** The facts in the ready file and on the terminal. */
export type SiteInfo = {
  readonly hub_url: string
  readonly agent_url: string
  readonly admin_url: string
  readonly ops_url: string
  readonly database_url: string
  readonly company_id: string
  readonly user_email: string
  /** First start only. */
  readonly user_password: string | null
  readonly api_token: string
  readonly admin_token: string
  readonly collector_token: string
  readonly matcher_token: string
  readonly license: string
  readonly data_dir: string
  readonly pid: number
}

export type RunningSite = { readonly facts: SiteInfo; stop(): Promise<void> }

/** Shown on the terminal as each part starts. */
type Progress = (part: string) => void

const newSecret = (): string => randomBytes(32).toString('hex')

/** Addresses of this host, by which the hub may know it. */
const ownAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap(addresses =>
    (addresses ?? []).filter(one => !one.internal).map(one => one.address),
  )

/** Replaces port 0 of the admin API by a free port before it is served, because the hub needs the address first. */
function withPort(address: string): string {
  return address.endsWith(':0') ? `${address.slice(0, -1)}${freePort()}` : address
}

type SiteStart = {
  readonly options: SiteOptions
  readonly config: SiteConfig
  readonly dataDir: DataDir
  readonly threads: SiteThreads
  readonly withLocalAgent: boolean
  readonly progress: Progress
  readonly onFailure: (error: Error) => void
}

/** Starts everything. Rejects, with all that was started stopped again, when a part cannot start. */
export async function startSite(start: SiteStart): Promise<RunningSite> {
  const started = new AsyncDisposableStack()
  try {
    return await startParts(start, started)
  } catch (error) {
    // An error of this clean-up must not replace the one that caused it.
    await started.disposeAsync().catch(() => {})
    throw error
  }
}

async function startParts(start: SiteStart, started: AsyncDisposableStack): Promise<RunningSite> {
  const { options, config, dataDir, progress } = start
  for (const folder of ['logs', 'collector', 'agent']) mkdirSync(dataDir.of(folder), { recursive: true, mode: 0o700 })
  const log = createLogger(config.logLevel, 'all', dataDir.of('logs', 'site.log'))
  const secrets = openSecrets(dataDir)
  const databaseUrl = await startDatabase(start, secrets, started)

  progress('hub')
  const listen = { admin: withPort(options.adminListen), agent: withPort(options.agentListen) }
  const hub = await startSiteHub(start, databaseUrl, listen, secrets, log)
  started.defer(() => hub.stop())
  const first = await ensureFirst(start, hub, listen, secrets)

  const collector = await startSiteCollector(
    {
      ...start,
      config: config.collector({
        data_dir: dataDir.of('collector'),
        listen: listen.agent,
        'hub.url': hub.url,
        'hub.token': secrets.collector_token!,
        collector_id: first.collectorId,
        'admin.token': secrets.admin_token!,
        'admin.listen': listen.admin,
      }),
      opsListen: options.opsListen,
      hub,
      collectorId: first.collectorId,
      token: secrets.collector_token!,
      log,
    },
    started,
  )
  const agent = start.withLocalAgent ? await startLocalAgent(start, collector.agentUrl, secrets.license!, log) : null
  if (agent) started.defer(() => agent.stop())

  const facts: SiteInfo = {
    hub_url: hub.url,
    agent_url: collector.agentUrl,
    admin_url: collector.adminUrl,
    ops_url: collector.opsUrl,
    database_url: databaseUrl,
    company_id: first.companyId,
    user_email: first.userEmail,
    user_password: first.userPassword,
    api_token: secrets.api_token!,
    admin_token: secrets.admin_token!,
    collector_token: secrets.collector_token!,
    matcher_token: secrets.matcher_token!,
    license: secrets.license!,
    data_dir: dataDir.path,
    pid: process.pid,
  }
  return { facts, stop: () => stopAll(started, log) }
}

/** Stops every part, the last started first; a part that fails is logged, and the others are still stopped. */
async function stopAll(started: AsyncDisposableStack, log: Logger): Promise<void> {
  try {
    await started.disposeAsync()
  } catch (failure) {
    for (const error of errorsOf(failure)) log.error({ err: error }, 'a part did not stop in order')
  }
}

/** The errors of a disposal in the order in which they came: each holds those before it. */
const errorsOf = (failure: unknown): unknown[] =>
  failure instanceof SuppressedError ? [...errorsOf(failure.suppressed), failure.error] : [failure]

/** The secrets by name. */
type Secrets = Record<string, string>

/** Those of the data directory, and the first ones where it is new: kept before anything is started with them. */
function openSecrets(dataDir: DataDir): Secrets {
  const secrets: Secrets = {
    postgres_password: newSecret(),
    database_password: newSecret(),
    admin_token: newSecret(),
    ...dataDir.secrets,
  }
  dataDir.saveSecrets(secrets)
  return secrets
}

/** Starts PostgreSQL; resolves to the address under which the hub has its own role. */
async function startDatabase(
  { dataDir, progress }: SiteStart,
  secrets: Secrets,
  started: AsyncDisposableStack,
): Promise<string> {
  progress('PostgreSQL')
  const log = dataDir.of('logs', 'postgres.log')
  const postgres = await startPostgres(dataDir.of('postgres'), secrets.postgres_password!, log)
  started.defer(() => postgres.stop())
  return makeHubRole(postgres.url, secrets.database_password!)
}

/** Where the collector is going to serve: the hub is told of it first. */
type CollectorListen = { readonly admin: string; readonly agent: string }

const startSiteHub = (
  { config }: SiteStart,
  databaseUrl: string,
  listen: CollectorListen,
  secrets: Secrets,
  log: Logger,
): Promise<RunningHub> =>
  startHub({
    config: config.hub({
      'database.url': databaseUrl,
      'collector.admin_token': secrets.admin_token!,
      'collector.admin_url': `http://${listen.admin}`,
    }),
    log,
  })

/** Company, user, collector and their tokens, made where they are not there yet; the tokens are kept. */
async function ensureFirst(
  { dataDir, withLocalAgent }: SiteStart,
  { hub }: RunningHub,
  listen: CollectorListen,
  secrets: Secrets,
): Promise<FirstSite> {
  const first = await ensureFirstSite(hub, {
    kept: {
      apiToken: secrets.api_token,
      collectorToken: secrets.collector_token,
      matcherToken: secrets.matcher_token,
      license: secrets.license,
    },
    collectorAdminUrl: `http://${listen.admin}`,
    collectorAdminToken: secrets.admin_token!,
    collectorBaseUrl: `http://${listen.agent}`,
    localHost: withLocalAgent ? { hostname: hostname(), ipAddresses: ownAddresses() } : null,
  })
  Object.assign(secrets, {
    api_token: first.apiToken,
    collector_token: first.collectorToken,
    matcher_token: first.matcherToken,
    license: first.license,
  })
  dataDir.saveSecrets(secrets)
  return first
}

async function startLocalAgent(
  { config, dataDir, progress }: SiteStart,
  url: string,
  license: string,
  log: ReturnType<typeof createLogger>,
): Promise<RunningAgent> {
  progress('agent for this host')
  const options = config.agent({ collector_url: url, license, state_dir: dataDir.of('agent') })
  return startAgent({ options, log: log.child({ part: 'agent' }), firstSendImmediately: true })
}
