// What a source is given as (MAT-088): one file, a folder, a zip or tar archive, each plain or packed by gzip or zstd,
// as a row of documents. Their order is that of names in a folder and of entries in an archive; nothing depends on it.
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { SourceRefused } from '../source-refused.ts'
import { inflatedFile, type Packing, packingOfFile, peekPacking } from './inflate.ts'
import { JsonSplitter } from './json-values.ts'
import { tarEntries } from './tar.ts'
import { zipEntries } from './zip.ts'

export type Document = {
  /** Name of the file or the entry, without a folder and without `.gz` or `.zst`. */
  readonly name: string
  readonly chunks: AsyncIterable<Uint8Array>
}

const FILES_MAX = 1_000_000
const isWantedEntry = (name: string): boolean => /\.(json|jsonl|ndjson|csv)$/i.test(name)
const isWantedFile = (name: string): boolean => /\.(json|jsonl|ndjson|csv|zip|tar|tgz)(\.(gz|zst))?$/i.test(name)

const baseName = (path: string): string => path.split('/').at(-1) ?? path
const plainName = (path: string): string => baseName(path).replace(/\.(gz|zst)$/i, '')

/** A path of a job that cannot be read is said by its last part: messages leave the process. */
async function kindOf(path: string): Promise<'folder' | 'file'> {
  try {
    const found = await stat(path)
    if (found.isDirectory()) return 'folder'
    if (found.isFile()) return 'file'
  } catch (error) {
    throw new SourceRefused(`${baseName(path)} cannot be read`, { cause: error })
  }
  throw new SourceRefused(`${baseName(path)} is neither a file nor a folder`)
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function* filesOfFolder(folder: string): AsyncGenerator<string> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  if (entries.length > FILES_MAX) throw new SourceRefused(`the folder has more than ${FILES_MAX} files`)
  const paths = entries
    .filter(entry => entry.isFile() && isWantedFile(entry.name))
    .map(entry => join(entry.parentPath, entry.name))
  yield* paths.toSorted()
}

async function* entriesAsDocuments(
  entries: AsyncIterable<{ readonly name: string; readonly bytes: Uint8Array }>,
): AsyncGenerator<Document> {
  for await (const { name, bytes } of entries) yield { name: baseName(name), chunks: once(bytes) }
}

async function* documentsOfFile(path: string, name: string): AsyncGenerator<Document> {
  const outer: Packing = await packingOfFile(path)
  if (outer === 'zip') {
    yield* entriesAsDocuments(zipEntries(path, isWantedEntry))
    return
  }
  const { packing, chunks } = await peekPacking(inflatedFile(path, outer))
  if (packing === 'tar') yield* entriesAsDocuments(tarEntries(chunks, isWantedEntry))
  else if (packing === 'plain' && outer !== 'tar') yield { name: plainName(name), chunks }
  else throw new SourceRefused(`${packing} inside ${outer} is not read: unpack it once`)
}

/** `name` stands for a file fetched under another one. */
export async function* documentsOf(path: string, name = path): AsyncGenerator<Document> {
  if ((await kindOf(path)) === 'file') {
    yield* documentsOfFile(path, name)
    return
  }
  for await (const file of filesOfFolder(path)) yield* documentsOfFile(file, file)
}

/** Lines of a document, without their ends. The last one may have none. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > 256 * 1024 * 1024) throw new SourceRefused('one of its lines is larger than 256 MiB')
    for (const line of lines) yield line
  }
  if (rest !== '') yield rest
}

/**
 * The JSON values of a document: each line of `.jsonl`, else each value that stands at the top, and the elements of
 * one that is an array. Null stands for one that cannot be read.
 */
export async function* jsonRecords(document: Document): AsyncGenerator<unknown> {
  if (/\.(jsonl|ndjson)$/i.test(document.name)) {
    for await (const line of linesOf(document.chunks)) if (line.trim() !== '') yield parsed(line)
    return
  }
  const splitter = new JsonSplitter(0)
  let found = 0
  try {
    for await (const chunk of document.chunks)
      for (const piece of splitter.push(chunk)) {
        found += 1
        const value = parsed(piece.text)
        if (Array.isArray(value)) yield* value
        else yield value
      }
  } catch (error) {
    // A text that is no JSON spoils the one file of a folder or archive, whose limit is that of records.
    if (!(error instanceof SourceRefused) || !error.message.includes('JSON')) throw error
    yield null
    return
  }
  if (!splitter.isWhole || found === 0) yield null
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Values at a level of one large JSON text; throws SourceRefused when it ends before it is closed. */
export async function* jsonMembers(
  document: Document,
  level: 1 | 2,
): AsyncGenerator<{ readonly keys: readonly string[]; readonly value: unknown }> {
  const splitter = new JsonSplitter(level)
  for await (const chunk of document.chunks)
    for (const { keys, text } of splitter.push(chunk)) yield { keys, value: parsed(text) }
  if (!splitter.isWhole) throw new SourceRefused(`${document.name} is empty or truncated`)
}
