// A zip archive read as a stream, one entry after the other (MAT-074): entries with an absolute name or `..` refuse
// the archive, and so does one that inflates beyond 200 times or has another check sum than the directory says. Each
// entry is held whole, since records are small.
import { createReadStream } from 'node:fs'
import { crc32 } from 'node:zlib'
import { Unzip, type UnzipFile, UnzipInflate, UnzipPassThrough } from 'fflate'
import { SourceRefused } from '../source-refused.ts'
import { INFLATION_FREE_BYTES, INFLATION_MAX } from './inflate.ts'
import { BROKEN, readZipDirectory, sumKey, type ZipDirectory } from './zip-directory.ts'

export type ArchiveEntry = { readonly name: string; readonly bytes: Uint8Array }

export const ENTRY_BYTES_MAX = 256 * 1024 * 1024
const CHUNK_BYTES = 64 * 1024

/** Throws for a name that could leave the folder it is unpacked in, though nothing here is unpacked to disk. */
export function checkEntryName(name: string): void {
  const parts = name.split(/[/\\]/)
  if (name.startsWith('/') || name.startsWith('\\') || /^[A-Za-z]:/.test(name) || parts.includes('..'))
    throw new SourceRefused('an entry of the archive has an absolute name or one with ..')
}

/** Collects the entries that one pushed piece of the archive completes. */
class EntryCollector {
  readonly ready: ArchiveEntry[] = []
  seen = 0
  private failure: unknown = null
  private readonly unzip: Unzip
  /** Bytes of the archive that were pushed: an entry of unknown size cannot have been smaller than what came of it. */
  private pushed = 0

  constructor(
    private readonly isWanted: (name: string) => boolean,
    private readonly sums: ZipDirectory['sums'],
  ) {
    this.unzip = new Unzip(file => this.begin(file))
    this.unzip.register(UnzipInflate)
    this.unzip.register(UnzipPassThrough)
  }

  push(chunk: Uint8Array, isLast: boolean): void {
    this.pushed += chunk.length
    try {
      this.unzip.push(chunk, isLast)
    } catch (error) {
      this.failure ??= error
    }
    if (this.failure instanceof SourceRefused) throw this.failure
    if (this.failure !== null) throw new SourceRefused(BROKEN, { cause: this.failure })
  }

  private begin(file: UnzipFile): void {
    this.seen += 1
    checkEntryName(file.name)
    if (!this.isWanted(file.name)) return
    const pieces: Uint8Array[] = []
    const startedAt = this.pushed
    let bytes = 0
    file.ondata = (error, data, isLast) => {
      if (error) {
        this.failure ??= error
        return
      }
      bytes += data.length
      const packed = file.size ?? this.pushed - startedAt + CHUNK_BYTES
      if (bytes > ENTRY_BYTES_MAX) this.stop(file, 'an entry of the archive is larger than 256 MiB')
      else if (bytes > INFLATION_FREE_BYTES && bytes > packed * INFLATION_MAX)
        this.stop(file, `an entry of the archive inflates beyond ${INFLATION_MAX} times its size`)
      else pieces.push(data.slice())
      if (isLast && this.failure === null) this.finish(file.name, Buffer.concat(pieces))
    }
    file.start()
  }

  private finish(name: string, bytes: Buffer): void {
    if (this.sums.has(sumKey(name, crc32(bytes)))) this.ready.push({ name, bytes })
    else this.failure = new SourceRefused(`${BROKEN}: an entry has another check sum`)
  }

  private stop(file: UnzipFile, reason: string): void {
    this.failure ??= new SourceRefused(reason)
    file.terminate?.()
  }
}

export async function* zipEntries(path: string, isWanted: (name: string) => boolean): AsyncGenerator<ArchiveEntry> {
  const { announced, sums } = await readZipDirectory(path)
  const collector = new EntryCollector(isWanted, sums)
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    if (!(chunk instanceof Uint8Array)) continue
    collector.push(chunk, false)
    yield* collector.ready.splice(0)
  }
  collector.push(new Uint8Array(0), true)
  yield* collector.ready.splice(0)
  if (announced !== null && announced !== collector.seen)
    throw new SourceRefused(`the archive announces ${announced} entries and has ${collector.seen}`)
}
