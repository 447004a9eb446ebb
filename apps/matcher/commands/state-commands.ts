// The commands on the state of a data directory, whether a matcher runs on it or not: dead letters and backup (MAT-167,
// MAT-190).
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { codeOf } from '../../../core/config/address.ts'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { printable } from '../../../core/printable.ts'
import { guarded } from '../../process/executable.ts'
import { loadConfig, type MatcherConfig, stateOptionsOf } from '../config.ts'
import type { ControlCall, ControlResult } from '../control/control-calls.ts'
import { hasState, runCall } from '../control/run-call.ts'
import { openState } from '../state/open-state.ts'
import { backupState } from '../state/state-backup.ts'
import type { MatcherState } from '../state/state-types.ts'

type Flags = { readonly config?: string; readonly dataDir?: string; readonly json?: boolean }

/** The state, opened here; null while a matcher runs on it. */
function openUnlessRunning(config: MatcherConfig): MatcherState | null {
  try {
    return openState(config.data_dir, stateOptionsOf(config, Date.now))
  } catch (error) {
    if (error instanceof Error && codeOf(error.cause) === 'SQLITE_BUSY') return null
    throw error
  }
}

/** A call on the state of the configuration's data directory. */
export const callState = (config: MatcherConfig, call: ControlCall): Promise<ControlResult> =>
  runCall(config.data_dir, call, () => openUnlessRunning(config))

const configOf = (flags: Flags): MatcherConfig => loadConfig(flags.config, { data_dir: flags.dataDir })

const call = (flags: Flags, what: ControlCall): Promise<ControlResult> => callState(configOf(flags), what)

const listOf = (value: unknown): readonly Unchecked[] => (Array.isArray(value) ? value.filter(isObject) : [])

async function listDeadLetters(flags: Flags): Promise<void> {
  const all: Unchecked[] = []
  for (let after = 0; ; ) {
    const page = await call(flags, { kind: 'list_dead_letters', after })
    all.push(...listOf(page.data))
    if (page.more !== true) break
    after = Number(page.after)
  }
  if (flags.json) return console.log(JSON.stringify({ data: all }))
  if (all.length === 0) return console.log('no dead letters')
  for (const letter of all)
    console.log(printable(`${letter.id}  ${letter.at}  ${letter.type}  host ${letter.host_id}  ${letter.reason}`))
}

function idsOf(words: readonly string[], isAll: boolean): readonly number[] | null {
  if (isAll === words.length > 0) throw new Error('name the ids of dead letters, or --all')
  const wrong = words.find(word => !/^\d{1,15}$/.test(word))
  if (wrong !== undefined) throw new Error(`${wrong} is no id of a dead letter; matcher dead-letters list shows them`)
  return isAll ? null : words.map(Number)
}

async function change(
  kind: 'retry_dead_letters' | 'drop_dead_letters',
  words: readonly string[],
  flags: Flags & { all?: boolean },
) {
  const { count } = await call(flags, { kind, ids: idsOf(words, flags.all === true) })
  const done = kind === 'retry_dead_letters' ? 'wait for the hub again' : 'are dropped'
  console.log(flags.json ? JSON.stringify({ count }) : `${String(count)} dead letters ${done}`)
}

const withOptions = (command: Command): Command =>
  command
    .option('--config <file>', 'configuration, YAML')
    .option('--data-dir <dir>', 'data directory of the matcher')
    .option('--json', 'print one JSON object')

/** Copied by this process, which may write where the matcher may not; one that runs goes on meanwhile. */
async function backup(flags: Flags, file: string): Promise<void> {
  const { data_dir: dataDir } = configOf(flags)
  if (!hasState(dataDir)) throw new Error(`there is no state of a matcher in ${dataDir}`)
  await backupState(dataDir, file)
}

/** Options of the program count for its commands too. */
const flagsOf = <T extends Flags>(command: Command): T => command.optsWithGlobals<T>()

export function registerStateCommands(program: Command): void {
  const letters = program.command('dead-letters').description('events that the hub will never take')
  withOptions(letters.command('list').description('lists them with the reason of each')).action(
    (_: unknown, command: Command) => guarded(() => listDeadLetters(flagsOf(command))),
  )
  withOptions(letters.command('retry [ids...]').description('gives them to the hub again'))
    .option('--all', 'every one')
    .action((ids: string[], _: unknown, command: Command) =>
      guarded(() => change('retry_dead_letters', ids, flagsOf(command))),
    )
  withOptions(letters.command('drop [ids...]').description('forgets them'))
    .option('--all', 'every one')
    .action((ids: string[], _: unknown, command: Command) =>
      guarded(() => change('drop_dead_letters', ids, flagsOf(command))),
    )
  withOptions(
    program.command('backup <file>').description('writes a consistent copy of the state, also while it runs'),
  ).action((file: string, _: unknown, command: Command) =>
    guarded(async () => {
      const flags = flagsOf<Flags>(command)
      await backup(flags, resolve(file))
      console.log(flags.json ? JSON.stringify({ file: resolve(file) }) : `the state is copied to ${resolve(file)}`)
    }),
  )
}
