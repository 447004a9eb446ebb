// The `agent` executable: run, install, enroll, status, scan, check-config.
import { readFileSync, rmSync } from 'node:fs'
import { Command, Option } from 'commander'
import { type Logger, pino } from 'pino'
import type { ConfigFault } from '../../core/config/keys.ts'
import { objectIn, type Unchecked } from '../../core/json-object.ts'
import { replaceFile } from '../files/replace-file.ts'
import { checkReadyFile } from '../process/executable.ts'
import { type RunningAgent, startAgent } from './agent.ts'
import { systemClock } from './clock.ts'
import { HostFiles, linuxRoots } from './collectors/host-files.ts'
import { type AgentOptions, agentVersion, DEFAULT_CONFIG_FILE, loadAgentOptions, runFaults } from './config.ts'
import { install } from './install.ts'
import { runScanCommand, type ScanCommand } from './scan/scan-command.ts'
import { readScanStatus } from './scan/scan-status.ts'
import { ScanStore } from './scan/scan-store.ts'
import { type Identity, writeIdentity } from './state/identity.ts'
import { StateDir } from './state/state-dir.ts'
import { StateLock } from './state/state-lock.ts'
import { readStatus } from './state/status.ts'
import { proxyVariable } from './transport/collector-address.ts'
import { CollectorClient } from './transport/collector-client.ts'
import { forgetMove } from './transport/collector-move.ts'
import { enroll } from './transport/enroll.ts'

type CommonFlags = { config?: string; stateDir?: string; collectorUrl?: string; caFile?: string }
type EnrollFlags = CommonFlags & { license?: string; licenseFile?: string }
type RunFlags = CommonFlags & { readyFile?: string; watcher?: string }
type InstallFlags = {
  collectorUrl: string
  license?: string
  licenseFile?: string
  caFile?: string
  releaseKeyFile?: string
  root?: string
}
type StatusFlags = CommonFlags & { json?: boolean }
type ScanFlags = CommonFlags & ScanCommand

const say = (line: string) => void process.stdout.write(`${line}\n`)
const complain = (line: string) => void process.stderr.write(`${line}\n`)

// Who reads only the first lines (`agent status | head -3`) closes the pipe: nobody is left to tell.
process.stdout.on('error', () => process.exit(0))

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const describeFault = ({ key, value, message }: ConfigFault): string =>
  `${key}${value === '' ? '' : `: ${value}`}: ${message}`

/** Stops the process on a configuration that cannot be used, naming every fault. `check`: what else is needed. */
function loadOrExit(
  flags: CommonFlags,
  more: Readonly<Record<string, unknown>> = {},
  check: typeof runFaults = () => [],
): AgentOptions {
  const { options, faults } = loadAgentOptions(flags.config ?? null, {
    state_dir: flags.stateDir,
    collector_url: flags.collectorUrl,
    'tls.ca_file': flags.caFile,
    ...more,
  })
  const all = [...faults, ...check(options, faults)]
  if (all.length === 0) return options
  for (const fault of all) complain(describeFault(fault))
  process.exit(1)
}

const makeLog = (level: string): Logger =>
  pino({ level, base: { service: 'agent' } }, pino.destination({ fd: 1, sync: true }))

/** The executable that updates replace; null when this runs from source. */
const executable = Bun.main.startsWith('/$bunfs/') ? process.execPath : null

/** What of the environment an operator may not expect: what does not matter, and what does. */
function environmentWarnings({ collectorUrl, scan }: AgentOptions): string[] {
  const warnings: string[] = []
  if (process.env.NODE_TLS_REJECT_UNAUTHORIZED === '0')
    warnings.push(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored: certificates are verified; name a private authority with tls.ca_file',
    )
  for (const url of [collectorUrl, scan.matcherUrl]) {
    const variable = url === null ? null : proxyVariable(url, process.env)
    if (variable !== null)
      warnings.push(
        `${variable} is set: requests to ${URL.parse(url ?? '')?.host} go through a proxy, unless NO_PROXY names it`,
      )
  }
  return warnings
}

async function run(flags: RunFlags): Promise<void> {
  const options = loadOrExit(flags, {}, runFaults)
  const log = makeLog(options.logLevel)
  let agent: RunningAgent | null = null
  const watcherPid = flags.watcher === undefined ? null : Number(flags.watcher)
  const stop = async () => {
    process.once('SIGINT', () => process.exit(1))
    process.once('SIGTERM', () => process.exit(1))
    if (flags.readyFile !== undefined) rmSync(flags.readyFile, { force: true })
    await agent?.stop()
    process.exit(0)
  }
  process.once('SIGINT', () => void stop())
  process.once('SIGTERM', () => void stop())
  // Its terminal is closed, or somebody takes it for a request to reload: neither ends it.
  process.on('SIGHUP', () => log.info('SIGHUP changes nothing: the configuration is read at the start'))
  const selfUpdate = { executable, args: process.argv.slice(2), watcherPid }
  try {
    checkReadyFile(flags.readyFile, options.stateDir)
    agent = await startAgent({ options, log, selfUpdate, warnings: environmentWarnings(options) })
  } catch (error) {
    complain(`cannot start: ${messageOf(error)}`)
    process.exit(1)
  }
  // One that a killed process left speaks of that one.
  if (flags.readyFile !== undefined) rmSync(flags.readyFile, { force: true })
  const agentId = await agent.enrolled
  if (agentId !== null) {
    const ready = { agent_id: agentId, state_dir: options.stateDir, pid: process.pid }
    if (flags.readyFile !== undefined) replaceFile(flags.readyFile, `${JSON.stringify(ready)}\n`)
    log.info({ agent_id: agentId, version: agentVersion }, 'ready')
  }
  const failure = await agent.ended
  if (failure !== null) {
    log.error({ failure }, 'ended')
    process.exit(1)
  }
  // An agent that may not send stays, so that no service manager starts it over and over; it ends by a signal.
  setInterval(() => {}, 2 ** 30)
}

function readLicense(flags: { license?: string }): string | undefined {
  if (flags.license === '-') return readFileSync(0, 'utf8').trim()
  return flags.license
}

const KEEP_AGAIN_MS = 1_000

/** Keeps a new identity, however long the disk refuses it: its licence is spent, and its token is issued only once. */
async function keepIdentity(dir: StateDir, identity: Identity): Promise<void> {
  for (let failures = 0; ; failures++) {
    try {
      writeIdentity(dir, identity)
      return
    } catch (error) {
      if (failures === 0) {
        complain(`enrolled, but the token cannot be kept: ${messageOf(error)}`)
        complain(`make room in ${dir.path}: it is tried every second, and is lost when this command is ended before`)
      }
    }
    await systemClock.sleep(KEEP_AGAIN_MS, new AbortController().signal)
  }
}

/** These belong to whoever was enrolled here before. */
function forgetFormer(dir: StateDir): void {
  dir.clearBuffer()
  forgetMove(dir)
  dir.remove('config')
  new ScanStore(dir).forgetRemote()
}

async function enrollOnce(flags: EnrollFlags): Promise<void> {
  const options = loadOrExit(flags, { license: readLicense(flags), license_file: flags.licenseFile })
  const { license, collectorUrl, caPem, stateDir } = options
  if (license === null || collectorUrl === null) {
    complain(license === null ? 'license: give --license or --license-file' : 'collector_url: give --collector-url')
    process.exit(1)
  }
  try {
    const dir = new StateDir(stateDir)
    // A running agent would write its own identity over the new one.
    const lock = new StateLock(dir)
    const log = makeLog('silent')
    const now = () => Date.now()
    const client = new CollectorClient({ collectorUrl, caPem, agentVersion, log, now })
    const files = new HostFiles(linuxRoots)
    const outcome = await enroll(license, {
      client,
      dir,
      files,
      platform: process.platform,
      collectorUrl,
      nowMs: now(),
    })
    if (outcome.kind !== 'enrolled') {
      complain(outcome.kind === 'later' ? `${outcome.message}; try again later` : outcome.message)
      process.exit(1)
    }
    // Before the new identity is there: nothing of another tenant may go out under it.
    let left: string | null = null
    try {
      forgetFormer(dir)
    } catch (error) {
      left = messageOf(error)
    }
    await keepIdentity(dir, outcome.identity)
    if (left !== null) {
      complain(`enrolled, but what the former agent left in ${dir.path} cannot be removed: ${left}`)
      process.exit(1)
    }
    lock.release()
    say(`enrolled as agent ${outcome.identity.agentId}`)
  } catch (error) {
    complain(`cannot enroll: ${messageOf(error)}`)
    process.exit(1)
  }
}

function installService(flags: InstallFlags): void {
  if (executable === null) {
    complain('install: this runs from source; compile the agent first (bun run build) and run dist/agent install')
    process.exit(1)
  }
  try {
    const license = flags.licenseFile ? readFileSync(flags.licenseFile, 'utf8').trim() : readLicense(flags)
    install({
      executable,
      collectorUrl: flags.collectorUrl ?? null,
      license: license ?? null,
      caFile: flags.caFile ?? null,
      releaseKeyFile: flags.releaseKeyFile ?? null,
      root: flags.root ?? null,
      say,
    })
  } catch (error) {
    complain(`cannot install: ${messageOf(error)}`)
    process.exit(1)
  }
}

/** Whether there is a process of this id, of whatever user. */
function isProcess(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

function showStatus(flags: StatusFlags): void {
  const { stateDir, scan: scanOptions } = loadOrExit(flags)
  let text: string | null = null
  try {
    text = readStatus(stateDir)
  } catch (error) {
    complain(`cannot read the status: ${messageOf(error)}`)
    process.exit(1)
  }
  const scanned = readScanStatus(stateDir, scanOptions.matcherUrl !== null)
  if (text === null && scanned === null) {
    complain(`no status in ${stateDir}: the agent has not run`)
    process.exit(1)
  }
  const parsed = objectIn(text ?? '{}')
  if (parsed === null) {
    complain(`cannot read the status: status.json in ${stateDir} is empty or cut; a running agent writes it anew`)
    process.exit(1)
  }
  const status: Unchecked = { ...parsed, scan: scanned }
  if (flags.json) {
    say(JSON.stringify(status, null, 2))
    return
  }
  const { scan: _, ...agent } = status
  const pid = 'pid' in agent ? Number(agent.pid) : Number.NaN
  const isRunning = Number.isInteger(pid) && isProcess(pid)
  // In one piece: a reader such as `head` may leave after the first lines.
  say(
    [
      ...(isRunning ? [] : ['the agent is not running; when it last ran:']),
      ...Object.entries(agent).map(([name, value]) => statusLine(name, value)),
      ...Object.entries(scanned ?? {}).map(([name, value]) => statusLine(`scan_${name}`, value)),
    ].join('\n'),
  )
}

function statusLine(name: string, value: unknown): string {
  const isInstant = name.endsWith('_ms') && typeof value === 'number'
  const shown = isInstant
    ? new Date(value).toISOString()
    : Array.isArray(value)
      ? value.join('; ')
      : String(value ?? '-')
  return `${name.replace(/_ms$/, '').replaceAll('_', ' ').padEnd(18)} ${shown || '-'}`
}

async function scan(flags: ScanFlags): Promise<void> {
  const isDone = await runScanCommand(loadOrExit(flags), flags, { say, complain, log: makeLog('silent') })
  if (!isDone) process.exit(1)
}

const withCommon = (command: Command): Command =>
  command
    .option('--config <file>', `configuration file (default ${DEFAULT_CONFIG_FILE})`)
    .option('--state-dir <dir>', 'where token, config, buffer and status are kept')
    .option('--collector-url <url>', 'address of the collector')
    .option('--ca-file <file>', 'authority that signs the certificate of the collector')

const program = new Command('agent').description('Samples this host and reports to a collector').version(agentVersion)
withCommon(program.command('run').description('sample and report until stopped'))
  .option('--ready-file <file>', 'written once the agent is enrolled and runs')
  .addOption(new Option('--watcher <pid>', 'process that tries this version').hideHelp())
  .action(run)
program
  .command('install')
  .description('make this executable a service of systemd that enrolls itself')
  .option('--collector-url <url>', 'address of the collector; needed by the first installation')
  .option('--license <license>', 'the licence; - reads it from standard input')
  .option('--license-file <file>', 'file that holds the licence')
  .option('--ca-file <file>', 'authority that signs the certificate of the collector')
  .option('--release-key-file <file>', 'public key of releases: the agent then updates itself')
  .option('--root <dir>', 'put the files below this folder and start nothing, for images and packages')
  .action(installService)
withCommon(program.command('enroll').description('exchange a licence for a token, once'))
  .option('--license <license>', 'the licence; - reads it from standard input')
  .option('--license-file <file>', 'file that holds the licence')
  .action(enrollOnce)
withCommon(program.command('status').description('what the agent on this host says of itself'))
  .option('--json', 'as JSON')
  .action(showStatus)
withCommon(program.command('scan').description('list the packages of this host, as its report to a matcher has them'))
  .option('--json', 'print the report itself')
  .option('--root <dir>', 'read the files below this folder, and no running kernel')
  .option('--send', 'send it to the matcher, enrolling before with scan.enrol_code when that is needed')
  .action(scan)
withCommon(program.command('check-config').description('say every fault of the configuration')).action(
  (flags: CommonFlags) => {
    loadOrExit(flags, {}, runFaults)
    say('the configuration is valid')
  },
)

await program.parseAsync()
