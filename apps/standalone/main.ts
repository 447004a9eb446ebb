// The all-in-one: `bun run up`. Reads its options, starts the site, shows where it is, and stops it in order.
import '../process/reload-on-hang-up.ts'
import '../process/allocator-setting.ts'
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { Command, CommanderError } from 'commander'
import packageFile from '../../package.json' with { type: 'json' }
import { threadFiles } from '../collector/thread-files.ts'
import { replaceFile } from '../files/replace-file.ts'
import { WORKER_COMMAND } from '../matcher/vulndb/import/job.ts'
import { runImportWorker } from '../matcher/vulndb/import/worker.ts'
import { sayCertificateWarnings } from '../process/certificate-files.ts'
import { describeFault } from '../process/config-file.ts'
import { checkReadyFile } from '../process/executable.ts'
import { endOnHangUp, reloadOnHangUp } from '../process/reload-on-hang-up.ts'
import { loadSiteConfig, type SiteConfig, type SiteOptions, startFaults } from './config.ts'
import { openDataDir, reason, StartFault } from './data-dir.ts'
import { loginText } from './first-password.ts'
import { checkAddress, freeAddress } from './ports.ts'
import { giveBackPages } from './program-pages.ts'
import { type RunningSite, type SiteInfo, startSite } from './site.ts'

const STOP_LIMIT_MS = 15_000
/** By then the first samples are stored, and what the start compiled and read is not needed any more. */
const START_PAGES_AFTER_MS = 30_000
const PAGES_EVERY_MS = 20_000
const MATCHER_LISTEN = '127.0.0.1:8084'
const MATCHER_ADMIN_LISTEN = '127.0.0.1:8085'

const threads = threadFiles(import.meta.url)

/** What was given: null for an address of the matcher that was not. */
type Options = Omit<SiteOptions, 'matcherListen' | 'matcherAdminListen'> & {
  readonly matcherListen: string | null
  readonly matcherAdminListen: string | null
  readonly localAgent: boolean
  readonly readyFile: string | null
  readonly checkConfig: boolean
}

function readOptions(argv: readonly string[]): Options {
  const command = new Command('standalone')
    .description('A whole monitoring site on this host: hub, collector, databases and an agent.')
    .version(packageFile.version)
    .argument('[command]', 'check-config: read the configuration, say every fault, start nothing')
    .option('--data-dir <dir>', 'everything it keeps', './data')
    .option('--config <file>', 'YAML, the same keys as the single executables')
    .option('--hub-listen <host:port>', 'REST API and web interface', '127.0.0.1:8080')
    .option('--agent-listen <host:port>', 'agent API', '127.0.0.1:8081')
    .option('--admin-listen <host:port>', 'collector admin API', '127.0.0.1:8082')
    .option('--ops-listen <host:port>', '/healthz, /readyz, /metrics', '127.0.0.1:8083')
    .option('--matcher-listen <host:port>', 'scan API of the security matcher (default: "127.0.0.1:8084")')
    .option('--matcher-admin-listen <host:port>', 'internal API of the security matcher (default: "127.0.0.1:8085")')
    .option('--no-matcher', 'no security matcher')
    .option('--security-db <auto|off|file>', 'vulnerability database: fetched, none, or a bundle to import', 'auto')
    .option('--no-local-agent', 'no agent for this host')
    .option('--ready-file <file>', 'written once everything answers, removed at the stop')
    .exitOverride()
  command.parse(
    argv.filter(word => word !== '--'),
    { from: 'user' },
  )
  const given = command.opts<Record<string, string | boolean | undefined>>()
  const text = (name: string): string => String(given[name])
  const asked = command.args[0]
  if (asked !== undefined && asked !== 'check-config') command.error(`error: unknown command '${asked}'`)
  return {
    configFile: given.config === undefined ? null : text('config'),
    dataDir: text('dataDir'),
    hubListen: text('hubListen'),
    agentListen: text('agentListen'),
    adminListen: text('adminListen'),
    opsListen: text('opsListen'),
    matcherListen: given.matcherListen === undefined ? null : text('matcherListen'),
    matcherAdminListen: given.matcherAdminListen === undefined ? null : text('matcherAdminListen'),
    matcher: given.matcher !== false,
    securityDb: text('securityDb'),
    localAgent: given.localAgent !== false,
    readyFile: given.readyFile === undefined ? null : resolve(text('readyFile')),
    checkConfig: asked === 'check-config',
  }
}

/** The addresses of the matcher: a site on free ports, or beside another site, has it on free ports too. */
async function withMatcherAddresses(options: Options): Promise<Options & SiteOptions> {
  const isOnFreePorts = options.hubListen.endsWith(':0')
  const chosen = (given: string | null, usual: string) => given ?? (isOnFreePorts ? '127.0.0.1:0' : freeAddress(usual))
  return {
    ...options,
    matcherListen: await chosen(options.matcherListen, MATCHER_LISTEN),
    matcherAdminListen: await chosen(options.matcherAdminListen, MATCHER_ADMIN_LISTEN),
  }
}

const line = (text = ''): void => void process.stdout.write(`${text}\n`)

function showSite(facts: SiteInfo): void {
  line()
  line(`  Web interface   ${facts.hub_url}/`)
  line(`  REST API        ${facts.hub_url}/api/v1      documentation: ${facts.hub_url}/docs`)
  line(`  Agents          ${facts.agent_url}/agent/v1`)
  line(`  Admin API       ${facts.admin_url}/internal/v1`)
  if (facts.matcher_url)
    line(`  Packages        ${facts.matcher_url}/scan/v1      security: ${facts.hub_url}/api/v1/security/overview`)
  line(`  Health          ${facts.ops_url}/readyz      metrics: ${facts.ops_url}/metrics`)
  line()
  line(`  Login           ${loginText(facts)}`)
  line(`  Data            ${facts.data_dir}   (API token, licence: secrets.json; log: logs/site.log)`)
  line('  Stop            Ctrl-C')
  line()
  line('ready')
}

/** Stops on SIGTERM and Ctrl-C; a second one ends at once, and nothing acknowledged is lost by it. */
function stopOnSignal(stop: () => Promise<void>): void {
  let isStopping = false
  const onSignal = (): void => {
    if (isStopping) process.exit(130)
    isStopping = true
    line('stopping: intake, bus, stores, databases (Ctrl-C again ends at once)')
    const limit = setTimeout(() => {
      line('not everything stopped in time; what was acknowledged is kept')
      process.exit(1)
    }, STOP_LIMIT_MS)
    void stop().then(() => {
      clearTimeout(limit)
      line('stopped')
      process.exit(0)
    })
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
}

/** Throws with every fault of the configuration. */
function validConfig(options: SiteOptions, more: typeof startFaults = () => []): SiteConfig {
  const { site, faults: ofKeys } = loadSiteConfig(options)
  const faults = [...ofKeys, ...more(site, options)]
  if (faults.length > 0)
    throw new StartFault(
      `the configuration is not valid:\n${faults.map(fault => `  ${describeFault(fault)}`).join('\n')}`,
    )
  return site
}

async function main(): Promise<void> {
  const asked = readOptions(process.argv.slice(2))
  const options = await withMatcherAddresses(asked)
  const config = validConfig(options, startFaults)
  if (options.checkConfig) {
    sayCertificateWarnings(config.hub({}))
    line('the configuration is valid')
    return
  }
  checkReadyFile(options.readyFile, options.dataDir)
  await checkAddress('--hub-listen', options.hubListen)
  await checkAddress('--agent-listen', options.agentListen)
  await checkAddress('--admin-listen', options.adminListen)
  await checkAddress('--ops-listen', options.opsListen)
  await checkAddress('--matcher-listen', options.matcherListen)
  await checkAddress('--matcher-admin-listen', options.matcherAdminListen)
  const dataDir = openDataDir(options.dataDir)
  // A file that a killed process left names addresses that nobody serves.
  if (options.readyFile) rmSync(options.readyFile, { force: true })
  let running: RunningSite | null = null
  let isAsked = false
  const stop = async (): Promise<void> => {
    isAsked = true
    if (options.readyFile) rmSync(options.readyFile, { force: true })
    await running?.stop()
    dataDir.unlock()
  }
  stopOnSignal(stop)
  line(`data directory ${dataDir.path}`)
  running = await startSite({
    options,
    config,
    dataDir,
    threads,
    withLocalAgent: options.localAgent,
    progress: part => line(`starting ${part}`),
    say: line,
    isStopping: () => isAsked,
    onFailure: error => {
      line(`failed: ${error.message}; start again, nothing acknowledged is lost`)
      process.exit(70)
    },
  })
  if (isAsked) return
  if (options.readyFile) replaceFile(options.readyFile, `${JSON.stringify(running.facts, null, 2)}\n`)
  showSite(running.facts)
  const { reload } = running
  reloadOnHangUp(() => void reload(() => validConfig(options)))
  setTimeout(giveBackPages, START_PAGES_AFTER_MS, PAGES_EVERY_MS)
}

try {
  // An import of the vulnerability database is a process of its own, this executable started again.
  const isImport = process.argv[2] === WORKER_COMMAND
  if (isImport) endOnHangUp()
  await (isImport ? runImportWorker() : main())
} catch (error) {
  if (error instanceof CommanderError) process.exit(error.exitCode)
  process.stderr.write(`standalone: ${reason(error)}\n`)
  process.exit(1)
}
