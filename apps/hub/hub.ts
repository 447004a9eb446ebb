// Starts a hub: database, services, listeners. Used by main.ts and by the all-in-one executable.

import { randomUUID } from 'node:crypto'
import pTimeout from 'p-timeout'
import type { Logger } from 'pino'
import { splitAddress } from '../../core/config/address.ts'
import { errorLine } from '../../core/error-info.ts'
import { answersToHost, hostRefusal } from '../../core/network/host-header.ts'
import { FixedWindows } from '../http/fixed-windows.ts'
import type { IncomingRequest } from '../http/http-request.ts'
import { warnOfCertificate } from '../process/certificate-files.ts'
import { CollectorClient } from './collectors/collector-client.ts'
import { registerCollectorJobs } from './collectors/collector-jobs.ts'
import type { HubConfig } from './config.ts'
import { registerExportJobs } from './exports/write-export.ts'
import type { Hub } from './hub-context.ts'
import { registerApplyJobs } from './iac/apply.ts'
import { identity } from './identity/authenticate.ts'
import { storeBuiltInRoles } from './identity/built-in-roles.ts'
import { loadSealer } from './identity/sealing-keys.ts'
import { allKinds, kinds } from './kinds.ts'
import { Bell } from './notifications/bell.ts'
import { registerNotificationJobs } from './notifications/dispatch.ts'
import { createApp, type Page } from './platform/app.ts'
import { type Database, openDatabase } from './platform/db/connect.ts'
import { encodingWarning, isMigrated, MigrationError, migrateDatabase } from './platform/db/migrate.ts'
import { Links } from './platform/http/link-origin.ts'
import { type Listener, StartError, startListener } from './platform/http/listener.ts'
import { OpenStreams } from './platform/http/open-streams.ts'
import { installQueues } from './platform/jobs/job-store.ts'
import { Jobs } from './platform/jobs/jobs.ts'
import { createMetrics } from './platform/telemetry.ts'
import { registerMatcherJobs } from './purge/matcher-purge.ts'
import { joinProcesses } from './queues/living-processes.ts'
import { applyReload } from './reload.ts'
import { registerRuns } from './resources/runs.ts'
import { apiRoutes } from './routes.ts'
import { registerSchedule, startSchedule } from './schedule.ts'
import { registerExceptionJobs } from './security/exceptions/exception-findings.ts'
import { registerExportJobs as registerSecurityExportJobs } from './security/exports/exports.ts'
import { EarlySums } from './security/findings/early-sums.ts'
import { registerRating } from './security/matcher/vulnerabilities.ts'
import { MatcherClient } from './security/packages/matcher-client.ts'
import { MatcherStatus } from './security/packages/matcher-status.ts'
import { registerCommandJobs } from './system/commands/command-jobs.ts'
import { SystemState } from './system-state/system-state.ts'
import { productVersion } from './version.ts'

const MINUTE_MS = 60_000
/** How long a scrape waits for the depths of the queues: it is wanted most while the database does not answer. */
const DEPTHS_WAIT_MS = 2000

export type RunningHub = {
  /** Where the API is served, without a slash at the end. */
  readonly url: string
  /** Where /healthz, /readyz and /metrics are served; null when they are not. */
  readonly opsUrl: string | null
  readonly hub: Hub
  /** Takes over a certificate and settings that were read again. Throws for a certificate that cannot be used. */
  reload(fresh: HubConfig): void
  stop(): Promise<void>
}

type HubOptions = {
  readonly config: HubConfig
  readonly log: Logger
  /** The web interface, unless others are given. */
  readonly pages?: readonly Page[]
}

/**
 * Builds the hub's services on an open, migrated database. Nothing listens and no job runs yet; `isServing` when they
 * will.
 */
export async function createHub(config: HubConfig, log: Logger, database: Database, isServing = false): Promise<Hub> {
  const metrics = createMetrics(productVersion)
  const { sealer, lack } = await loadSealer(config, database.db, isServing)
  if (lack !== null) log.error(lack)
  const now = () => Date.now()
  const matcher = new MatcherClient(config, log, metrics)
  const jobs = new Jobs(database, log, metrics, config['jobs.poll'], config['jobs.backoff_scale'])
  const hub: Hub = {
    processId: randomUUID(),
    startedAtMs: now(),
    config,
    database,
    log,
    metrics,
    sealer,
    identity,
    collectors: new CollectorClient(config, database, sealer, log, metrics),
    matcher,
    matcherStatus: new MatcherStatus(matcher),
    findingSums: new EarlySums(database.db, log),
    jobs,
    state: new SystemState(config, database, sealer, jobs, log, now),
    bell: new Bell(),
    links: new Links(config),
    streams: new OpenStreams(config),
    kinds: allKinds,
    requestWindows: new FixedWindows(MINUTE_MS, now),
    failureWindows: new FixedWindows(10 * MINUTE_MS, now),
    now,
  }
  await hub.state.refresh()
  registerCollectorJobs(hub)
  registerNotificationJobs(hub)
  registerMatcherJobs(hub)
  registerRating(hub)
  registerExceptionJobs(hub)
  registerSecurityExportJobs(hub)
  registerExportJobs(hub)
  registerRuns(hub, kinds)
  registerCommandJobs(hub)
  registerApplyJobs(hub)
  registerSchedule(hub)
  return hub
}

export const noDatabase =
  'database.url is not set: in the file of --config, as DATABASE_URL or SVC_DATABASE_URL, or by --database-url'

/** Applies what the database lacks. Returns the names of the migrations applied. */
export async function bringUpToDate(database: Database): Promise<readonly string[]> {
  const applied = await migrateDatabase(database.client, () => installQueues(database))
  await storeBuiltInRoles(database)
  return applied
}

/** Opens the database of a configuration and brings it up to date. */
export async function openHubDatabase(config: HubConfig): Promise<Database> {
  const url = config['database.url']
  if (!url) throw new StartError(noDatabase)
  const database = openDatabase(url, config['database.connections'])
  try {
    await bringUpToDate(database)
    return database
  } catch (error) {
    await database.close()
    if (error instanceof MigrationError) throw error
    throw new StartError(`cannot open the database: ${errorLine(error)}`, { cause: error })
  }
}

/** The ops listener: health, readiness and metrics, without authentication. */
async function serveOps(hub: Hub, hostname: string, request: IncomingRequest): Promise<Response> {
  if (!answersToHost(request.headers.get('host'), hostname, hub.config['ops.allowed_hosts']))
    return new Response(hostRefusal, { status: 421 })
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return new Response('method not allowed\n', { status: 405, headers: { Allow: 'GET, HEAD' } })
  const { pathname } = new URL(request.url)
  if (pathname === '/healthz') return new Response('ok\n')
  if (pathname === '/readyz') {
    const failing = await isMigrated(hub.database.client).then(
      is => (is ? [] : ['migrations']),
      () => ['database'],
    )
    return Response.json({ ready: failing.length === 0, failing }, { status: failing.length === 0 ? 200 : 503 })
  }
  if (pathname !== '/metrics') return new Response('not found', { status: 404 })
  try {
    const depths = await pTimeout(hub.jobs.depths(), { milliseconds: DEPTHS_WAIT_MS })
    hub.metrics.queueDepth.reset()
    for (const { queue, depth } of depths) hub.metrics.queueDepth.set({ queue }, depth)
  } catch {
    hub.metrics.queueDepth.reset()
  }
  const { registry } = hub.metrics
  return new Response(await registry.metrics(), { headers: { 'Content-Type': registry.contentType } })
}

/** Loaded only to be served: from source they are bundled at that moment, and commands need none. */
const webPages = async (): Promise<readonly Page[]> => (await import('./web/pages.ts')).webPages()

/** Starts everything. Throws StartError or MigrationError with a message for the operator. */
export async function startHub({ config, log, pages: given }: HubOptions): Promise<RunningHub> {
  const pages = given ?? (await webPages())
  const database = await openHubDatabase(config)
  const listeners: Listener[] = []
  try {
    const warning = await encodingWarning(database.client)
    if (warning !== null) log.warn(warning)
    const hub = await createHub(config, log, database, true)
    const app = createApp(hub, apiRoutes, pages, productVersion)
    const api = startListener(config, 'listen', config.listen, true, (request, peer) => app.handle(request, peer))
    listeners.push(api)
    hub.links.listensAt(api.url)
    const opsAddress = config['ops.listen']
    const ops = opsAddress
      ? startListener(config, 'ops.listen', opsAddress, false, request =>
          serveOps(hub, splitAddress(opsAddress).hostname, request),
        )
      : null
    if (ops) listeners.push(ops)
    await hub.bell.start(database, log)
    await hub.state.start()
    await hub.jobs.start()
    const stopSchedule = startSchedule(hub)
    const leave = await joinProcesses(hub)
    warnOfCertificate(config, log)
    log.info({ url: api.url, ops_url: ops?.url ?? null, version: productVersion }, 'ready')
    return {
      url: api.url,
      opsUrl: ops?.url ?? null,
      hub,
      reload(fresh) {
        // The certificate first: files that cannot be used leave everything as it is.
        api.reloadCertificate(fresh)
        warnOfCertificate(fresh, log)
        const keys = applyReload(hub.state.configured, fresh, log)
        Object.assign(config, Object.fromEntries(keys.map(key => [key, fresh[key]])))
        hub.state.applyToConfig()
        log.info({ keys }, 'certificate and settings are read again')
      },
      async stop() {
        stopSchedule()
        hub.state.stop()
        hub.bell.close()
        await Promise.all(listeners.map(listener => listener.stop()))
        await hub.jobs.stop()
        await hub.findingSums.settled()
        await leave()
        await database.close()
        log.info('stopped')
      },
    }
  } catch (error) {
    await Promise.all(listeners.map(listener => listener.stop()))
    await database.close()
    throw error
  }
}
