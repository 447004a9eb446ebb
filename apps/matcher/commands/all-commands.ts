// Every command of the matcher. The modules that serve are loaded here, and not for `match` (main.ts).
import type { Command } from 'commander'
import type { Logger } from 'pino'
import { startConfiguredOps } from '../../http/ops-server.ts'
import { sayCertificateWarnings, warnOfCertificate } from '../../process/certificate-files.ts'
import { checkReadyFile, guarded, ReadyFile } from '../../process/executable.ts'
import { createServiceLogger } from '../../process/logger.ts'
import { reloadOnHangUp } from '../../process/reload-on-hang-up.ts'
import { stopOnSignals } from '../../process/stop-on-signals.ts'
import { loadServingConfig, type MatcherConfig } from '../config.ts'
import type { RunningMatcher } from '../matcher.ts'
import { openMatcher } from '../open-matcher.ts'
import { registerDbCommands, registerImportWorker } from '../vulndb/commands.ts'
import { dbSettings } from './db-settings.ts'
import { registerExplainCommand } from './explain-command.ts'
import { registerMatchCommand } from './match-command.ts'
import { registerStateCommands } from './state-commands.ts'

/** Less than the 10 s of MAT-238. */
const STOP_DEADLINE_MS = 9_000

type Flags = { readonly config?: string; readonly dataDir?: string; readonly readyFile?: string }

const configOf = (flags: Flags): MatcherConfig => loadServingConfig(flags.config, { data_dir: flags.dataDir })

async function reload(matcher: RunningMatcher, flags: Flags, log: Logger): Promise<void> {
  try {
    const fresh = configOf(flags)
    await matcher.reload(fresh)
    log.level = fresh['log.level']
    warnOfCertificate(fresh, log)
    log.info('certificates and tokens are read again')
  } catch (error) {
    log.error({ err: error }, 'cannot reload; what was read before stays in force')
  }
}

async function run(flags: Flags): Promise<void> {
  const config = configOf(flags)
  checkReadyFile(flags.readyFile, config.data_dir)
  const log = createServiceLogger(config['log.level'], 'matcher')
  warnOfCertificate(config, log)
  const ready = new ReadyFile(flags.readyFile)
  const matcher = await openMatcher({ config, log })
  const ops = startConfiguredOps(config, matcher.metrics, matcher.ready)
  stopOnSignals(
    log,
    async () => {
      ready.remove()
      await matcher.stop()
      await ops?.stop()
    },
    STOP_DEADLINE_MS,
  )
  const content = {
    scan_url: matcher.scanUrl,
    admin_url: matcher.adminUrl,
    ops_url: ops?.url ?? null,
    db_version: matcher.dbVersion(),
    data_dir: config.data_dir,
    pid: process.pid,
  }
  ready.write(content)
  log.info(content, 'ready')
  reloadOnHangUp(() => void reload(matcher, flags, log))
}

/** All commands, in the order of the help. */
export function registerCommands(program: Command): void {
  program
    .command('run')
    .description('serves the scan API and the internal API')
    .option('--config <file>', 'configuration, YAML')
    .option('--data-dir <dir>', 'data directory, instead of the one that is configured')
    .option('--ready-file <file>', 'written once it answers, with its addresses; removed at the stop')
    .action((_: unknown, command: Command) => guarded(() => run(command.optsWithGlobals<Flags>())))
  program
    .command('check-config')
    .description('reads the configuration and says every fault in it')
    .option('--config <file>', 'configuration, YAML')
    .option('--data-dir <dir>', 'data directory, instead of the one that is configured')
    .action((_: unknown, command: Command) =>
      guarded(() => {
        sayCertificateWarnings(configOf(command.optsWithGlobals<Flags>()))
        console.log('the configuration is valid')
      }),
    )
  registerDbCommands(program, dbSettings)
  registerStateCommands(program)
  registerMatchCommand(program)
  registerExplainCommand(program)
  registerImportWorker(program)
}
