// What executables share around their wiring: the command line and the ready file. How they end: stop-on-signals.ts.
import { accessSync, constants, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Command } from 'commander'
import { codeOf } from '../../core/config/address.ts'
import manifest from '../../package.json'
import { replaceFile } from '../files/replace-file.ts'
import { sayCertificateWarnings } from './certificate-files.ts'
import { endOnHangUp } from './reload-on-hang-up.ts'

/**
 * The command, what it runs without a subcommand, and `check-config`. `check` throws with every fault, a line each, or
 * answers with the configuration.
 */
export function createProgram(
  name: string,
  description: string,
  run: (configFile: string | undefined, readyFile: string | undefined) => Promise<void>,
  check: (configFile: string | undefined) => Readonly<Record<string, unknown>>,
): Command {
  const program = new Command(name)
    .description(description)
    .version(manifest.version)
    .option('--config <file>', 'configuration, YAML')
    .option('--ready-file <file>', 'written once it answers, with its addresses; removed at the stop')
    .action((options: { config?: string; readyFile?: string }) => guarded(() => run(options.config, options.readyFile)))
    .hook('preAction', (_, asked) => {
      if (asked !== program) endOnHangUp()
    })
  program
    .command('check-config')
    .description('reads the configuration and says every fault in it')
    .option('--config <file>', 'configuration, YAML')
    .action((options: { config?: string }) =>
      guarded(() => {
        sayCertificateWarnings(check(options.config ?? program.opts<{ config?: string }>().config))
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

/**
 * Throws, before anything starts, where the ready file could not be written once everything answers. What is not there
 * yet below `dataDir` may be made by then.
 */
export function checkReadyFile(path: string | undefined | null, dataDir: string | null): void {
  if (path === undefined || path === null) return
  const directory = dirname(path)
  try {
    accessSync(directory, constants.W_OK | constants.X_OK)
  } catch (error) {
    const isOwn = dataDir !== null && join(resolve(directory), '/').startsWith(join(resolve(dataDir), '/'))
    if (isOwn && codeOf(error) === 'ENOENT') return
    const advice = codeOf(error) === 'ENOENT' ? 'is not there' : `cannot be written (${codeOf(error)})`
    throw new Error(`--ready-file ${path}: the directory ${directory} ${advice}`)
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
