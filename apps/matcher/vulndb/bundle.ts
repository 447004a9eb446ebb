// A bundle (MAT-067 to 069): one line of JSON, then the database file in zstd. It carries a database to hosts without
// internet; who trusts whom is said by a signature over the line, which names the SHA-256 of the content.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, readFileSync, renameSync, rmSync } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, constants as zlib } from 'node:zlib'
import { syncPath } from '../../files/replace-file.ts'
import { isVersion } from './check-file.ts'
import { inflated } from './input/inflate.ts'
import { openAdvisories } from './reader.ts'
import { signHeader, sortedJson, verifyHeader } from './signature.ts'
import { SourceRefused } from './source-refused.ts'
import { isObject, textOf } from './sources/source.ts'

const BUNDLE_FORMAT = 1
const HEADER_BYTES_MAX = 1024 * 1024
const COMPRESSION_LEVEL = 9

type BundleHeader = {
  readonly format: number
  readonly db_version: number
  readonly built_at_ms: number
  readonly sources: readonly unknown[]
  readonly sha256: string
  readonly size_bytes: number
  readonly key_id: string
  readonly signature: string
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

/** Writes the bundle of a database file; signed when a private key is given. */
export async function writeBundle(
  databaseFile: string,
  outFile: string,
  privateKeyPem: string | null,
): Promise<BundleHeader> {
  const reader = openAdvisories(databaseFile)
  const sources = reader.sources.map(({ name, part, url, fetched_at_ms, records, rejected, licence }) => ({
    name,
    part,
    url,
    fetched_at_ms,
    records,
    rejected,
    licence,
  }))
  const unsigned = {
    format: BUNDLE_FORMAT,
    db_version: reader.version,
    built_at_ms: reader.builtAtMs,
    sources,
    sha256: await digestOf(databaseFile),
    size_bytes: (await stat(databaseFile)).size,
  }
  reader.close()
  const header = {
    ...unsigned,
    ...(privateKeyPem === null ? { key_id: '', signature: '' } : signHeader(unsigned, privateKeyPem)),
  }
  const temporary = `${outFile}.tmp`
  try {
    const out = createWriteStream(temporary, { mode: 0o644 })
    out.write(`${sortedJson(header)}\n`)
    const compress = createZstdCompress({ params: { [zlib.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL } })
    await pipeline(createReadStream(databaseFile), compress, out)
    syncPath(temporary)
    renameSync(temporary, outFile)
  } finally {
    rmSync(temporary, { force: true })
  }
  return header
}

function checkedHeader(line: string): { readonly header: BundleHeader; readonly signed: object } {
  let value: unknown = null
  try {
    value = JSON.parse(line)
  } catch {
    // Said below.
  }
  if (!isObject(value) || typeof value.format !== 'number')
    throw new SourceRefused('it is not a bundle: its first line is no header')
  if (value.format > BUNDLE_FORMAT)
    throw new SourceRefused(
      `the bundle is of format ${value.format}, this program reads ${BUNDLE_FORMAT}: use a newer matcher`,
    )
  const { signature, ...signed } = value
  const { db_version: version, built_at_ms: builtAtMs, sources, sha256, size_bytes: bytes } = value
  if (
    value.format !== BUNDLE_FORMAT ||
    typeof version !== 'number' ||
    !isVersion(version) ||
    typeof builtAtMs !== 'number' ||
    !Array.isArray(sources) ||
    typeof sha256 !== 'string' ||
    !/^[0-9a-f]{64}$/.test(sha256) ||
    typeof bytes !== 'number' ||
    !Number.isSafeInteger(bytes) ||
    bytes <= 0
  )
    throw new SourceRefused('the header of the bundle is broken')
  const header = {
    format: value.format,
    db_version: version,
    built_at_ms: builtAtMs,
    sources,
    sha256,
    size_bytes: bytes,
    key_id: textOf(value.key_id),
    signature: textOf(signature),
  }
  return { header, signed }
}

/** The header, and where the content begins. */
async function readHeader(
  path: string,
): Promise<{ readonly header: BundleHeader; readonly signed: object; readonly contentAt: number }> {
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES_MAX), 0, HEADER_BYTES_MAX, 0)
    const end = buffer.subarray(0, bytesRead).indexOf(0x0a)
    if (end < 0) throw new SourceRefused('it is not a bundle: its first line is no header')
    return { ...checkedHeader(buffer.toString('utf8', 0, end)), contentAt: end + 1 }
  } finally {
    await file.close()
  }
}

/** The version that a bundle claims, before anything of it is believed. */
export const bundleVersion = async (path: string): Promise<number> => (await readHeader(path)).header.db_version

/**
 * Checks a bundle and writes its database file. Throws SourceRefused for one that is unsigned though a key asks for a
 * signature, changed, truncated, of a greater format, or expands beyond what it says or `bytesMax`.
 */
export async function unpackBundle(
  path: string,
  outFile: string,
  check: { readonly publicKeyPem: string | null; readonly bytesMax: number },
): Promise<BundleHeader> {
  const { header, signed, contentAt } = await readHeader(path)
  if (check.publicKeyPem !== null) verifyHeader(signed, header.signature, check.publicKeyPem)
  if (header.size_bytes > check.bytesMax)
    throw new SourceRefused(`the bundle's database has ${header.size_bytes} bytes, more than ${check.bytesMax}`)
  const hash = createHash('sha256')
  let bytes = 0
  async function* counted(): AsyncGenerator<Uint8Array> {
    const content = createReadStream(path, { start: contentAt })
    for await (const chunk of inflated(content, 'zstd', Number.POSITIVE_INFINITY)) {
      bytes += chunk.length
      if (bytes > header.size_bytes) throw new SourceRefused('the bundle expands beyond its size_bytes')
      hash.update(chunk)
      yield chunk
    }
  }
  await pipeline(Readable.from(counted()), createWriteStream(outFile, { mode: 0o600 }))
  if (bytes !== header.size_bytes) throw new SourceRefused('the bundle is truncated')
  if (hash.digest('hex') !== header.sha256)
    throw new SourceRefused('the content of the bundle is not what its header says')
  syncPath(outFile)
  return header
}

export const readKeyFile = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(
      `the key file cannot be read: ${error instanceof Error && 'code' in error ? String(error.code) : 'error'}`,
    )
  }
}
