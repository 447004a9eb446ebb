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

async function waitFor(seconds: number): Promise<void> {
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
export async function send<T = unknown>(method: Method, path: string, body?: unknown): Promise<ApiResult<T>> {
  for (;;) {
    let response: Response
    try {
      response = await fetch(`/api/v1${path}`, {
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

/** The most ids that a bulk endpoint takes in a call. */
const BULK_MAX = 200
/** An act on many as the bulk endpoints answer it: how many were done, and what was refused. */
type Refusal = { readonly id: string; readonly errors: Readonly<Record<string, string>> }
export type BulkResult = {
  readonly done: number
  readonly refused: readonly Refusal[]
  readonly fault: ApiFault | null
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
