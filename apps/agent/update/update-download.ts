// Fetches a release and makes it ready to be put in place (document 3 "Proposed update-manifest extension"): https, no
// redirect to another host, no byte more than the manifest says, the hash checked before anything of it is used.
import { createHash } from 'node:crypto'
import {
  closeSync,
  createReadStream,
  createWriteStream,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { rootCertificates } from 'node:tls'
import { createZstdDecompress } from 'node:zlib'
import { syncPath } from '../../files/replace-file.ts'
import type { Installation } from './installation.ts'

type DownloadOrder = {
  readonly url: string
  readonly version: string
  readonly sha256: string
  readonly sizeBytes: number
  /** An authority trusted besides those of the system; null without one. */
  readonly caPem: string | null
  readonly userAgent: string
}

const REDIRECTS_MAX = 5
/** A server that sends nothing for so long is given up. */
const SILENCE_MS = 60_000
const VERSION_ANSWER_MS = 30_000
/** An executable with its runtime is about 110 MiB; this only keeps a wrong file from filling the disk. */
const INSTALLED_BYTES_MAX = 512 * 1024 * 1024
const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

/** A refusal in words for the operator. */
class DownloadFault extends Error {}

const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status)

/** Where a redirect leads; a fault when that is another host, or not https. */
function redirectTarget(from: URL, location: string | null): URL {
  if (location === null || !URL.canParse(location, from.href)) throw new DownloadFault('a redirect leads nowhere')
  const to = new URL(location, from)
  if (to.protocol !== 'https:' || to.host !== from.host)
    throw new DownloadFault(`a redirect leads to another host: ${to.host}`)
  return to
}

async function open(order: DownloadOrder, signal: AbortSignal): Promise<Response> {
  const ca = order.caPem === null ? {} : { ca: [...rootCertificates, order.caPem] }
  const tls = { rejectUnauthorized: true, ...ca }
  let url = new URL(order.url)
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    if (url.protocol !== 'https:') throw new DownloadFault('the url is not https')
    const headers = { 'User-Agent': order.userAgent, 'Accept-Encoding': 'identity' }
    const response = await fetch(url, { redirect: 'manual', headers, signal, tls })
    if (response.status === 200) return response
    await response.body?.cancel()
    if (!isRedirect(response.status)) throw new DownloadFault(`the download answers HTTP ${response.status}`)
    url = redirectTarget(url, response.headers.get('location'))
  }
  throw new DownloadFault('the download redirects in a circle')
}

/** Writes the body to a file; a fault when it is not exactly what the manifest says. */
async function receive(order: DownloadOrder, path: string, stop: AbortSignal): Promise<void> {
  const silence = new AbortController()
  const timer = setTimeout(() => silence.abort(new Error('the download has stalled')), SILENCE_MS)
  const response = await open(order, AbortSignal.any([stop, silence.signal]))
  const hash = createHash('sha256')
  // A new file: what somebody planted under the name is not written through.
  const file = openSync(path, 'wx', 0o600)
  let size = 0
  try {
    for await (const part of response.body ?? []) {
      timer.refresh()
      size += part.length
      if (size > order.sizeBytes) throw new DownloadFault(`the download is larger than ${order.sizeBytes} bytes`)
      hash.update(part)
      for (let at = 0; at < part.length; ) at += writeSync(file, part, at, part.length - at)
    }
    fsyncSync(file)
  } finally {
    clearTimeout(timer)
    closeSync(file)
    // Ends a transfer that goes on after a fault.
    silence.abort()
  }
  if (size !== order.sizeBytes) throw new DownloadFault(`the download has ${size} bytes instead of ${order.sizeBytes}`)
  if (hash.digest('hex') !== order.sha256) throw new DownloadFault('the sha256 of the download is another one')
}

function isZstd(path: string): boolean {
  const file = openSync(path, 'r')
  try {
    const head = Buffer.alloc(ZSTD_MAGIC.length)
    return readSync(file, head) === ZSTD_MAGIC.length && head.equals(ZSTD_MAGIC)
  } finally {
    closeSync(file)
  }
}

/**
 * A release is the executable, or the executable as a zstd frame: 40 MiB hold none with its runtime inside otherwise.
 */
async function unpack(from: string, to: string): Promise<void> {
  if (!isZstd(from)) {
    renameSync(from, to)
    return
  }
  let size = 0
  const bound = new Transform({
    transform(part: Buffer, _encoding, done) {
      size += part.length
      done(size > INSTALLED_BYTES_MAX ? new DownloadFault('the release is too large once unpacked') : null, part)
    },
  })
  await pipeline(
    createReadStream(from),
    createZstdDecompress(),
    bound,
    createWriteStream(to, { mode: 0o600, flags: 'wx' }),
  )
  rmSync(from)
}

/** What a staged executable says that it is: one for another host, or a broken one, says nothing. */
async function statedVersion(path: string): Promise<string | null> {
  try {
    const child = Bun.spawn([path, '--version'], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'ignore',
      timeout: VERSION_ANSWER_MS,
      killSignal: 'SIGKILL',
    })
    const [text, status] = await Promise.all([new Response(child.stdout).text(), child.exited])
    return status === 0 ? text.trim() : null
  } catch {
    return null
  }
}

/** Stages a release beside the executable. Null when it is ready to be put in place, else why not, in words. */
export async function stageUpdate(
  order: DownloadOrder,
  installation: Installation,
  stop: AbortSignal,
): Promise<string | null> {
  const { downloadPath, stagedPath } = installation
  try {
    installation.clearStaging()
    await receive(order, downloadPath, stop)
    await unpack(downloadPath, stagedPath)
    syncPath(stagedPath)
    installation.makeStagedExecutable()
    const version = await statedVersion(stagedPath)
    if (version !== order.version)
      throw new DownloadFault(`the release ${version === null ? 'does not run here' : `says that it is ${version}`}`)
    return null
  } catch (error) {
    installation.clearStaging()
    return error instanceof Error ? error.message : String(error)
  }
}
