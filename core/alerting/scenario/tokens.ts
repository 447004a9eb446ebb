// The words of a scenario's lines: tokens, durations, numbers, lists.

/** Why a line cannot be read; caught by the parser, which knows the line. */
export class LineFault extends Error {}

/** Splits at blanks that are not inside quotes, braces or brackets. */
export function tokens(text: string): string[] {
  const found: string[] = []
  let token = ''
  let depth = 0
  let isQuoted = false
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!
    if (isQuoted && char === '\\') {
      token += char + (text[++at] ?? '')
      continue
    }
    if (char === '"') isQuoted = !isQuoted
    if (!isQuoted && (char === '{' || char === '[')) depth++
    if (!isQuoted && (char === '}' || char === ']')) depth--
    if (!isQuoted && depth === 0 && /\s/.test(char)) {
      if (token) found.push(token)
      token = ''
    } else token += char
  }
  if (isQuoted || depth !== 0) throw new LineFault('a quote, brace or bracket is not closed')
  if (token) found.push(token)
  return found
}

/** Text up to a `#` that is not inside quotes. */
export function withoutComment(line: string): string {
  let isQuoted = false
  for (let at = 0; at < line.length; at++) {
    if (line[at] === '"') isQuoted = !isQuoted
    if (line[at] === '#' && !isQuoted) return line.slice(0, at)
  }
  return line
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `90s`, `5m`, `1h30m`, `1500ms`, `-2m`, `0`; ms. */
export function duration(text: string): number {
  const matched = /^(-?)((?:\d+(?:ms|s|m|h|d))+|0)$/.exec(text)
  if (!matched) throw new LineFault(`${text} is not a time; write 90s, 5m, 1h30m`)
  let ms = 0
  for (const part of matched[2]!.matchAll(/(\d+)(ms|s|m|h|d)/g)) ms += Number(part[1]) * UNIT_MS[part[2]!]!
  return matched[1] === '-' ? -ms : ms
}

/** The opposite of `duration`, in the longest form that reads well: `1m30s`. */
export function durationText(ms: number): string {
  if (ms === 0) return '0s'
  let rest = Math.abs(ms)
  let text = ms < 0 ? '-' : ''
  for (const unit of ['h', 'm', 's', 'ms']) {
    const count = Math.floor(rest / UNIT_MS[unit]!)
    rest -= count * UNIT_MS[unit]!
    if (count > 0) text += `${count}${unit}`
  }
  return text
}

export function number(text: string): number {
  const value = Number(text)
  if (text === '' || Number.isNaN(value)) throw new LineFault(`${text} is not a number`)
  return value
}

/** `name=value` tokens as a map; the value may be quoted. */
export function options(parts: readonly string[], known: readonly string[]): Map<string, string> {
  const found = new Map<string, string>()
  for (const part of parts) {
    const equals = part.indexOf('=')
    const name = part.slice(0, equals)
    if (
      equals < 1 ||
      !known.some(candidate => candidate === name || (candidate.endsWith('.') && name.startsWith(candidate)))
    )
      throw new LineFault(`${part} is not understood; known here: ${known.map(k => `${k}=`).join(' ')}`)
    found.set(name, unquoted(part.slice(equals + 1)))
  }
  return found
}

export const unquoted = (text: string): string =>
  text.length >= 2 && text.startsWith('"') && text.endsWith('"')
    ? text.slice(1, -1).replaceAll('\\"', '"').replaceAll('\\\\', '\\')
    : text

export const list = (text: string): string[] => (text === '' ? [] : text.split(','))
