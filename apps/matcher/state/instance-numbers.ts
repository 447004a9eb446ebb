// The numbers of package instances, found by what a report says of a package. A large fleet asks for them some hundred
// times a report, so they are found by name and version, which nearly always say the rest; no text is put together.
import type { PackageInstance } from '../../../core/matching/package-instance.ts'

type Columns = Omit<PackageInstance, 'system' | 'release'>

/** What is kept of one instance; `next` has the same name and version, and differs in the rest. */
type Known = Pick<Columns, 'arch' | 'source' | 'sourceVersion' | 'module' | 'vendor'> & {
  readonly number: number
  readonly next: Known | undefined
}

/** Texts that most packages have in common, as the architecture: they are kept once. */
const SHARED_TEXTS_MAX = 10_000

export class InstanceNumbers {
  readonly #releases = new Map<string, NumbersOfRelease>()
  readonly #max: number
  #count = 0

  /** When more than `max` are known, all are forgotten: those in use are soon known again. */
  constructor(max: number) {
    this.#max = max
  }

  /** Of one package system and release. To be asked for anew for each report. */
  of(release: string): NumbersOfRelease {
    if (this.#count > this.#max) this.clear()
    let numbers = this.#releases.get(release)
    if (numbers === undefined) {
      numbers = new NumbersOfRelease(change => {
        this.#count += change
      })
      this.#releases.set(release, numbers)
    }
    return numbers
  }

  clear(): void {
    this.#releases.clear()
    this.#count = 0
  }
}

class NumbersOfRelease {
  readonly #byName = new Map<string, Map<string, Known>>()
  readonly #texts = new Map<string, string>()
  readonly #counted: (change: number) => void

  constructor(counted: (change: number) => void) {
    this.#counted = counted
  }

  get(columns: Columns): number | undefined {
    let known = this.#byName.get(columns.name)?.get(columns.version)
    while (known !== undefined && !isOf(known, columns)) known = known.next
    return known?.number
  }

  /** To be called for what is not known only. */
  set(columns: Columns, number: number): void {
    const { name, version, arch, source, sourceVersion, module, vendor } = columns
    let versions = this.#byName.get(name)
    if (versions === undefined) {
      versions = new Map()
      this.#byName.set(name, versions)
    }
    versions.set(version, {
      arch: this.#shared(arch),
      source: source === name ? name : this.#shared(source),
      sourceVersion: sourceVersion === version ? version : sourceVersion,
      module: this.#shared(module),
      vendor: this.#shared(vendor),
      number,
      next: versions.get(version),
    })
    this.#counted(1)
  }

  delete(columns: Columns): void {
    const versions = this.#byName.get(columns.name)
    const others: Known[] = []
    for (let known = versions?.get(columns.version); known !== undefined; known = known.next)
      if (isOf(known, columns)) this.#counted(-1)
      else others.push(known)
    if (versions === undefined) return
    const first = others.reduceRight<Known | undefined>((next, known) => ({ ...known, next }), undefined)
    if (first !== undefined) versions.set(columns.version, first)
    else versions.delete(columns.version)
    if (versions.size === 0) this.#byName.delete(columns.name)
  }

  #shared(text: string): string {
    const known = this.#texts.get(text)
    if (known !== undefined) return known
    if (this.#texts.size < SHARED_TEXTS_MAX) this.#texts.set(text, text)
    return text
  }
}

const isOf = (known: Known, columns: Columns): boolean =>
  known.arch === columns.arch &&
  known.source === columns.source &&
  known.sourceVersion === columns.sourceVersion &&
  known.module === columns.module &&
  known.vendor === columns.vendor
