// Text of others, as it is safe to show whoever wrote it. What would move the cursor of a terminal, rename its window
// or turn the direction of what is read is shown as a mark there, and left out of what is kept.

const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g
const NOT_SHOWN = /[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** One line without control characters, for a terminal. */
export const printable = (text: string): string => text.replace(NOT_SHOWN, '\ufffd')

/** One line to keep: at most so many characters, well-formed, with a space for any control characters. */
export function lineOf(text: string, charsMax: number): string {
  const line = text
    .toWellFormed()
    .replace(TURNING, '')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
  return line.length <= charsMax ? line : Array.from(line).slice(0, charsMax).join('')
}
