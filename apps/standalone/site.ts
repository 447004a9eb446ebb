// A whole site in one process: database, hub, collector, and an agent for this host, started in that order and
// stopped in the other. Every part is the one that runs alone elsewhere; only the wiring is here.
import { existsSync, mkdirSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import type { Logger } from 'pino'
import { type RunningAgent, startAgent } from '../agent/agent.ts'
import { SCAN_HOST_FILE } from '../agent/config.ts'
import type { AllCollectorConfig } from '../collector/config.ts'
import { createLogger } from '../collector/telemetry.ts'
import type { HubConfig } from '../hub/config.ts'
import { ensureFirstSite, type FirstSite } from '../hub/first-site.ts'
import { type RunningHub, startHub } from '../hub/hub.ts'
import { makeHubRole } from '../hub/platform/db/hub-role.ts'
import type { MatcherConfig } from '../matcher/config.ts'
import type { OpenMatcher } from '../matcher/open-matcher.ts'
import type { SiteConfig, SiteOptions } from './config.ts'
import type { DataDir } from './data-dir.ts'
import { openSecrets, type Secrets } from './first-secrets.ts'
import { freePort } from './ports.ts'
import { startPostgres } from './postgres.ts'
import { type RunningCollector, type SiteThreads, startSiteCollector } from './site-collector.ts'
import { scanHostOf, startSiteMatcher } from './site-matcher.ts'

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
  /** The scan API, the internal API and its token; null without a matcher. */
  readonly matcher_url: string | null
  readonly matcher_admin_url: string | null
  readonly matcher_admin_token: string | null
  /** Null without a local agent. */
  readonly scan_host_id: string | null
  readonly data_dir: string
  readonly pid: number
}

export type RunningSite = {
  readonly facts: SiteInfo
  /**
   * Each part takes over what it takes over when it runs alone, certificates among it. What cannot be read again is
   * logged, and what was read before stays in force.
   */
  reload(read: () => SiteConfig): Promise<void>
  stop(): Promise<void>
}

/** Shown on the terminal as each part starts. */
type Progress = (part: string) => void

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
  /** A line on the terminal. */
  readonly say: (line: string) => void
  readonly onFailure: (error: Error) => void
  /** Whether the site was asked to end: a service manager may ask its PostgreSQL at the same time. */
  readonly isStopping: () => boolean
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
  for (const folder of ['logs', 'collector', 'agent', 'matcher'])
    mkdirSync(dataDir.of(folder), { recursive: true, mode: 0o700 })
  const log = createLogger(config.logLevel, 'all', dataDir.of('logs', 'site.log'))
  const secrets = openSecrets(dataDir)
  const databaseUrl = await startDatabase(start, secrets, started)

  progress('hub')
  const listen = {
    admin: withPort(options.adminListen),
    agent: withPort(options.agentListen),
    matcherAdmin: options.matcher ? withPort(options.matcherAdminListen) : null,
  }
  const hub = await startHub({ config: hubConfigOf(config, databaseUrl, listen, secrets), log })
  started.defer(() => hub.stop())
  const first = await ensureFirst(start, hub, listen, secrets)
  const otherMetrics = [() => hub.hub.metrics.registry.metrics()]

  const given = { hub, first, secrets, log }
  const collector = await startSiteCollector(
    {
      ...start,
      config: collectorConfigOf(config, start, listen, given),
      opsListen: options.opsListen,
      otherMetrics,
      hub,
      collectorId: first.collectorId,
      token: secrets.collector_token!,
      log,
    },
    started,
  )
  const matcher = listen.matcherAdmin === null ? null : await startMatcher(start, listen.matcherAdmin, given, started)
  if (matcher) otherMetrics.push(() => matcher.metrics.scrape())
  const agent = start.withLocalAgent ? await startLocalAgent(start, collector.agentUrl, matcher, given) : null
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
    matcher_url: matcher?.scanUrl ?? null,
    matcher_admin_url: matcher?.adminUrl ?? null,
    matcher_admin_token: matcher ? secrets.matcher_admin_token! : null,
    scan_host_id:
      matcher && first.localServerId ? await scanHostOf(hub.hub, first.localServerId, first.scanCode !== null) : null,
    data_dir: dataDir.path,
    pid: process.pid,
  }
  const reloads = reloadsOf(start, databaseUrl, listen, given, { collector, matcher })
  return { facts, reload: read => reloadAll(log, read, reloads), stop: () => stopAll(started, log) }
}

type ReloadPart = (fresh: SiteConfig) => Promise<void> | void

function reloadsOf(
  start: SiteStart,
  databaseUrl: string,
  listen: PartListen,
  given: Started,
  { collector, matcher }: { readonly collector: RunningCollector; readonly matcher: OpenMatcher | null },
): Readonly<Record<string, ReloadPart>> {
  const reloads: Record<string, ReloadPart> = {}
  for (const [part, reload] of Object.entries(collector.reloads))
    reloads[part] = fresh => reload(collectorConfigOf(fresh, start, listen, given))
  reloads.hub = fresh => given.hub.reload(hubConfigOf(fresh, databaseUrl, listen, given.secrets))
  if (matcher && listen.matcherAdmin !== null) {
    const { matcherAdmin } = listen
    reloads.matcher = fresh => matcher.reload(matcherConfigOf(fresh, start, matcherAdmin, given))
  }
  return reloads
}

/** One by one: what one part cannot read again must not keep the others from it. */
async function reloadAll(
  log: Logger,
  read: () => SiteConfig,
  parts: Readonly<Record<string, ReloadPart>>,
): Promise<void> {
  const told = 'cannot reload; what was read before stays in force'
  let fresh: SiteConfig
  try {
    fresh = read()
  } catch (error) {
    log.error({ err: error }, told)
    return
  }
  log.level = fresh.logLevel
  for (const [part, reload] of Object.entries(parts))
    try {
      await reload(fresh)
      log.info({ part }, 'read again')
    } catch (error) {
      log.error({ err: error, part }, told)
    }
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

/** Starts PostgreSQL; resolves to the address under which the hub has its own role. */
async function startDatabase(
  { dataDir, progress, onFailure, isStopping }: SiteStart,
  secrets: Secrets,
  started: AsyncDisposableStack,
): Promise<string> {
  progress('PostgreSQL')
  const log = dataDir.of('logs', 'postgres.log')
  const postgres = await startPostgres(dataDir.of('postgres'), secrets.postgres_password!, log)
  started.defer(() => postgres.stop())
  void postgres.ended.then(() => {
    if (!isStopping()) onFailure(new Error(`PostgreSQL ended; ${log} says why`))
  })
  return makeHubRole(postgres.url, secrets.database_password!)
}

/** Where collector and matcher are going to serve: the hub is told of it first. */
type PartListen = { readonly admin: string; readonly agent: string; readonly matcherAdmin: string | null }

const hubConfigOf = (config: SiteConfig, databaseUrl: string, listen: PartListen, secrets: Secrets): HubConfig =>
  config.hub({
    'database.url': databaseUrl,
    'collector.admin_token': secrets.admin_token!,
    'collector.admin_url': `${config.scheme}://${listen.admin}`,
    ...(listen.matcherAdmin === null
      ? {}
      : {
          'matcher.url': `${config.scheme}://${listen.matcherAdmin}`,
          'matcher.token': secrets.matcher_admin_token!,
        }),
  })

/** Company, user, collector and their tokens, made where they are not there yet; the tokens are kept. */
async function ensureFirst(
  { options, config, dataDir, withLocalAgent }: SiteStart,
  { hub }: RunningHub,
  listen: PartListen,
  secrets: Secrets,
): Promise<FirstSite> {
  const first = await ensureFirstSite(hub, {
    kept: {
      apiToken: secrets.api_token,
      collectorToken: secrets.collector_token,
      matcherToken: secrets.matcher_token,
      license: secrets.license,
    },
    collectorAdminUrl: `${config.scheme}://${listen.admin}`,
    collectorAdminToken: secrets.admin_token!,
    collectorBaseUrl: `${config.scheme}://${listen.agent}`,
    localHost: withLocalAgent
      ? {
          hostname: hostname(),
          ipAddresses: ownAddresses(),
          needsScanCode: options.matcher && !existsSync(dataDir.of('agent', SCAN_HOST_FILE)),
        }
      : null,
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

type Started = { readonly hub: RunningHub; readonly first: FirstSite; readonly secrets: Secrets; readonly log: Logger }

const collectorConfigOf = (
  config: SiteConfig,
  { dataDir }: SiteStart,
  listen: PartListen,
  { hub, first, secrets }: Started,
): AllCollectorConfig =>
  config.collector({
    data_dir: dataDir.of('collector'),
    listen: listen.agent,
    'hub.url': hub.url,
    'hub.token': secrets.collector_token!,
    collector_id: first.collectorId,
    'admin.token': secrets.admin_token!,
    'admin.listen': listen.admin,
  })

const matcherConfigOf = (
  config: SiteConfig,
  { dataDir }: SiteStart,
  adminListen: string,
  { hub, first, secrets }: Started,
): MatcherConfig =>
  config.matcher({
    data_dir: dataDir.of('matcher'),
    'admin.listen': adminListen,
    'admin.token': secrets.matcher_admin_token!,
    'hub.url': hub.url,
    'hub.token': secrets.matcher_token!,
    matcher_id: first.matcherId,
  })

async function startMatcher(
  start: SiteStart,
  adminListen: string,
  given: Started,
  started: AsyncDisposableStack,
): Promise<OpenMatcher> {
  const { config, options, progress, say } = start
  const { log } = given
  progress('security matcher')
  return startSiteMatcher(
    {
      config: matcherConfigOf(config, start, adminListen, given),
      securityDb: options.securityDb,
      log: log.child({ part: 'matcher' }),
      say,
    },
    started,
  )
}

/** The agent of this host; its packages are reported to the matcher, if there is one. */
async function startLocalAgent(
  { config, dataDir, progress }: SiteStart,
  agentUrl: string,
  matcher: OpenMatcher | null,
  { first, secrets, log }: Started,
): Promise<RunningAgent> {
  progress('agent for this host')
  const options = config.agent({
    collector_url: agentUrl,
    license: secrets.license!,
    state_dir: dataDir.of('agent'),
    ...(matcher ? { 'scan.matcher_url': matcher.scanUrl } : {}),
    ...(first.scanCode ? { 'scan.enrol_code': first.scanCode } : {}),
  })
  return startAgent({ options, log: log.child({ part: 'agent' }), firstSendImmediately: true })
}
