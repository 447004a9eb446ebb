// Who is signed in, the company, and what the hub wrote into the document for the script.
import { signal } from '@preact/signals'
import { type Texts, textsIn, type WebParams } from '../words/words.ts'
import { data } from './document-data.ts'

export const { language, user, company, companies, children, version, agentUrl } = data
export const firstView = data.view
export const workerUrl = data.worker

const permissions = new Set(data.permissions)
/** Whether the viewer has a permission key. Without the right to act a button is absent. */
export const may = (permission: string): boolean => permissions.has(permission)

/** The token is hidden in twice as many bytes: the first half combined with the second. */
function unmasked(text: string): string {
  const bytes = (text.match(/../g) ?? []).map(pair => Number.parseInt(pair, 16))
  const half = bytes.length / 2
  return String.fromCharCode(...bytes.slice(half).map((byte, index) => byte ^ (bytes[index] ?? 0)))
}

let csrf = unmasked(data.csrf)
export const csrfToken = (): string => csrf

export const sessionEndsAtMs = signal(data.sessionEndsAtMs)
/** True once the hub has said that the session is over; until somebody has signed in again. */
export const isSignedOut = signal(false)

/** Takes the session that a sign-in within the page has begun. False: it is another user's. */
export async function renewSession(): Promise<boolean> {
  const response = await fetch('/web/session', { cache: 'no-store' })
  if (!response.ok) return false
  const renewed: { userId: string; csrf: string; sessionEndsAtMs: number } = await response.json()
  if (renewed.userId !== user.id) return false
  csrf = unmasked(renewed.csrf)
  sessionEndsAtMs.value = renewed.sessionEndsAtMs
  isSignedOut.value = false
  return true
}

/** The texts of an area in the page's language: `const t = textsOf(serversWords)`, then `t('title')`. */
export const textsOf = <T extends Texts>(texts: T): ((key: keyof T, params?: WebParams) => string) =>
  textsIn(language, texts)
