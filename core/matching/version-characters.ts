// What the versions of all package systems are made of. Digits and letters are ASCII only, whatever the locale.

export function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

export function isLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90)
}

/** Blanks as C's isspace knows them. */
export function isBlank(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13)
}

/**
 * Two runs of digits as numbers of any length: without leading zeros the longer is greater, then the text decides. An
 * empty run is 0.
 */
export function compareDigits(a: string, aFrom: number, aTo: number, b: string, bFrom: number, bTo: number): number {
  let i = aFrom
  let j = bFrom
  while (i < aTo && a.charCodeAt(i) === 48) i++
  while (j < bTo && b.charCodeAt(j) === 48) j++
  const longer = aTo - i - (bTo - j)
  if (longer !== 0) return longer < 0 ? -1 : 1
  for (; i < aTo; i++, j++) {
    const difference = a.charCodeAt(i) - b.charCodeAt(j)
    if (difference !== 0) return difference < 0 ? -1 : 1
  }
  return 0
}

/** Two stretches of text by their characters' codes; what is a beginning of the other is less. */
export function compareText(a: string, aFrom: number, aTo: number, b: string, bFrom: number, bTo: number): number {
  const length = Math.min(aTo - aFrom, bTo - bFrom)
  for (let at = 0; at < length; at++) {
    const difference = a.charCodeAt(aFrom + at) - b.charCodeAt(bFrom + at)
    if (difference !== 0) return difference < 0 ? -1 : 1
  }
  const longer = aTo - aFrom - (bTo - bFrom)
  return longer === 0 ? 0 : longer < 0 ? -1 : 1
}
