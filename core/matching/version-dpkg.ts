// Versions of Debian and Ubuntu, ordered as `dpkg --compare-versions` orders them (MAT-090 to MAT-092):
// [epoch:]upstream[-revision]. Nothing is cut out of the texts, so that a comparison allocates nothing.
import { compareDigits, isBlank, isDigit, isLetter } from './version-characters.ts'

const TILDE = 126
/** dpkg keeps an epoch in a C int and refuses what is greater. */
const EPOCH_MAX = 2_147_483_647

/** False for embedded blanks, an empty upstream part or revision, and an epoch that is no number. */
export function isValidDpkgVersion(version: string): boolean {
  const from = firstCharacter(version)
  const to = lastCharacter(version)
  if (from >= to) return false
  for (let at = from; at < to; at++) if (isBlank(version.charCodeAt(at))) return false
  const colon = version.indexOf(':')
  if (colon >= 0) {
    for (let at = from; at < colon; at++) if (!isDigit(version.charCodeAt(at))) return false
    if (colon === from || Number(version.slice(from, colon)) > EPOCH_MAX) return false
  }
  const upstream = colon < 0 ? from : colon + 1
  const hyphen = version.lastIndexOf('-')
  return hyphen < upstream ? upstream < to : upstream < hyphen && hyphen + 1 < to
}

/** Negative, 0 or positive, as `a` is less than, equal to or greater than `b`. */
export function compareDpkgVersions(a: string, b: string): number {
  if (a === b) return 0
  const aFrom = firstCharacter(a)
  const bFrom = firstCharacter(b)
  const aEnd = lastCharacter(a)
  const bEnd = lastCharacter(b)
  const aColon = a.indexOf(':')
  const bColon = b.indexOf(':')
  const epochs = compareDigits(a, aFrom, aColon < 0 ? aFrom : aColon, b, bFrom, bColon < 0 ? bFrom : bColon)
  if (epochs !== 0) return epochs
  const aUpstream = aColon < 0 ? aFrom : aColon + 1
  const bUpstream = bColon < 0 ? bFrom : bColon + 1
  const aHyphen = a.lastIndexOf('-')
  const bHyphen = b.lastIndexOf('-')
  const aUpstreamEnd = aHyphen < aUpstream ? aEnd : aHyphen
  const bUpstreamEnd = bHyphen < bUpstream ? bEnd : bHyphen
  const upstreams = comparePart(a, aUpstream, aUpstreamEnd, b, bUpstream, bUpstreamEnd)
  if (upstreams !== 0) return upstreams
  return comparePart(a, Math.min(aUpstreamEnd + 1, aEnd), aEnd, b, Math.min(bUpstreamEnd + 1, bEnd), bEnd)
}

/** (MAT-091) Non-digits by weight, then digits as numbers, until both have ended. */
function comparePart(a: string, aFrom: number, aEnd: number, b: string, bFrom: number, bEnd: number): number {
  let i = aFrom
  let j = bFrom
  while (i < aEnd || j < bEnd) {
    for (;;) {
      const x = i < aEnd ? weight(a.charCodeAt(i)) : 0
      const y = j < bEnd ? weight(b.charCodeAt(j)) : 0
      if (x !== y) return x < y ? -1 : 1
      // Equal weights of 0: each has ended or stands at a digit.
      if (x === 0) break
      i++
      j++
    }
    const aDigits = i
    while (i < aEnd && isDigit(a.charCodeAt(i))) i++
    const bDigits = j
    while (j < bEnd && isDigit(b.charCodeAt(j))) j++
    const numbers = compareDigits(a, aDigits, i, b, bDigits, j)
    if (numbers !== 0) return numbers
  }
  return 0
}

function weight(code: number): number {
  if (code === TILDE) return -1
  if (isDigit(code)) return 0
  return isLetter(code) ? code : code + 256
}

function firstCharacter(version: string): number {
  let from = 0
  while (from < version.length && isBlank(version.charCodeAt(from))) from++
  return from
}

function lastCharacter(version: string): number {
  let to = version.length
  while (to > 0 && isBlank(version.charCodeAt(to - 1))) to--
  return to
}
