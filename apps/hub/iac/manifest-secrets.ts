// What in a manifest looks like a secret, and how it is hidden in what is kept and shown of it.

export type TextRange = { readonly from: number; readonly to: number }

export const SECRET_KEY = /password|passphrase|secret|api[_-]?key|private[_-]?key|token|credential/i
export const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/
const HIDDEN = '(hidden)'
const ADDRESS_KEY = /url$/i
const USER_INFO = /^\s*[a-z][a-z\d+.-]*:[/\\]*[^/?#\\]*@/i

/** An address with a user or a password: every field that holds an address refuses it, so nothing is lost with it. */
export const isAddressWithUser = (key: string, value: string): boolean => ADDRESS_KEY.test(key) && USER_INFO.test(value)

/** An address with a user anywhere in a text, and a character that is written in another way. */
const USER_ANYWHERE = /[a-z]:[/\\]{2,}[^\s/?#\\]*@/i
const ESCAPED = /\\[uUx]/

/**
 * A text that could not be read, as it may be kept: nothing of one that may hold a secret. Without its structure nobody
 * can tell where the value of a key ends: it may stand on the lines below, or behind an alias.
 */
export const withoutSecrets = (text: string): string =>
  [SECRET_KEY, PRIVATE_KEY, USER_ANYWHERE, ESCAPED].some(sign => sign.test(text)) ? HIDDEN : text

/** The text with these parts of it replaced; one may stand in another. */
export function hideSecrets(text: string, hidden: readonly TextRange[]): string {
  let kept = ''
  let end = 0
  for (const { from, to } of [...hidden].sort((a, b) => a.from - b.from || b.to - a.to)) {
    if (from < end) continue
    kept += `${text.slice(end, from)}${HIDDEN}\n`
    end = to
  }
  return kept + text.slice(end)
}
