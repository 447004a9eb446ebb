// Reads dpkg's list of packages, `status` and the files of `status.d` (MAT-004 to MAT-008). What dpkg itself refuses to
// read (a line without a field name, a last line without its end) is malformed: half of a list is no list.
import type { PackageList } from './package-list.ts'
import { TextLines } from './text-lines.ts'

/** States in which the files of a package are there, and those in which they are not or not whole (MAT-005). */
const PRESENT = new Set(['installed', 'unpacked', 'half-configured', 'triggers-awaited', 'triggers-pending'])
const ABSENT = new Set(['not-installed', 'config-files', 'half-installed'])

const FIELD = /^[!-9;-~]+[ \t]*:/
const SOURCE = /^(\S+)(?:\s+\(([^)]*)\))?/

type FieldName = 'package' | 'version' | 'status' | 'architecture' | 'source'
const FIELD_NAMES: ReadonlyMap<string, FieldName> = new Map(
  (['package', 'version', 'status', 'architecture', 'source'] as const).map(name => [name, name]),
)
const FIELD_LENGTHS = new Set([...FIELD_NAMES.keys()].map(name => name.length))

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'

export class DpkgStatusReader {
  readonly #list: PackageList
  readonly #isStatusNeeded: boolean
  readonly #lines: TextLines
  #fields: Partial<Record<FieldName, string>> = {}
  #isInParagraph = false

  /** `isStatusNeeded` is false for `status.d`, whose packages are there without saying so. */
  constructor(list: PackageList, isStatusNeeded: boolean) {
    this.#list = list
    this.#isStatusNeeded = isStatusNeeded
    this.#lines = new TextLines(line => this.#readLine(line))
  }

  get isMalformed(): boolean {
    return this.#lines.isMalformed
  }

  push(piece: string): void {
    this.#lines.push(piece)
  }

  /** Ends the file. Answers whether it was whole. */
  end(): boolean {
    // Images write the files of status.d without the end of their last line.
    if (!this.#isStatusNeeded && this.#lines.rest !== '') this.#lines.push('\n')
    if (this.isMalformed || this.#lines.rest !== '') return false
    this.#endParagraph()
    return true
  }

  #readLine(line: string): boolean {
    if (line === '') {
      this.#endParagraph()
      return true
    }
    if (isBlank(line[0])) return this.#isInParagraph || line.trim() === ''
    if (!FIELD.test(line)) return false
    const colon = line.indexOf(':')
    this.#isInParagraph = true
    // Most fields are told apart by the length of their name alone.
    if (!FIELD_LENGTHS.has(colon) && !isBlank(line[colon - 1])) return true
    const name = FIELD_NAMES.get(line.slice(0, colon).trimEnd().toLowerCase())
    if (name !== undefined) this.#fields[name] = line.slice(colon + 1).trim()
    return true
  }

  #endParagraph(): void {
    if (!this.#isInParagraph) return
    const fields = this.#fields
    this.#isInParagraph = false
    this.#fields = {}
    const state = this.#stateOf(fields.status)
    if (state === 'absent') return
    const { package: name, version } = fields
    if (state === 'unknown' || !name || !version) {
      // Whether its files are there cannot be told, or not which they are.
      this.#list.isIncomplete = true
      return
    }
    const [, source = name, sourceVersion = version] = SOURCE.exec(fields.source ?? '') ?? []
    this.#list.add({
      name,
      version,
      arch: fields.architecture ?? '',
      source,
      sourceVersion: sourceVersion.trim() || version,
      module: '',
      vendor: '',
    })
  }

  #stateOf(status: string | undefined): 'present' | 'absent' | 'unknown' {
    if (status === undefined) return this.#isStatusNeeded ? 'unknown' : 'present'
    const word = status.split(/\s+/)[2] ?? ''
    if (PRESENT.has(word)) return 'present'
    return ABSENT.has(word) ? 'absent' : 'unknown'
  }
}
