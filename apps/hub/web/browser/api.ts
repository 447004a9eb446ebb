// Changes go through the REST API, with the session's cookie and its token.
import { companyId, csrfToken, language, t } from './page.ts'

type ApiResult = { readonly ok: true; readonly body: unknown } | { readonly ok: false; readonly message: string }

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What the API says of a refusal, with the first fault of the data. */
function messageOf(body: unknown): string {
  if (!isObject(body)) return t('failed')
  const faults = isObject(body.errors) ? Object.values(body.errors).flat() : []
  return [body.message, faults[0]].filter(part => typeof part === 'string').join(' ') || t('failed')
}

/** POST below /api/v1. Never rejects. */
export async function post(path: string, body: unknown = {}): Promise<ApiResult> {
  try {
    const response = await fetch(`/api/v1${path}`, {
      method: 'POST',
      headers: {
        Accept: 'application/json',
        'Accept-Language': language,
        'Content-Type': 'application/json',
        'X-CSRF-Token': csrfToken,
        'X-Company-Id': companyId,
      },
      body: JSON.stringify(body),
    })
    const answer: unknown = await response.json().catch(() => null)
    return response.ok ? { ok: true, body: answer } : { ok: false, message: messageOf(answer) }
  } catch {
    return { ok: false, message: t('unavailable') }
  }
}

/** A member of an answer, by its path; null when it is no text. */
export function textOf(body: unknown, ...path: readonly string[]): string | null {
  let at = body
  for (const name of path) at = isObject(at) ? at[name] : null
  return typeof at === 'string' ? at : null
}
