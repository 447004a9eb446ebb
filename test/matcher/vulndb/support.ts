// What tests of the database share: a built file from texts of sources, and the commands as processes of their own.
import { Database } from 'bun:sqlite'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { build } from '../../../apps/matcher/vulndb/import/build.ts'
import type { SourceInput, SourceOutcome } from '../../../apps/matcher/vulndb/import/job.ts'
import { type OpenAdvisories, openAdvisories } from '../../../apps/matcher/vulndb/reader.ts'
import type { Rule } from '../../../core/matching/advisory.ts'

const NOW = Date.UTC(2026, 10, 22, 12)
const command = resolve(import.meta.dir, 'db.ts')
const sameDay = resolve(import.meta.dir, '../../support/same-day.ts')
const DAY_MS = 86_400_000
const TEST_DAY_ENDS_MS = String(Math.ceil(Date.now() / DAY_MS) * DAY_MS - 1)

export const importCommandOfTests: readonly string[] = [process.execPath, command, 'db-import-worker']

/** A folder that is gone with the test. */
export function scratchFolder(): { readonly path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), 'svc-vulndb-test-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** Writes the files below a folder; values that are no text are JSON. */
export function writeTree(folder: string, files: Readonly<Record<string, unknown>>): void {
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name)
    mkdirSync(dirname(path), { recursive: true })
    const isText = typeof content === 'string' || content instanceof Uint8Array
    writeFileSync(path, isText ? content : JSON.stringify(content))
  }
}

/** A ustar archive of files. */
export function tar(files: Record<string, string>): Buffer {
  const blocks = Object.entries(files).flatMap(([name, text]) => {
    const bytes = Buffer.from(text)
    const header = Buffer.alloc(512)
    header.write(name, 0)
    header.write('0000644\0', 100)
    header.write(`${bytes.length.toString(8).padStart(11, '0')}\0`, 124)
    header.write('0', 156)
    header.write('ustar\x0000', 257)
    header.write('        ', 148)
    const sum = header.reduce((total, byte) => total + byte, 0)
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
    return [header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]
  })
  return Buffer.concat([...blocks, Buffer.alloc(1024)])
}

type Built = {
  readonly outcomes: readonly SourceOutcome[]
  readonly file: string
  readonly reader: OpenAdvisories
  rules(release: string, name: string, by?: 'source' | 'binary'): readonly Rule[]
  [Symbol.dispose](): void
}

function inputOf(source: string, path: string): SourceInput {
  const part = { part: '', url: '', path, fileName: path.split('/').at(-1)!, etag: '', lastModified: '', sha256: '' }
  return { source, parts: [part], replaces: 'all' }
}

/** Builds a database of one tree of files a source. Throws when a source was refused and none was taken. */
export async function buildOf(
  sources: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  options: { readonly previous?: string; readonly acceptShrink?: boolean; readonly version?: number } = {},
): Promise<Built> {
  const scratch = scratchFolder()
  const inputs = Object.entries(sources).map(([source, files]) => {
    const folder = join(scratch.path, source)
    writeTree(folder, files)
    const names = Object.keys(files)
    return inputOf(source, names.length === 1 && !names[0]!.includes('/') ? join(folder, names[0]!) : folder)
  })
  const file = join(scratch.path, 'built.sqlite')
  const outcome = await build(
    {
      kind: 'build',
      inputs,
      outFile: file,
      stagingFile: join(scratch.path, 'staging.sqlite'),
      previousFile: options.previous ?? null,
      version: options.version ?? 2026112201,
      nowMs: NOW,
      acceptShrink: options.acceptShrink ?? false,
    },
    () => {},
  )
  if (outcome.sources.every(({ fault }) => fault !== null)) {
    scratch[Symbol.dispose]()
    throw new Error(outcome.sources.map(({ source, fault }) => `${source}: ${fault}`).join('; '))
  }
  const reader = openAdvisories(file)
  return {
    outcomes: outcome.sources,
    file,
    reader,
    rules: (release, name, by = 'source') => reader.affected(release, name, by)?.rules ?? [],
    [Symbol.dispose]: () => {
      reader.close()
      scratch[Symbol.dispose]()
    },
  }
}

export type Ran = { readonly code: number; readonly out: string; readonly err: string }

/** Runs `matcher db …` as a process. */
export async function runDb(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const child = Bun.spawn([process.execPath, '--preload', sameDay, command, 'db', ...args], {
    stdout: 'pipe',
    stderr: 'pipe',
    env: { ...process.env, TEST_DAY_ENDS_MS, ...env },
  })
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, out, err }
}

/** All rows of a file's rules, as they are stored. */
export function storedRules(file: string): unknown[] {
  const database = new Database(file, { readonly: true })
  try {
    return database
      .query(
        'select release_id, package, "by", hex(digest) as digest, rules from affected order by release_id, package, "by"',
      )
      .all()
  } finally {
    database.close()
  }
}
