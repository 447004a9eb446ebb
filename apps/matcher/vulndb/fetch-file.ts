// Downloads one file of a source (MAT-061, 063): https only, except from loopback, to a temporary file of bounded size,
// with a limit on silence and three tries; asked with what the version before was answered, so that nothing new costs
// nothing.
import { createHash } from 'node:crypto'
import { closeSync, createReadStream, openSync, rmSync, writeSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { SourceRefused } from './source-refused.ts'

export type FetchOptions = {
  readonly bytesMax: number
  /** Longest silence, before the answer and inside it. */
  readonly stallMs: number
  /** Longest wait for a connection. */
  readonly connectMs: number
  readonly tries: number
  /** Wait before the second try; doubles. */
  readonly retryMs: number
  readonly signal: AbortSignal
}

export const FETCH_DEFAULTS = { stallMs: 60_000, connectMs: 10_000, tries: 3, retryMs: 2_000 }

type Validators = { readonly etag: string; readonly lastModified: string }

export type Fetched =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'absent' }
  | ({ readonly kind: 'fetched'; readonly path: string; readonly sha256: string } & Validators)

const REDIRECTS_MAX = 5
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/** Throws for an address that is not https, http to loopback, or a file of this host. */
export function checkAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (
    url?.protocol === 'https:' ||
    url?.protocol === 'file:' ||
    (url?.protocol === 'http:' && LOOPBACK.test(url.hostname))
  )
    return url
  throw new SourceRefused('its address is not https')
}

/** What passes by itself, so that another try is worth it. */
class Passing extends Error {}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>(resolve => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Throws SourceRefused with the reason, for the operator, once no try is left. */
export async function fetchFile(
  address: string,
  path: string,
  known: Validators,
  options: FetchOptions,
): Promise<Fetched> {
  const url = checkAddress(address)
  if (url.protocol === 'file:') return await readHere(fileURLToPath(url), known, options)
  let reason = ''
  for (let tried = 0; tried < options.tries && !options.signal.aborted; tried++) {
    if (tried > 0) await pause(options.retryMs * 2 ** (tried - 1), options.signal)
    try {
      return await fetchOnce(url, path, known, options)
    } catch (error) {
      rmSync(path, { force: true })
      if (!(error instanceof Passing)) throw error
      reason = error.message
    }
  }
  throw new SourceRefused(options.signal.aborted ? 'stopped' : reason)
}

/** A file of a mirror on this host is read where it lies; its time and size say whether it is another one. */
async function readHere(path: string, known: Validators, options: FetchOptions): Promise<Fetched> {
  const found = await stat(path).catch(() => null)
  if (found === null) return { kind: 'absent' }
  if (!found.isFile()) throw new SourceRefused('its address is no file')
  if (found.size > options.bytesMax)
    throw new SourceRefused(`it is larger than db.source_max_bytes (${options.bytesMax})`)
  const etag = `${found.mtimeMs}-${found.size}`
  if (etag === known.etag) return { kind: 'unchanged' }
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return { kind: 'fetched', path, sha256: hash.digest('hex'), etag, lastModified: '' }
}

/** Ends the request when nobody takes a connection in time, or when nothing comes for too long. */
class Stall {
  readonly controller = new AbortController()
  private timer: ReturnType<typeof setTimeout> | undefined
  /** Why the request was ended; null while it was not. */
  reason: string | null = null

  constructor(private readonly options: FetchOptions) {
    options.signal.addEventListener('abort', this.abort)
  }

  private readonly abort = (): void => this.controller.abort()

  wait(ms: number): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.giveUp('it stalled: nothing came for too long'), ms)
  }

  giveUp(reason: string): void {
    this.reason = reason
    this.controller.abort()
  }

  end(): void {
    clearTimeout(this.timer)
    this.options.signal.removeEventListener('abort', this.abort)
  }
}

/** The share of the time to connect after which a request without an answer is looked after. */
const PROBE_SHARE = 0.2

/**
 * Gives the request up when nobody takes a connection in time. The client says nothing of its own connection, so that
 * another one is tried, once the answer is late; what that one meets otherwise is the request's own to tell. Returns
 * what ends the watch.
 */
function watchConnection(url: URL, stall: Stall, { connectMs }: FetchOptions): () => void {
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  let probe: Socket | null = null
  const end = (): void => {
    clearTimeout(late)
    clearTimeout(over)
    probe?.destroy()
  }
  const over = setTimeout(() => stall.giveUp('it takes no connection'), connectMs)
  const late = setTimeout(() => {
    probe = connect({ host: url.hostname.replace(/^\[|\]$/g, ''), port })
    probe.once('connect', end)
    probe.once('error', end)
  }, connectMs * PROBE_SHARE)
  return end
}

/** The head of the answer. */
async function headOf(url: URL, headers: Record<string, string>, stall: Stall, options: FetchOptions) {
  stall.wait(options.stallMs)
  const unwatch = watchConnection(url, stall, options)
  try {
    return await fetch(url.href, { redirect: 'manual', signal: stall.controller.signal, headers })
  } finally {
    unwatch()
  }
}

async function fetchOnce(first: URL, path: string, known: Validators, options: FetchOptions): Promise<Fetched> {
  const stall = new Stall(options)
  const asked = {
    ...(known.etag === '' ? {} : { 'If-None-Match': known.etag }),
    ...(known.lastModified === '' ? {} : { 'If-Modified-Since': known.lastModified }),
  }
  let url = first
  try {
    for (let hop = 0; hop <= REDIRECTS_MAX; hop++) {
      const response = await headOf(url, asked, stall, options)
      const location = response.headers.get('location')
      if (response.status < 300 || response.status > 399 || response.status === 304 || location === null)
        return await take(response, path, stall, options)
      await response.body?.cancel()
      const next = URL.canParse(location, url.href) ? new URL(location, url.href) : null
      if (
        next?.protocol !== 'https:' &&
        !(url.protocol === 'http:' && next?.protocol === 'http:' && LOOPBACK.test(next.hostname))
      )
        throw new SourceRefused('it redirects to an address that is not https')
      url = next
    }
    throw new SourceRefused(`it redirects more than ${REDIRECTS_MAX} times`)
  } catch (error) {
    if (error instanceof SourceRefused || error instanceof Passing) throw error
    throw new Passing(stall.reason ?? 'it cannot be reached, or the connection broke')
  } finally {
    stall.end()
  }
}

async function take(response: Response, path: string, stall: Stall, options: FetchOptions): Promise<Fetched> {
  if (response.status === 304) return { kind: 'unchanged' }
  if (response.status === 404 || response.status === 410) return { kind: 'absent' }
  if (response.status === 429 || response.status >= 500) throw new Passing(`it answers ${response.status}`)
  if (response.status !== 200 || response.body === null) throw new SourceRefused(`it answers ${response.status}`)
  const announced = Number(response.headers.get('content-length') ?? 0)
  const tooLarge = `it is larger than db.source_max_bytes (${options.bytesMax})`
  if (announced > options.bytesMax) throw new SourceRefused(tooLarge)
  const hash = createHash('sha256')
  const file = openSync(path, 'w', 0o600)
  let bytes = 0
  try {
    stall.wait(options.stallMs)
    for await (const chunk of response.body) {
      stall.wait(options.stallMs)
      bytes += chunk.length
      if (bytes > options.bytesMax) throw new SourceRefused(tooLarge)
      hash.update(chunk)
      for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at)
    }
  } finally {
    closeSync(file)
  }
  // A body whose encoding the client undoes is longer than what was announced.
  const isPlain = response.headers.get('content-encoding') === null
  if (isPlain && announced > 0 && bytes < announced) throw new Passing('it was cut short')
  return {
    kind: 'fetched',
    path,
    sha256: hash.digest('hex'),
    etag: response.headers.get('etag') ?? '',
    lastModified: response.headers.get('last-modified') ?? '',
  }
}
