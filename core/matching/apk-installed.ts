// Reads apk's list of packages (MAT-013): paragraphs of `X:value` lines. Of every package far more lines are of its
// files than of itself; these are passed over.
import type { PackageList } from './package-list.ts'
import { TextLines } from './text-lines.ts'

type FieldLetter = 'P' | 'V' | 'A' | 'o'
const isField = (letter: string): letter is FieldLetter =>
  letter === 'P' || letter === 'V' || letter === 'A' || letter === 'o'

export class ApkInstalledReader {
  readonly #list: PackageList
  readonly #lines = new TextLines(line => this.#readLine(line))
  #fields: Partial<Record<FieldLetter, string>> = {}
  #isInParagraph = false

  constructor(list: PackageList) {
    this.#list = list
  }

  get isMalformed(): boolean {
    return this.#lines.isMalformed
  }

  push(piece: string): void {
    this.#lines.push(piece)
  }

  /** Ends the file. Answers whether it was whole. */
  end(): boolean {
    if (this.isMalformed || this.#lines.rest !== '') return false
    this.#endParagraph()
    return true
  }

  #readLine(line: string): boolean {
    if (line === '') {
      this.#endParagraph()
      return true
    }
    const letter = line[0]!
    if (line[1] !== ':' || !/[A-Za-z]/.test(letter)) return false
    this.#isInParagraph = true
    if (isField(letter)) this.#fields[letter] = line.slice(2).trim()
    return true
  }

  #endParagraph(): void {
    if (!this.#isInParagraph) return
    const { P: name, V: version, A: arch = '', o: origin } = this.#fields
    this.#isInParagraph = false
    this.#fields = {}
    if (!name || !version) {
      this.#list.isIncomplete = true
      return
    }
    this.#list.add({ name, version, arch, source: origin || name, sourceVersion: version, module: '', vendor: '' })
  }
}
