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

const abandoned = signal(0)
/** Changes that wait for a limit are not sent any more: whoever asked for them left. */
export const abandonWaits = (): void => {
  abandoned.value++
}

/** Waits for a limit, and says so. False: whoever asked left meanwhile. */
export async function waitFor(seconds: number): Promise<boolean> {
  const before = abandoned.value
  for (let left = seconds; left > 0 && abandoned.value === before; left--) {
    waitingSeconds.value = left
    await new Promise(resolve => setTimeout(resolve, 1_000))
  }
  waitingSeconds.value = 0
  return abandoned.value === before
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
      const isWanted = await waitFor(Number(response.headers.get('retry-after') ?? 10))
      if (isWanted || method === 'GET') continue
    }
    if (!response.ok) return { ok: false, fault: await faultOf(response) }
    const answered: T = response.status === 204 ? null : await response.json()
    if (method !== 'GET') changeCount.value++
    return { ok: true, body: answered }
  }
}
