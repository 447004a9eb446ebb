// What executables share around their wiring: the command line, the ready file, the way to stop.
import { rmSync } from 'node:fs'
import { Command } from 'commander'
import type { Logger } from 'pino'
import manifest from '../../package.json'
import { replaceFile } from '../files/replace-file.ts'

/** The exit code of a process of which a part died (sysexits.h EX_SOFTWARE). */
const EXIT_FAILED = 70
const STOP_DEADLINE_MS = 14_000
const FLUSH_LIMIT_MS = 500

/** The command, what it runs without a subcommand, and `check-config`. `check` throws with every fault, a line each. */
export function createProgram(
  name: string,
  description: string,
  run: (configFile: string | undefined, readyFile: string | undefined) => Promise<void>,
  check: (configFile: string | undefined) => unknown,
): Command {
  const program = new Command(name)
    .description(description)
    .version(manifest.version)
    .option('--config <file>', 'configuration, YAML')
    .option('--ready-file <file>', 'written once it answers, with its addresses; removed at the stop')
    .action((options: { config?: string; readyFile?: string }) => guarded(() => run(options.config, options.readyFile)))
  program
    .command('check-config')
    .description('reads the configuration and says every fault in it')
    .option('--config <file>', 'configuration, YAML')
    .action((options: { config?: string }) =>
      guarded(() => {
        check(options.config ?? program.opts<{ config?: string }>().config)
        console.log('the configuration is valid')
      }),
    )
  return program
}

/** Runs a command; what goes wrong is said to the operator, without a stack. */
export async function guarded(command: () => void | Promise<void>): Promise<void> {
  try {
    await command()
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exit(1)
  }
}

/** The file that says where the process answers; written beside and renamed, so that a reader never sees half of it. */
export class ReadyFile {
  private readonly path: string | undefined

  /** One that a killed process left is removed: nobody is to take its addresses for those of this one. */
  constructor(path: string | undefined) {
    this.path = path
    this.remove()
  }

  write(content: Readonly<Record<string, unknown>>): void {
    if (this.path === undefined) return
    replaceFile(this.path, `${JSON.stringify(content)}\n`)
  }

  remove(): void {
    if (this.path !== undefined) rmSync(this.path, { force: true })
  }
}

/**
 * Stops on SIGTERM and Ctrl-C; a second signal, or too long a stop, ends at once and loses nothing that was
 * acknowledged.
 */
export function stopOnSignals(log: Logger, stop: () => Promise<void>, deadlineMs = STOP_DEADLINE_MS): void {
  let isStopping = false
  const onSignal = (): void => {
    if (isStopping) process.exit(130)
    isStopping = true
    log.info('stopping')
    setTimeout(() => process.exit(1), deadlineMs).unref()
    void stop().then(() => process.exit(0))
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

/** The end of a process of which a part died: systemd starts it again, and what was acknowledged is on the bus. */
export function failureExit(log: Logger): (error: Error) => void {
  return error => {
    log.fatal({ err: error }, 'a part has failed; start again, nothing acknowledged is lost')
    log.flush(() => process.exit(EXIT_FAILED))
    setTimeout(() => process.exit(EXIT_FAILED), FLUSH_LIMIT_MS)
  }
}
