// Red Hat's VEX files: the archive of all first, then what `changes.csv` and `deletions.csv` name since
// (MAT section 4). When more changed than the archive is worth, the archive is fetched again.
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FetchContext } from './fetch-context.ts'
import { type Fetched, fetchFile } from './fetch-file.ts'
import type { SourceInput } from './import/job.ts'
import { SourceRefused } from './source-refused.ts'
import type { Source } from './sources/catalogue.ts'

const CHANGES_MAX = 2_000
const NO_VALIDATORS = { etag: '', lastModified: '' }
const LIST_BYTES_MAX = 64 * 1024 * 1024

type Change = { readonly path: string; readonly at: string }

/** Of a list no more lines may be of another form, as of records that cannot be read (MAT-066). */
const OTHER_LINES_MAX = 0.01

/**
 * `"2024/cve-2024-0001.json","2024-11-22T10:00:00+00:00"` a line. Throws SourceRefused for what is no such list:
 * nothing would be new, and nobody told.
 */
function readChanges(name: string, text: string): Change[] {
  const lines = text.split('\n').filter(line => line.trim() !== '')
  const changes = lines.flatMap(line => {
    const found = /^"?([\w./-]+\.json)"?,"?([0-9T:.+Z-]+)"?\s*$/.exec(line)
    return found && !found[1]!.includes('..') && Number.isFinite(Date.parse(found[2]!))
      ? [{ path: found[1]!, at: new Date(found[2]!).toISOString() }]
      : []
  })
  const others = lines.length - changes.length
  if (others > lines.length * OTHER_LINES_MAX)
    throw new SourceRefused(`${name}: ${others} of ${lines.length} lines are no path of a file and its time`)
  return changes
}

const newestOf = (changes: readonly Change[]): string =>
  changes
    .map(({ at }) => at)
    .toSorted()
    .at(-1) ?? ''

async function fetchText(url: string, path: string, context: FetchContext): Promise<string> {
  const fetched: Fetched = await fetchFile(url, path, NO_VALIDATORS, {
    ...context.options,
    bytesMax: Math.min(LIST_BYTES_MAX, context.options.bytesMax),
  })
  if (fetched.kind !== 'fetched') throw new SourceRefused('a list of it answers 404')
  return readFileSync(fetched.path, 'utf8')
}

const cveOf = (path: string): string => (path.split('/').at(-1) ?? '').replace(/\.json$/, '').toUpperCase()

async function fetchArchive(source: Source, base: string, newest: string, context: FetchContext): Promise<SourceInput> {
  const name = (await fetchText(`${base}archive_latest.txt`, join(context.scratch, 'redhat-latest'), context)).trim()
  if (!/^[\w.-]+\.tar\.(zst|gz)$/.test(name)) throw new SourceRefused('archive_latest.txt names no archive')
  const path = join(context.scratch, 'redhat-archive')
  const fetched = await fetchFile(`${base}${name}`, path, NO_VALIDATORS, context.options)
  if (fetched.kind !== 'fetched') throw new SourceRefused('its archive answers 404')
  // What changed after the archive was made is fetched by the next update: its day begins the row of changes.
  const day = /(\d{4}-\d\d-\d\d)/.exec(name)?.[1]
  const part = {
    part: '',
    url: base,
    path: fetched.path,
    fileName: name,
    etag: day === undefined ? newest : `${day}T00:00:00.000Z`,
    lastModified: '',
    sha256: fetched.sha256,
  }
  return { source: source.name, parts: [part], replaces: 'all' }
}

/** The newest change that was taken stands in `etag`: the row's place for what the next request begins from. */
export async function fetchRedhat(source: Source, url: string, context: FetchContext): Promise<SourceInput | null> {
  if (!url.endsWith('/')) return await fetchWhole(source, url, context)
  const before = context.previous.find(({ name, url: own }) => name === source.name && own === url)
  const read = async (name: string): Promise<Change[]> =>
    readChanges(name, await fetchText(`${url}${name}`, join(context.scratch, `redhat-${name}`), context))
  const changes = await read('changes.csv')
  if (changes.length === 0) throw new SourceRefused('changes.csv names no file')
  const newest = newestOf(changes)
  const since = before?.etag ?? ''
  const changed = changes.filter(({ at }) => at > since)
  if (since === '' || changed.length > CHANGES_MAX) return await fetchArchive(source, url, newest, context)
  const deletions = await read('deletions.csv')
  const deletedAt = new Map(deletions.map(({ path, at }) => [path, at]))
  // A file that was deleted after it changed is not there to be fetched.
  const fresh = changed.filter(({ path, at }) => (deletedAt.get(path) ?? '') < at)
  const deleted = deletions.filter(({ at }) => at > since).map(({ path }) => cveOf(path))
  if (fresh.length === 0 && deleted.length === 0) return null
  const path = join(context.scratch, 'redhat-files.jsonl')
  appendFileSync(path, '')
  for (const [at, change] of fresh.entries()) {
    const file = join(context.scratch, `redhat-${at}`)
    const text = await fetchText(`${url}${change.path}`, file, context)
    appendFileSync(path, `${oneLine(text)}\n`)
  }
  const part = {
    part: '',
    url,
    path,
    fileName: 'changes.jsonl',
    etag: [newest, newestOf(deletions), since].toSorted().at(-1) ?? '',
    lastModified: '',
    sha256: '',
  }
  return { source: source.name, parts: [part], replaces: 'changes', deleted }
}

/** An address of an archive or a single file, as an operator may give one. */
async function fetchWhole(source: Source, url: string, context: FetchContext): Promise<SourceInput | null> {
  const before = context.previous.find(({ name, url: own }) => name === source.name && own === url)
  const known = before === undefined ? NO_VALIDATORS : { etag: before.etag, lastModified: before.last_modified }
  const path = join(context.scratch, 'redhat-archive')
  const fetched = await fetchFile(url, path, known, context.options)
  if (fetched.kind === 'absent') throw new SourceRefused('it answers 404: it is not at this address')
  if (fetched.kind === 'unchanged' || fetched.sha256 === before?.sha256) return null
  const { etag, lastModified, sha256 } = fetched
  const fileName = new URL(url).pathname.split('/').at(-1) ?? ''
  return {
    source: source.name,
    parts: [{ part: '', url, path: fetched.path, fileName, etag, lastModified, sha256 }],
    replaces: 'all',
  }
}

/** A file on one line; one that is no JSON stays a line that cannot be read, and is counted so. */
function oneLine(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return '{'
  }
}
