// The executable `hub`: serves the API, brings the database up to date, and administers companies and accounts.
import '../process/reload-on-hang-up.ts'
import { rmSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import type { ConfigFault } from '../../core/config/keys.ts'
import { errorLine } from '../../core/error-info.ts'
import { replaceFile } from '../files/replace-file.ts'
import { certificateFaults, sayCertificateWarnings } from '../process/certificate-files.ts'
import { readConfigFile } from '../process/config-file.ts'
import { checkReadyFile } from '../process/executable.ts'
import { endOnHangUp, reloadOnHangUp } from '../process/reload-on-hang-up.ts'
import {
  addCompanyCommands,
  addServerCommands,
  addServiceCommands,
  addTokenCommands,
  addUserCommands,
} from './commands/commands.ts'
import { addIacCommands, ExitCode } from './commands/iac-commands.ts'
import { printer, type Run } from './commands/output.ts'
import { type HubConfig, loadHubConfig } from './config.ts'
import { bringUpToDate, createHub, noDatabase, openHubDatabase, startHub } from './hub.ts'
import { forgetKey } from './identity/sealing-keys.ts'
import { openDatabase } from './platform/db/connect.ts'
import { encodingWarning } from './platform/db/migrate.ts'
import { ApiError } from './platform/http/api-error.ts'
import { render } from './platform/http/api-texts.ts'
import { createLogger } from './platform/telemetry.ts'
import { productVersion } from './version.ts'

type GlobalOptions = {
  config?: string
  databaseUrl?: string
  json?: boolean
  listen?: string
  opsListen?: string
  readyFile?: string
}

/** The operator has something to change; the message says what. */
class UsageError extends Error {}

const faultText = (fault: ConfigFault): string =>
  `${fault.key}${fault.value === '' ? '' : ` = ${fault.value}`}: ${fault.message}`

function configOf(options: GlobalOptions): { config: HubConfig; faults: ConfigFault[] } {
  const file = options.config === undefined ? undefined : readConfigFile(options.config)
  return loadHubConfig(file, {
    'database.url': options.databaseUrl,
    listen: options.listen,
    'ops.listen': options.opsListen,
  })
}

function validConfig(options: GlobalOptions): HubConfig {
  const { config, faults } = configOf(options)
  if (faults.length > 0) throw new UsageError(`the configuration is not valid:\n${faults.map(faultText).join('\n')}`)
  return config
}

/** What the operator is told of an error. */
function messageFor(error: unknown): string {
  if (error instanceof ApiError) {
    const fields = Object.entries(error.more.errors ?? {}).map(
      ([field, texts]) => `${field}: ${texts.map(text => render(text, 'en')).join(', ')}`,
    )
    return fields.length > 0 ? fields.join('\n') : render(error.text, 'en')
  }
  return errorLine(error)
}

const run: Run = async (command, act) => {
  const options = command.optsWithGlobals<GlobalOptions>()
  const config = validConfig(options)
  const database = await openHubDatabase(config)
  try {
    const hub = await createHub(config, createLogger('silent'), database)
    await act(hub, printer(options.json ?? false))
  } finally {
    await database.close()
  }
}

async function serve(command: Command): Promise<void> {
  const options = command.optsWithGlobals<GlobalOptions>()
  const config = validConfig(options)
  const log = createLogger(config['log.level'])
  const { readyFile } = options
  checkReadyFile(readyFile, config.data_dir)
  // One that a killed process left names addresses that nobody serves.
  if (readyFile) rmSync(readyFile, { force: true })
  const running = await startHub({ config, log })
  if (readyFile) {
    const ready = { hub_url: running.url, ops_url: running.opsUrl, pid: process.pid }
    replaceFile(readyFile, `${JSON.stringify(ready)}\n`)
  }
  reloadOnHangUp(() => {
    try {
      running.reload(validConfig(options))
    } catch (error) {
      log.error({ err: error }, 'cannot reload; what was read before stays in force')
    }
  })
  const stopped = new Promise<void>(resolve => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
  await stopped
  process.once('SIGINT', () => process.exit(130))
  if (readyFile) rmSync(readyFile, { force: true })
  await running.stop()
}

async function migrate(command: Command): Promise<void> {
  const options = command.optsWithGlobals<GlobalOptions>()
  const url = validConfig(options)['database.url']
  if (!url) throw new UsageError(noDatabase)
  const database = openDatabase(url, 1)
  try {
    const applied = await bringUpToDate(database)
    const warning = await encodingWarning(database.client)
    if (warning !== null) process.stderr.write(`hub: warning: ${warning}\n`)
    const isJson = options.json ?? false
    const isCurrent = applied.length === 0
    printer(isJson)(
      isCurrent && !isJson
        ? { result: 'the database is up to date already' }
        : { data: applied.map(name => ({ migration: name })) },
    )
  } finally {
    await database.close()
  }
}

async function forget(id: string, command: Command): Promise<void> {
  const options = command.optsWithGlobals<GlobalOptions>()
  const config = validConfig(options)
  const database = await openHubDatabase(config)
  try {
    await forgetKey(database.db, config, id)
    const isJson = options.json ?? false
    printer(isJson)(isJson ? { key_id: id } : { result: `hubs no longer wait for ${id}; give anew what it sealed` })
  } finally {
    await database.close()
  }
}

function checkConfig(command: Command): void {
  const options = command.optsWithGlobals<GlobalOptions>()
  const { config, faults: ofKeys } = configOf(options)
  const faults = [...ofKeys, ...certificateFaults(config)]
  if (faults.length > 0) throw new UsageError(faults.map(faultText).join('\n'))
  sayCertificateWarnings(config)
  printer(options.json ?? false)({ result: 'the configuration is valid' })
}

function createProgram(): Command {
  const program = new Command('hub')
    .description('The hub of the monitoring system: REST API, collectors, notifications')
    .version(productVersion)
    .exitOverride()
    .hook('preAction', (_, asked) => {
      if (asked.name() !== 'serve') endOnHangUp()
    })
    .option('--config <file>', 'YAML configuration')
    .option('--database-url <url>', 'postgres://user:password@host:port/name')
    .option('--json', 'print one JSON object')
  // Global options are understood before and after the command.
  const shared = (command: Command) => {
    for (const option of program.options) if (option.long !== '--version') command.addOption(option)
    for (const child of command.commands) shared(child)
  }
  program
    .command('serve')
    .description('serve the API')
    .option('--listen <address>', 'HOST:PORT of the API')
    .option('--ops-listen <address>', 'HOST:PORT of health and metrics')
    .option('--ready-file <file>', 'written once everything answers')
    .action((_options: unknown, command: Command) => serve(command))
  program
    .command('migrate')
    .description('bring the database up to date')
    .action((_options: unknown, command: Command) => migrate(command))
  program
    .command('check-config')
    .description('say every fault of the configuration')
    .action((_options: unknown, command: Command) => checkConfig(command))
  program
    .command('forget-key')
    .description('wait no longer for a key that is lost: what it sealed must be given anew')
    .argument('<id>', 'the key, as the log of a hub that lacks it names it')
    .action((id: string, _options: unknown, command: Command) => forget(id, command))
  addCompanyCommands(program, run)
  addUserCommands(program, run)
  addTokenCommands(program, run)
  addServiceCommands(program, run)
  addServerCommands(program, run)
  addIacCommands(program, { url: process.env.HUB_URL, token: process.env.HUB_TOKEN })
  for (const command of program.commands) shared(command)
  return program
}

/** Runs the command line. Returns the exit code. */
export async function runHub(words: readonly string[]): Promise<number> {
  try {
    await createProgram().parseAsync([...words], { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode
    if (error instanceof ExitCode) return error.code
    process.stderr.write(`hub: ${messageFor(error)}\n`)
    return 1
  }
}

if (import.meta.main) process.exit(await runHub(process.argv.slice(2)))
