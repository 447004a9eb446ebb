// The words of a master file (RFC 1035 5.1): entries that may go over several lines in parentheses, strings in quotes,
// comments, and bytes written as \DDD.

export type Word = {
  /** As it stands, escapes included: a name's `\.` is no border of a label. */
  readonly raw: string
  readonly bytes: Uint8Array
}

export type Entry = {
  readonly line: number
  /** The line began with white space: the record belongs to the name before. */
  readonly isOfNameBefore: boolean
  readonly words: readonly Word[]
}

type FileFault = { readonly line: number; readonly fault: 'quote' | 'parenthesis' | 'escape' }

const encoder = new TextEncoder()

/** Reads one word beginning at `at`; null where an escape or a quote does not end. */
function readWord(text: string, start: number): { word: Word; end: number } | 'quote' | 'escape' {
  const isQuoted = text[start] === '"'
  const bytes: number[] = []
  let at = isQuoted ? start + 1 : start
  for (; at < text.length; at++) {
    const character = text[at]!
    if (isQuoted ? character === '"' : /[\s;()"]/.test(character)) break
    if (isQuoted && character === '\n') return 'quote'
    if (character !== '\\') {
      const point = text.codePointAt(at)!
      for (const byte of encoder.encode(String.fromCodePoint(point))) bytes.push(byte)
      if (point > 0xffff) at++
      continue
    }
    const decimal = /^\d{3}/.exec(text.slice(at + 1, at + 4))?.[0]
    if (decimal === undefined ? !/^[^\d\n]/.test(text.slice(at + 1, at + 2)) : Number(decimal) > 255) return 'escape'
    if (decimal === undefined) bytes.push(...encoder.encode(text[at + 1]))
    else bytes.push(Number(decimal))
    at += decimal === undefined ? 1 : 3
  }
  if (isQuoted && text[at] !== '"') return 'quote'
  const raw = isQuoted ? text.slice(start + 1, at) : text.slice(start, at)
  return { word: { raw, bytes: Uint8Array.from(bytes) }, end: isQuoted ? at + 1 : at }
}

/** The entries of a master file in their order, or the first line that cannot be read. */
export function readEntries(content: string): readonly Entry[] | FileFault {
  const text = content.replaceAll('\r\n', '\n')
  const entries: Entry[] = []
  let [at, line, depth] = [0, 1, 0]
  let startLine = 1
  let words: Word[] = []
  let isOfNameBefore = /^[ \t]/.test(text)
  const endEntry = (): void => {
    if (words.length > 0) entries.push({ line: startLine, isOfNameBefore, words })
    words = []
  }
  while (at < text.length) {
    const character = text[at]!
    if (character === '\n') {
      line++
      at++
      if (depth > 0) continue
      endEntry()
      isOfNameBefore = text[at] === ' ' || text[at] === '\t'
    } else if (/\s/.test(character)) at++
    else if (character === ';') while (at < text.length && text[at] !== '\n') at++
    else if (character === '(' || character === ')') {
      depth += character === '(' ? 1 : -1
      if (depth < 0 || depth > 1) return { line, fault: 'parenthesis' }
      at++
    } else {
      const read = readWord(text, at)
      if (typeof read === 'string') return { line, fault: read }
      if (words.length === 0) startLine = line
      words.push(read.word)
      at = read.end
    }
  }
  if (depth > 0) return { line: startLine, fault: 'parenthesis' }
  endEntry()
  return entries
}
