// Changes go through the REST API, with the session's cookie and its token. A limit is waited out and said; a session
// that is over is renewed within the page, and the change is then done.
import { signal } from '@preact/signals'
import { shellWords } from '../words/shell.ts'
import { company, csrfToken, isSignedOut, language, textsOf } from './session.ts'

const t = textsOf(shellWords)

export type ApiFault = {
  readonly status: number
  readonly message: string
  /** What is wrong with which field of what was sent. */
  readonly errors: Readonly<Record<string, readonly string[]>>
  readonly requestId: string | null
}
export type ApiResult<T = unknown> =
  | { readonly ok: true; readonly body: T }
  | { readonly ok: false; readonly fault: ApiFault }

/** How long a limit of the API is still waited for, in whole seconds; 0: nothing waits. */
export const waitingSeconds = signal(0)

/** Told after each change that this page has made: what others share may be older. */
export const changeCount = signal(0)

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function errorsOf(body: unknown): Record<string, readonly string[]> {
  if (!isObject(body) || !isObject(body.errors)) return {}
  const entries = Object.entries(body.errors).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]))
  return Object.fromEntries(entries.map(([field, texts]) => [field, texts.map(String)]))
}

/** What an answer says of a refusal. */
export async function faultOf(response: Response): Promise<ApiFault> {
  const body: unknown = await response.json().catch(() => null)
  const message = isObject(body) && typeof body.message === 'string' ? body.message : t('failed')
  return {
    status: response.status,
    message,
    errors: errorsOf(body),
    requestId: response.headers.get('x-request-id'),
  }
}

export const unreachable: ApiFault = { status: 0, message: t('unreachable'), errors: {}, requestId: null }

/** Waits for a limit, and says so. */
export async function waitFor(seconds: number): Promise<void> {
  for (let left = seconds; left > 0; left--) {
    waitingSeconds.value = left
    await new Promise(resolve => setTimeout(resolve, 1_000))
  }
  waitingSeconds.value = 0
}

/** Resolves once somebody has signed in again. */
export function signedInAgain(): Promise<void> {
  return new Promise(resolve => {
    const stop = isSignedOut.subscribe(isOut => {
      if (isOut) return
      queueMicrotask(() => stop())
      resolve()
    })
  })
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** A request below /api/v1. Never rejects. */
export const send = <T = unknown>(method: Method, path: string, body?: unknown): Promise<ApiResult<T>> =>
  request<T>(method, `/api/v1${path}`, body)

/** A request of the web interface's own, below /web. Never rejects. */
export const sendOwn = <T = unknown>(method: Method, path: string, body?: unknown): Promise<ApiResult<T>> =>
  request<T>(method, `/web${path}?company=${encodeURIComponent(company.slug)}`, body)

async function request<T>(method: Method, url: string, body: unknown): Promise<ApiResult<T>> {
  for (;;) {
    let response: Response
    try {
      response = await fetch(url, {
        method,
        headers: {
          Accept: 'application/json',
          'Accept-Language': language,
          'X-CSRF-Token': csrfToken(),
          'X-Company-Id': company.id,
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    } catch {
      return { ok: false, fault: unreachable }
    }
    if (response.status === 401) {
      isSignedOut.value = true
      await signedInAgain()
      continue
    }
    if (response.status === 429) {
      await waitFor(Number(response.headers.get('retry-after') ?? 10))
      continue
    }
    if (!response.ok) return { ok: false, fault: await faultOf(response) }
    const answered: T = response.status === 204 ? null : await response.json()
    if (method !== 'GET') changeCount.value++
    return { ok: true, body: answered }
  }
}

/** How many requests of an act on many are under way at a time. */
const EACH_AT_ONCE = 4
/** An act on many, one by one: how many were done, which were not, and what the first of those was told. */
export type EachResult = { readonly done: number; readonly left: readonly string[]; readonly fault: ApiFault | null }

/** Whether the same would be said of everything else: no right, no hub. */
const isOfAll = ({ status }: ApiFault): boolean => status === 0 || status === 403 || status >= 500

/**
 * An act that the API takes one by one, a few at a time. What is refused of one holds up no other; once nothing can be
 * done any more, or `isOver` says so, the rest is left.
 */
export async function sendEach(
  ids: readonly string[],
  act: (id: string) => Promise<ApiResult>,
  onDone: (done: number) => void = () => {},
  isOver: () => boolean = () => false,
): Promise<EachResult> {
  const left = new Set(ids)
  let [next, fault, isStopped]: [number, ApiFault | null, boolean] = [0, null, false]
  const work = async (): Promise<void> => {
    for (let id = ids[next++]; id !== undefined && !isStopped && !isOver(); id = ids[next++]) {
      const result = await act(id)
      if (result.ok) {
        left.delete(id)
        onDone(ids.length - left.size)
      } else {
        fault ??= result.fault
        isStopped ||= isOfAll(result.fault)
      }
    }
  }
  await Promise.all(Array.from({ length: EACH_AT_ONCE }, work))
  return { done: ids.length - left.size, left: [...left], fault }
}

/** The most ids that a bulk endpoint takes in a call. */
const BULK_MAX = 200
/** An act on many as the bulk endpoints answer it: how many were done, and what was refused. */
type Refusal = { readonly id: string; readonly errors: Readonly<Record<string, string>> }
type BulkResult = {
  readonly done: number
  readonly refused: readonly Refusal[]
  readonly fault: ApiFault | null
}

/** Whether an act on many was done to all of them, as an act on one says it: what was refused is a fault. */
export function resultOfAll({ refused: [first], fault }: BulkResult): ApiResult {
  if (fault !== null) return { ok: false, fault }
  if (first === undefined) return { ok: true, body: null }
  const message = Object.values(first.errors).join(' ')
  return { ok: false, fault: { status: 422, message, errors: {}, requestId: null } }
}

/** An act on many things, in as few requests as the API allows. `onDone` is told how many are done so far. */
export async function sendBulk(
  path: string,
  idsName: string,
  ids: readonly string[],
  body: Readonly<Record<string, unknown>>,
  onDone: (done: number) => void = () => {},
): Promise<BulkResult> {
  let done = 0
  const refused: Refusal[] = []
  for (let at = 0; at < ids.length; at += BULK_MAX) {
    const part = ids.slice(at, at + BULK_MAX)
    const result = await send<{ refused: readonly Refusal[] }>('POST', path, { ...body, [idsName]: part })
    if (!result.ok) return { done, refused, fault: result.fault }
    refused.push(...result.body.refused)
    done += part.length - result.body.refused.length
    onDone(done)
  }
  return { done, refused, fault: null }
}
