// One update of the folder (MAT-060, 064): what was asked for is fetched, imported in a process of its own, and becomes
// the version in use. Commands and the running matcher go the same way.

import { createHash } from 'node:crypto'
import { readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { bundleVersion } from './bundle.ts'
import { type DatabaseVersion, type DatabaseVersions, setVersion } from './database-versions.ts'
import type { FetchOptions } from './fetch-file.ts'
import { fetchSource } from './fetch-source.ts'
import type { BuildOutcome, SourceInput, SourceOutcome, UnpackOutcome } from './import/job.ts'
import { runImport } from './import/run-import.ts'
import type { SourceRow } from './import/write-file.ts'
import { openAdvisories } from './reader.ts'
import { SourceRefused } from './source-refused.ts'
import { SOURCE_NAMES, sourceNamed } from './sources/catalogue.ts'

/** What of a source is wanted: its own address, another one, or a file or folder of this host. */
export type Wanted = {
  readonly source: string
  readonly from: { readonly url: string } | { readonly file: string } | null
}

type UpdateRequest = {
  readonly folder: DatabaseVersions
  readonly wanted: readonly Wanted[]
  readonly acceptShrink: boolean
  readonly mirror: string | null
  readonly fetch: FetchOptions
  readonly command: readonly string[]
  readonly now: () => number
  /** A source is being fetched. */
  readonly onFetch?: (source: string) => void
  readonly onProgress?: (source: string, records: number) => void
}

export type UpdateResult = {
  /** The new version; null when nothing was new or nothing was taken. */
  readonly switched: DatabaseVersion | null
  readonly sources: readonly SourceOutcome[]
  /** Source → why it was not taken. */
  readonly faults: Readonly<Record<string, string>>
}

/** A bundle waits for an import that runs: of a distribution's source it takes seconds to minutes. */
const BUNDLE_WAIT_MS = 120_000

const reasonOf = (error: unknown): string => (error instanceof SourceRefused ? error.message : 'it cannot be read')

/** `debian`, `debian=FILE`, `debian=https://…` as a command names them. */
export function parseWanted(text: string): Wanted {
  const at = text.indexOf('=')
  const source = at < 0 ? text : text.slice(0, at)
  if (sourceNamed(source) === undefined) throw new Error(`${source} is no source; there are ${SOURCE_NAMES.join(', ')}`)
  if (at < 0) return { source, from: null }
  const from = text.slice(at + 1)
  if (from === '') throw new Error(`--source ${source}= names no file`)
  return { source, from: /^[a-z][a-z0-9+.-]*:\/\//i.test(from) ? { url: from } : { file: from } }
}

/** A file or folder that was given: it is the source, and nothing that was there before stays. */
export function inputOfFiles(source: string, files: readonly string[]): SourceInput {
  const parts = files.map((path, at) => ({
    part: files.length === 1 ? '' : String(at),
    url: '',
    path,
    fileName: path.split('/').at(-1) ?? '',
    etag: '',
    lastModified: '',
    sha256: digestOf(path),
  }))
  return { source, parts, replaces: 'all' }
}

function digestOf(path: string): string {
  try {
    if (!statSync(path).isFile()) return ''
    return createHash('sha256').update(readFileSync(path)).digest('hex')
  } catch {
    throw new Error(`${path} cannot be read`)
  }
}

/** Several `--source NAME=FILE` of one name are one source of several files. */
function filesByName(wanted: readonly Wanted[]): Map<string, string[]> {
  const files = new Map<string, string[]>()
  for (const { source, from } of wanted)
    if (from !== null && 'file' in from) files.set(source, [...(files.get(source) ?? []), from.file])
  return files
}

type Gathered = { readonly inputs: SourceInput[]; readonly faults: Record<string, string> }

async function gather(request: UpdateRequest, scratch: string, previous: readonly SourceRow[]): Promise<Gathered> {
  const files = filesByName(request.wanted)
  const inputs = [...files].map(([source, paths]) => inputOfFiles(source, paths))
  const faults: Record<string, string> = {}
  for (const { source: name, from } of request.wanted) {
    const source = sourceNamed(name)
    if (source === undefined || files.has(name)) continue
    try {
      request.onFetch?.(name)
      const input = await fetchSource(source, {
        mirror: request.mirror,
        address: from !== null && 'url' in from ? from.url : null,
        scratch,
        previous,
        nowMs: request.now(),
        options: request.fetch,
      })
      if (input !== null) inputs.push(input)
    } catch (error) {
      faults[name] = reasonOf(error)
    }
  }
  return { inputs, faults }
}

function previousSources(current: DatabaseVersion | null): readonly SourceRow[] {
  if (current === null) return []
  const reader = openAdvisories(current.file)
  try {
    return reader.sources
  } finally {
    reader.close()
  }
}

/** Throws ImportRunning when another import has the folder, and Error when the import itself broke. */
export async function update(request: UpdateRequest): Promise<UpdateResult> {
  const { folder } = request
  // Sources are slow, or out of reach: an import by somebody else does not wait for them.
  const downloads = folder.downloads()
  try {
    return await importGathered(request, await gather(request, downloads, previousSources(folder.current())))
  } finally {
    rmSync(downloads, { recursive: true, force: true })
  }
}

async function importGathered(request: UpdateRequest, { inputs, faults }: Gathered): Promise<UpdateResult> {
  const { folder } = request
  return await folder.exclusively(async () => {
    const scratch = folder.scratch()
    const current = folder.current()
    const result = inputs.length === 0 ? null : await importInputs(request, scratch, current, inputs)
    for (const { source, fault } of result?.sources ?? []) if (fault !== null) faults[source] = fault
    const names = new Set(request.wanted.map(({ source }) => source))
    const others = Object.entries(folder.notes().faults).filter(([source]) => !names.has(source))
    folder.writeNotes({ checkedAtMs: request.now(), faults: { ...Object.fromEntries(others), ...faults } })
    folder.clean()
    return { switched: result?.switched ?? null, sources: result?.sources ?? [], faults }
  })
}

async function importInputs(
  request: UpdateRequest,
  scratch: string,
  current: DatabaseVersion | null,
  inputs: readonly SourceInput[],
): Promise<{ readonly switched: DatabaseVersion | null; readonly sources: readonly SourceOutcome[] }> {
  const startedMs = performance.now()
  const version = request.folder.nextVersion(request.now())
  const outFile = join(scratch, 'new.sqlite')
  const outcome = await buildFile(request, {
    inputs,
    outFile,
    stagingFile: join(scratch, 'staging.sqlite'),
    previousFile: current?.file ?? null,
    version,
  })
  const isTaken = outcome.sources.some(({ fault }) => fault === null)
  const switched = isTaken ? request.folder.switchTo(outFile, version) : null
  return { switched, sources: withShared(outcome.sources, (performance.now() - startedMs) / 1000) }
}

/**
 * The time of a source is that of its own records and of what an import does once for all of them: it starts a process,
 * writes and checks the file, and puts it into use.
 */
function withShared(sources: readonly SourceOutcome[], wholeSeconds: number): SourceOutcome[] {
  const shared = wholeSeconds - sources.reduce((sum, { seconds }) => sum + seconds, 0)
  return sources.map(source => ({ ...source, seconds: Math.round((source.seconds + shared) * 1000) / 1000 }))
}

/** Builds a file without a folder's versions: what `db build` needs. */
export async function buildFile(
  request: Pick<UpdateRequest, 'acceptShrink' | 'command' | 'now' | 'onProgress'> & { readonly fetch?: FetchOptions },
  files: {
    readonly inputs: readonly SourceInput[]
    readonly outFile: string
    readonly stagingFile: string
    readonly previousFile: string | null
    readonly version: number
  },
): Promise<BuildOutcome> {
  const { command, onProgress, acceptShrink } = request
  const outcome = await runImport(
    { kind: 'build', ...files, nowMs: request.now(), acceptShrink },
    {
      command,
      ...(onProgress === undefined ? {} : { onProgress }),
      ...(request.fetch === undefined ? {} : { signal: request.fetch.signal }),
    },
  )
  if (outcome.kind !== 'build') throw new Error('the process of the import did another job')
  return outcome
}

type BundleRequest = {
  readonly folder: DatabaseVersions
  readonly bundleFile: string
  readonly publicKeyPem: string | null
  readonly bytesMax: number
  readonly isForced: boolean
  readonly command: readonly string[]
  readonly now: () => number
}

/**
 * Takes a bundle as the version in use (MAT-067 to 070). One that is not newer than every version before is refused,
 * unless forced: it then gets a new, greater version.
 */
export async function importBundle(request: BundleRequest): Promise<DatabaseVersion> {
  const { folder, bundleFile } = request
  const take = async (): Promise<DatabaseVersion> => {
    const claimed = await bundleVersion(bundleFile)
    const highest = folder.highest()
    const isOlder = claimed <= highest
    if (isOlder && !request.isForced)
      throw new SourceRefused(
        claimed === folder.current()?.version
          ? `version ${claimed} is in use already`
          : `the bundle's version ${claimed} is not newer than ${highest}; --force takes it as a new version`,
      )
    const scratch = folder.scratch()
    const outFile = join(scratch, 'new.sqlite')
    const outcome = await unpackInProcess(request, outFile)
    const version = isOlder ? folder.nextVersion(request.now()) : outcome.version
    if (isOlder) setVersion(outFile, version)
    return folder.switchTo(outFile, version)
  }
  return await folder.exclusively(take, BUNDLE_WAIT_MS)
}

async function unpackInProcess(
  request: Pick<BundleRequest, 'bundleFile' | 'publicKeyPem' | 'bytesMax' | 'command'>,
  outFile: string,
): Promise<UnpackOutcome> {
  const { bundleFile, publicKeyPem, bytesMax, command } = request
  const outcome = await runImport({ kind: 'unpack', bundleFile, outFile, publicKeyPem, bytesMax }, { command })
  if (outcome.kind !== 'unpack') throw new Error('the process of the import did another job')
  return outcome
}

/** Unpacks and checks a bundle beside a folder: `db verify`, and `match --db`. */
export async function unpackTo(
  outFile: string,
  request: Pick<BundleRequest, 'bundleFile' | 'publicKeyPem' | 'bytesMax' | 'command'>,
): Promise<UnpackOutcome> {
  const partial = `${outFile}.partial`
  const outcome = await unpackInProcess(request, partial)
  renameSync(partial, outFile)
  return outcome
}
