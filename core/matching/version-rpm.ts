// Versions of Red Hat's and SUSE's families, ordered as `rpm.vercmp` orders them (MAT-093, MAT-094):
// [epoch:]version[-release]. Nothing is cut out of the texts, so that a comparison allocates nothing.
import { compareDigits, compareText, isBlank, isDigit, isLetter } from './version-characters.ts'

const TILDE = 126
const CARET = 94

/** False for blanks and control characters, an empty version or release, and an epoch that is no number. */
export function isValidRpmVersion(version: string): boolean {
  for (let at = 0; at < version.length; at++) {
    const code = version.charCodeAt(at)
    if (code < 32 || isBlank(code)) return false
  }
  const colon = epochEnd(version)
  if (version.indexOf(':', colon + 1) >= 0) return false
  const hyphen = version.lastIndexOf('-')
  return hyphen < 0 ? colon + 1 < version.length : colon + 1 < hyphen && hyphen + 1 < version.length
}

/** Negative, 0 or positive. A version without a release is less than the same one with a release. */
export function compareRpmVersions(a: string, b: string): number {
  return compare(a, b, false)
}

/**
 * An installed version against a boundary of an advisory: a release that one of them lacks is not compared, so that
 * 1.2-3 is neither below nor above the boundary 1.2. No order: 1.2-3 and 1.2-4 both equal 1.2.
 */
export function compareRpmToBoundary(version: string, boundary: string): number {
  return compare(version, boundary, true)
}

function compare(a: string, b: string, passMissingRelease: boolean): number {
  if (a === b) return 0
  const aColon = epochEnd(a)
  const bColon = epochEnd(b)
  const epochs = compareDigits(a, 0, Math.max(aColon, 0), b, 0, Math.max(bColon, 0))
  if (epochs !== 0) return epochs
  const aHyphen = hyphenAfter(a, aColon)
  const bHyphen = hyphenAfter(b, bColon)
  const versions = compareSegments(a, aColon + 1, aHyphen, b, bColon + 1, bHyphen)
  if (versions !== 0) return versions
  const aHas = aHyphen < a.length
  const bHas = bHyphen < b.length
  if (aHas && bHas) return compareSegments(a, aHyphen + 1, a.length, b, bHyphen + 1, b.length)
  if (aHas === bHas || passMissingRelease) return 0
  return aHas ? 1 : -1
}

/** The index of the colon behind leading digits, or -1 when there is no epoch. */
function epochEnd(version: string): number {
  let at = 0
  while (at < version.length && isDigit(version.charCodeAt(at))) at++
  return at > 0 && version.charCodeAt(at) === 58 ? at : -1
}

/** The index of the hyphen before the release, or the length when there is none. */
function hyphenAfter(version: string, colon: number): number {
  const hyphen = version.lastIndexOf('-')
  return hyphen > colon ? hyphen : version.length
}

/** (MAT-094) rpmvercmp. */
function compareSegments(a: string, aFrom: number, aEnd: number, b: string, bFrom: number, bEnd: number): number {
  let i = aFrom
  let j = bFrom
  while (i < aEnd || j < bEnd) {
    while (i < aEnd && isSeparator(a.charCodeAt(i))) i++
    while (j < bEnd && isSeparator(b.charCodeAt(j))) j++
    const x = i < aEnd ? a.charCodeAt(i) : -1
    const y = j < bEnd ? b.charCodeAt(j) : -1
    if (x === TILDE || y === TILDE) {
      if (x !== y) return x === TILDE ? -1 : 1
      i++
      j++
      continue
    }
    if (x === CARET || y === CARET) {
      if (x < 0) return -1
      if (y < 0) return 1
      if (x !== y) return x === CARET ? -1 : 1
      i++
      j++
      continue
    }
    if (x < 0 || y < 0) break
    const areDigits = isDigit(x)
    const aSegment = i
    const bSegment = j
    while (i < aEnd && isOfKind(a.charCodeAt(i), areDigits)) i++
    while (j < bEnd && isOfKind(b.charCodeAt(j), areDigits)) j++
    if (bSegment === j) return areDigits ? 1 : -1
    const segments = areDigits
      ? compareDigits(a, aSegment, i, b, bSegment, j)
      : compareText(a, aSegment, i, b, bSegment, j)
    if (segments !== 0) return segments
  }
  return i < aEnd ? 1 : j < bEnd ? -1 : 0
}

function isSeparator(code: number): boolean {
  return !isDigit(code) && !isLetter(code) && code !== TILDE && code !== CARET
}

function isOfKind(code: number, areDigits: boolean): boolean {
  return areDigits ? isDigit(code) : isLetter(code)
}
