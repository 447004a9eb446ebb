// Whether a token opens the admin API (document 3 "Authentication"). Digests are compared, of all tokens and in
// constant time, so that neither length nor content of a token, nor which of them it was, shows in the time it takes.
import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string): Buffer => createHash('sha256').update(text, 'utf8').digest()

/** `presented` is empty where the caller has none. An empty token opens nothing, should one be configured. */
export function isKnownToken(
  tokens: readonly string[],
  presented: string,
  isEqual: (a: Buffer, b: Buffer) => boolean = timingSafeEqual,
): boolean {
  const given = digest(presented)
  let isKnown = false
  for (const token of tokens) {
    const isThis = isEqual(digest(token), given)
    isKnown = (isThis && token !== '') || isKnown
  }
  return isKnown
}
