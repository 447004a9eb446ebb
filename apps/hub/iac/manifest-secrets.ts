// What in a manifest looks like a secret, and how it is hidden in what is kept and shown of it.

export type TextRange = { readonly from: number; readonly to: number }

export const SECRET_KEY = /password|passphrase|secret|api_?key|private_?key|token|credential/i
export const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/
const HIDDEN = '(hidden)'
const ADDRESS_KEY = /url$/i
const USER_INFO = /^\s*[a-z][a-z\d+.-]*:[/\\]*[^/?#\\]*@/i

/** An address with a user or a password: every field that holds an address refuses it, so nothing is lost with it. */
export const isAddressWithUser = (key: string, value: string): boolean => ADDRESS_KEY.test(key) && USER_INFO.test(value)

/** The same in a text that could not be read. */
const withoutUsers = (text: string): string =>
  text.replace(/([a-z]:[/\\]{2,})([^\s/?#\\]*)/gi, (whole, scheme: string, authority: string) => {
    const at = authority.lastIndexOf('@')
    return at < 0 ? whole : `${scheme}${HIDDEN}${authority.slice(at)}`
  })

/**
 * Values of keys that look like those of secrets. Word by word, each read once: the text is as long as its sender
 * likes, and one expression for all of it would begin anew within every word.
 */
function withoutSecretValues(text: string): string {
  const word = /[\w-]+/g
  const value = /(["']?[ \t]*:[ \t]*)("[^"]*"|'[^']*'|[^,}\n]+)/y
  let kept = ''
  let end = 0
  for (let key = word.exec(text); key !== null; key = word.exec(text)) {
    if (!SECRET_KEY.test(key[0])) continue
    value.lastIndex = word.lastIndex
    const found = value.exec(text)
    if (found === null) continue
    kept += `${text.slice(end, word.lastIndex)}${found[1]}${HIDDEN}`
    end = value.lastIndex
    word.lastIndex = end
  }
  return kept + text.slice(end)
}

/** A text that could not be read, without what looks like the value of a secret. */
export const withoutSecrets = (text: string): string =>
  withoutSecretValues(
    withoutUsers(text).replace(
      /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/g,
      HIDDEN,
    ),
  )

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
