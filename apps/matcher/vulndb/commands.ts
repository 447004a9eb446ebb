// The commands `matcher db …` (MAT-060, 065, 068, 070, 088): update, import, export, build, status, verify, rollback.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { printable } from '../../../core/printable.ts'
import { readKeyFile, writeBundle } from './bundle.ts'
import { checkFile } from './check-file.ts'
import { BUNDLE_BYTES_MAX, isDatabaseFile } from './database-file.ts'
import { DatabaseVersions } from './database-versions.ts'
import { FETCH_DEFAULTS } from './fetch-file.ts'
import { WORKER_COMMAND } from './import/job.ts'
import { importCommand } from './import/run-import.ts'
import { runImportWorker } from './import/worker.ts'
import { databaseStatus, statusLines } from './status.ts'
import { buildFile, importBundle, inputOfFiles, parseWanted, unpackTo, update, type Wanted } from './update.ts'

/** What the commands need of the configuration. */
type DbSettings = {
  /** Folder of the database files, `DATA_DIR/vulndb`. */
  readonly folder: string
  /** `db.sources` with `auto` resolved, for an update that names none. */
  readonly sources: readonly string[]
  readonly mirror: string | null
  readonly publicKeyFile: string | null
  readonly sourceBytesMax: number
}

type Common = { config?: string; dataDir?: string }
type LoadDbSettings = (flags: { config?: string; dataDir?: string }) => DbSettings

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const collect = (value: string, before: readonly string[]): readonly string[] => [...before, value]

/** What the system says of a file, in words: `cannot open vulndb.zst: no such file or directory`. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  const found = /^E[A-Z]+: (.+), (\w+) '(.+?)(?:\.tmp)?'$/.exec(message)
  return found ? `cannot ${found[2]} ${found[3]}: ${found[1]}` : message
}

/** Runs a command; what goes wrong is one line for the operator. */
async function guarded(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    process.stderr.write(`${reasonOf(error)}\n`)
    process.exit(1)
  }
}

const folderOf = (settings: DbSettings): DatabaseVersions => new DatabaseVersions(settings.folder)

async function updateOnce(
  settings: DbSettings,
  flags: { source: readonly string[]; acceptShrink?: boolean },
): Promise<void> {
  const wanted: readonly Wanted[] =
    flags.source.length > 0 ? flags.source.map(parseWanted) : settings.sources.map(source => ({ source, from: null }))
  if (wanted.length === 0) throw new Error('no source is known for this host: name one with --source NAME')
  const result = await update({
    folder: folderOf(settings),
    wanted,
    acceptShrink: flags.acceptShrink === true,
    mirror: settings.mirror,
    fetch: { ...FETCH_DEFAULTS, bytesMax: settings.sourceBytesMax, signal: new AbortController().signal },
    command: importCommand(),
    now: Date.now,
  })
  for (const { source, records, rejected, seconds, fault } of result.sources)
    if (fault === null) say(`${source}: ${records} records, ${rejected} rejected, ${seconds} s`)
  for (const [source, fault] of Object.entries(result.faults))
    process.stderr.write(`${source}: refused, what was there before stays: ${fault}\n`)
  say(
    result.switched === null ? 'nothing new: the version in use stays' : `version ${result.switched.version} is in use`,
  )
  if (Object.keys(result.faults).length > 0) process.exitCode = 1
}

async function buildBundle(flags: {
  source: readonly string[]
  out: string
  key?: string
  acceptShrink?: boolean
}): Promise<void> {
  const byName = new Map<string, string[]>()
  for (const { source, from } of flags.source.map(parseWanted)) {
    if (from === null || 'url' in from) throw new Error(`--source ${source} must name a file: ${source}=FILE`)
    byName.set(source, [...(byName.get(source) ?? []), from.file])
  }
  if (byName.size === 0) throw new Error('name at least one source: --source NAME=FILE')
  const key = flags.key === undefined ? null : readKeyFile(flags.key)
  const scratch = mkdtempSync(join(tmpdir(), 'svc-vulndb-'))
  try {
    const outFile = join(scratch, 'new.sqlite')
    const version = Number(`${new Date().toISOString().slice(0, 10).replaceAll('-', '')}01`)
    const outcome = await buildFile(
      { acceptShrink: flags.acceptShrink === true, command: importCommand(), now: Date.now },
      {
        inputs: [...byName].map(([source, files]) => inputOfFiles(source, files)),
        outFile,
        stagingFile: join(scratch, 'staging.sqlite'),
        previousFile: null,
        version,
      },
    )
    for (const { source, records, rejected, fault } of outcome.sources) {
      if (fault !== null) throw new Error(`${source}: refused: ${fault}`)
      say(`${source}: ${records} records, ${rejected} rejected`)
    }
    const header = await writeBundle(outFile, flags.out, key)
    say(
      `version ${header.db_version}, ${header.size_bytes} bytes, ${header.key_id === '' ? 'not signed' : `signed by ${header.key_id}`}`,
    )
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function verify(file: string, publicKeyFile: string | null): Promise<void> {
  if (await isDatabaseFile(file)) {
    if (publicKeyFile !== null) throw new Error('a database file has no signature: name the bundle')
    say(`version ${checkFile(file)}: whole`)
    return
  }
  const scratch = mkdtempSync(join(tmpdir(), 'svc-vulndb-'))
  try {
    const { version, keyId } = await unpackTo(join(scratch, 'new.sqlite'), {
      bundleFile: file,
      publicKeyPem: publicKeyFile === null ? null : readKeyFile(publicKeyFile),
      bytesMax: BUNDLE_BYTES_MAX,
      command: importCommand(),
    })
    const by = publicKeyFile === null ? 'its signature was not checked: no public key' : `signed by ${keyId}`
    say(`version ${version}: whole, ${by}`)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** The hidden command that an import starts this executable with; standalone needs it too. */
export function registerImportWorker(program: Command): void {
  program.command(WORKER_COMMAND, { hidden: true }).action(() => runImportWorker())
}

export function registerDbCommands(program: Command, load: LoadDbSettings): void {
  const db = program.command('db').description('the vulnerability database')
  const command = (usage: string, description: string): Command =>
    db
      .command(usage)
      .description(description)
      .option('--config <file>', 'configuration, YAML')
      .option('--data-dir <dir>', 'data directory of the matcher')
  const settings = (flags: Common): DbSettings => {
    const config = flags.config ?? program.opts<Common>().config
    return load({
      ...(config === undefined ? {} : { config }),
      ...(flags.dataDir === undefined ? {} : { dataDir: flags.dataDir }),
    })
  }
  const shrink = ['--accept-shrink', 'takes a source that has lost more than 20 % of its records'] as const
  command('update', 'fetches sources and switches to what came of them')
    .option('--source <name[=file|url]>', 'a source, from its address, another one or a file; repeatable', collect, [])
    .option(...shrink)
    .action((flags: Common & { source: readonly string[]; acceptShrink?: boolean }) =>
      guarded(() => updateOnce(settings(flags), flags)),
    )
  command('import <file>', 'takes a bundle as the version in use')
    .option('--force', 'takes one that is not newer, as a new version')
    .action((file: string, flags: Common & { force?: boolean }) =>
      guarded(async () => {
        const { publicKeyFile, folder } = settings(flags)
        const { version } = await importBundle({
          folder: new DatabaseVersions(folder),
          bundleFile: file,
          publicKeyPem: publicKeyFile === null ? null : readKeyFile(publicKeyFile),
          bytesMax: BUNDLE_BYTES_MAX,
          isForced: flags.force === true,
          command: importCommand(),
          now: Date.now,
        })
        say(`version ${version} is in use`)
      }),
    )
  command('export <file>', 'writes the version in use as a bundle')
    .option('--key <file>', 'Ed25519 private key, PEM, to sign it with')
    .action((file: string, flags: Common & { key?: string }) =>
      guarded(async () => {
        const current = folderOf(settings(flags)).current()
        if (current === null) throw new Error('no vulnerability database: matcher db update --source NAME')
        const header = await writeBundle(current.file, file, flags.key === undefined ? null : readKeyFile(flags.key))
        say(
          `version ${header.db_version}, ${header.size_bytes} bytes, ${header.key_id === '' ? 'not signed' : `signed by ${header.key_id}`}`,
        )
      }),
    )
  db.command('build')
    .description('makes a bundle of files, without a data directory')
    .option('--source <name=file>', 'a source and its file, folder or archive; repeatable', collect, [])
    .requiredOption('--out <file>', 'the bundle to write')
    .option('--key <file>', 'Ed25519 private key, PEM, to sign it with')
    .option(...shrink)
    .action((flags: { source: readonly string[]; out: string; key?: string; acceptShrink?: boolean }) =>
      guarded(() => buildBundle(flags)),
    )
  registerSmallCommands(command, settings)
}

function registerSmallCommands(
  command: (usage: string, description: string) => Command,
  settings: (flags: Common) => DbSettings,
): void {
  command('status', 'version, sources, ages, records, licences')
    .option('--json', 'as JSON')
    .action((flags: Common & { json?: boolean }) =>
      guarded(async () => {
        const status = databaseStatus(folderOf(settings(flags)), Date.now())
        if (flags.json === true) say(JSON.stringify(status))
        else for (const line of statusLines(status)) say(printable(line))
      }),
    )
  command('verify <file>', 'checks a bundle or a database file')
    .option('--public-key <file>', 'Ed25519 public key, PEM, that must have signed it')
    .action((file: string, flags: Common & { publicKey?: string }) =>
      guarded(() => verify(file, flags.publicKey ?? settings(flags).publicKeyFile)),
    )
  command('rollback', 'goes back to the version before').action((flags: Common) =>
    guarded(async () => {
      const folder = folderOf(settings(flags))
      const { version } = await folder.exclusively(async () => folder.rollback())
      say(`version ${version} is in use`)
    }),
  )
}
