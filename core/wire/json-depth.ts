// How deep a JSON text is nested, found before it is parsed. The parser itself can take a hundred thousand brackets,
// but recursive code that walks the result would overflow the stack.

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPENS = [0x5b, 0x7b] as const
const CLOSES = [0x5d, 0x7d] as const

/**
 * Whether objects and lists of a JSON text in UTF-8 are nested more than `depthMax` deep. The result means nothing for
 * a text that is not JSON.
 */
export function isNestedDeeper(bytes: Uint8Array, depthMax: number): boolean {
  if (bytes.length <= depthMax) return false
  let depth = 0
  let isInText = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (isInText) {
      if (byte === BACKSLASH) at++
      else if (byte === QUOTE) isInText = false
    } else if (byte === QUOTE) isInText = true
    else if (byte === OPENS[0] || byte === OPENS[1]) {
      depth++
      if (depth > depthMax) return true
    } else if (byte === CLOSES[0] || byte === CLOSES[1]) depth--
  }
  return false
}

/** Deeper than what any of our answers, files or cells has a use for. */
const FOREIGN_DEPTH_MAX = 100

/**
 * A JSON text in UTF-8 of somebody else. Throws SyntaxError for what is none, and for one that is nested more than 100
 * deep: of brackets alone the parser makes a hundred times their bytes, at half a second a megabyte.
 */
export function parseForeignJson(bytes: Uint8Array): unknown {
  if (isNestedDeeper(bytes, FOREIGN_DEPTH_MAX)) throw new SyntaxError('nested too deep')
  return JSON.parse(new TextDecoder().decode(bytes))
}
