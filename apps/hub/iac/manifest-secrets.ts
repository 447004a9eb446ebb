// What in a manifest looks like a secret, and how it is hidden in what is kept and shown of it.

export type SecretPlace = {
  readonly path: readonly string[]
  readonly line: number | null
  readonly from: number
  readonly to: number
}

export const SECRET_KEY = /password|passphrase|secret|api_?key|private_?key|token|credential/i
export const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/
const HIDDEN = '(hidden)'

/** A text that could not be read, without what looks like the value of a secret. */
export const withoutSecrets = (text: string): string =>
  text
    .replace(/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/g, HIDDEN)
    .replace(
      /([\w-]*(?:password|passphrase|secret|api_?key|private_?key|token|credential)\w*["']?[ \t]*:[ \t]*)("[^"]*"|'[^']*'|[^,}\n]+)/gi,
      `$1${HIDDEN}`,
    )

/** The text with the values of its secrets replaced. */
export function hideSecrets(text: string, secrets: readonly SecretPlace[]): string {
  const ordered = [...secrets].sort((a, b) => b.from - a.from)
  return ordered.reduce((rest, { from, to }) => `${rest.slice(0, from)}${HIDDEN}\n${rest.slice(to)}`, text)
}
