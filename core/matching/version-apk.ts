// Versions of Alpine, ordered as `apk version -t` orders them (MAT-095 to MAT-097):
// number{.number}[letter]{_suffix[number]}[~hash][-rnumber]. Both texts are read part by part, side by side, by two
// readers that are made once: a comparison allocates nothing.
import { compareDigits, compareText, isDigit } from './version-characters.ts'

/** The kinds of parts in apk's order: of two versions that are equal so far, the one with the later kind is less. */
const FIRST_NUMBER = 0
const NUMBER = 1
const LETTER = 2
const SUFFIX = 3
const SUFFIX_NUMBER = 4
const HASH = 5
const REVISION = 6
const END = 7
const INVALID = 8

/** By order; what stands before `none` makes a version less than the one without it. */
const SUFFIXES = ['alpha', 'beta', 'pre', 'rc', 'none', 'cvs', 'svn', 'git', 'hg', 'p'] as const
const NO_SUFFIX = SUFFIXES.indexOf('none')

class PartReader {
  kind = INVALID
  suffix = NO_SUFFIX
  from = 0
  to = 0
  private text = ''

  open(text: string): void {
    this.text = text
    this.suffix = NO_SUFFIX
    this.number(0, FIRST_NUMBER)
  }

  next(): void {
    const { text, kind, to: at } = this
    if (at >= text.length) {
      this.kind = END
      return
    }
    const code = text.charCodeAt(at)
    if (code >= 97 && code <= 122 && kind <= NUMBER) {
      this.kind = LETTER
      this.from = at
      this.to = at + 1
    } else if (code === 46 && kind <= NUMBER) this.number(at + 1, NUMBER)
    // Digits behind a letter: apk 2 takes them as a number, and Alpine's data have them (sudo 1.9.5p2-r0).
    else if (isDigit(code) && kind === LETTER) this.number(at, NUMBER)
    else if (isDigit(code) && kind === SUFFIX) this.number(at, SUFFIX_NUMBER)
    else if (code === 95 && kind <= SUFFIX_NUMBER) this.suffixAt(at + 1)
    else if (code === 126 && kind < HASH) this.hashAt(at + 1)
    else if (code === 45 && kind < REVISION && text.charCodeAt(at + 1) === 114) this.number(at + 2, REVISION)
    else this.kind = INVALID
  }

  /** What the part weighs against one of the same kind. */
  compare(other: PartReader): number {
    const { text, from, to, kind } = this
    if (kind === SUFFIX) return this.suffix - other.suffix
    const isText =
      kind === LETTER ||
      kind === HASH ||
      (kind === NUMBER && (text.charCodeAt(from) === 48 || other.text.charCodeAt(other.from) === 48))
    return isText
      ? compareText(text, from, to, other.text, other.from, other.to)
      : compareDigits(text, from, to, other.text, other.from, other.to)
  }

  private number(from: number, kind: number): void {
    let to = from
    while (to < this.text.length && isDigit(this.text.charCodeAt(to))) to++
    this.from = from
    this.to = to
    this.kind = to > from ? kind : INVALID
  }

  private suffixAt(from: number): void {
    let to = from
    while (to < this.text.length && this.text.charCodeAt(to) >= 97 && this.text.charCodeAt(to) <= 122) to++
    this.kind = INVALID
    for (let order = 0; order < SUFFIXES.length; order++) {
      const suffix = SUFFIXES[order]!
      if (order === NO_SUFFIX || suffix.length !== to - from || !this.text.startsWith(suffix, from)) continue
      this.kind = SUFFIX
      this.suffix = order
      this.from = from
      this.to = to
      return
    }
  }

  private hashAt(from: number): void {
    let to = from
    while (to < this.text.length && isHexDigit(this.text.charCodeAt(to))) to++
    this.from = from
    this.to = to
    this.kind = to > from ? HASH : INVALID
  }
}

function isHexDigit(code: number): boolean {
  return isDigit(code) || (code >= 97 && code <= 102)
}

const left = new PartReader()
const right = new PartReader()

export function isValidApkVersion(version: string): boolean {
  left.open(version)
  while (left.kind < END) left.next()
  return left.kind === END
}

/** Negative, 0 or positive, of two valid versions. */
export function compareApkVersions(a: string, b: string): number {
  if (a === b) return 0
  left.open(a)
  right.open(b)
  while (left.kind === right.kind && left.kind < END) {
    const parts = left.compare(right)
    if (parts !== 0) return parts < 0 ? -1 : 1
    left.next()
    right.next()
  }
  if (left.kind === right.kind) return 0
  if (left.kind === SUFFIX && left.suffix < NO_SUFFIX) return -1
  if (right.kind === SUFFIX && right.suffix < NO_SUFFIX) return 1
  return left.kind > right.kind ? -1 : 1
}
