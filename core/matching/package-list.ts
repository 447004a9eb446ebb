// The packages of a report: what each package system's reader hands over, in the columns and the order of the report
// (MAT-021, MAT-022, MAT-024).
import { MAX_PACKAGES, type PackageColumns } from './report-schema.ts'

/** One installed package, as its package system spells it; `module` and `vendor` are empty where there is none. */
export type InstalledPackage = {
  readonly name: string
  readonly version: string
  readonly arch: string
  readonly source: string
  readonly sourceVersion: string
  readonly module: string
  readonly vendor: string
}

/** What a report takes of a name, a version or a label, and of an architecture. */
const WORD_MAX = 256
const ARCH_MAX = 32

/** No package system has blanks or control characters in a name or an architecture. */
const WORD = /^[^\p{Cc}\s]+$/u
const isWord = (text: string): boolean => text.length <= WORD_MAX && WORD.test(text)
/** What is no version of its system, as one with blanks, is listed all the same, and told (MAT-098). */
const isLine = (text: string): boolean => text !== '' && text.length <= WORD_MAX && !/\p{Cc}/u.test(text)

/** Order of UTF-8 bytes, which is that of UTF-16 units but for characters beyond U+FFFF. */
function compareBytes(a: string, b: string): number {
  if (a === b) return 0
  const end = Math.min(a.length, b.length)
  let at = 0
  while (at < end && a.charCodeAt(at) === b.charCodeAt(at)) at++
  return at === end ? a.length - b.length : byteRank(a.charCodeAt(at)) - byteRank(b.charCodeAt(at))
}

function byteRank(unit: number): number {
  if (unit < 0xd800) return unit
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000
}

const compareColumns = (a: InstalledPackage, b: InstalledPackage): number =>
  compareBytes(a.name, b.name) || compareBytes(a.arch, b.arch) || compareBytes(a.version, b.version)

/** Packages as they are read, up to the bound of a report. */
export class PackageList {
  readonly packages: InstalledPackage[] = []
  /** A package could not be taken as it was: `package_incomplete`. */
  isIncomplete = false
  /** There are more than a report may list: `too_many_packages`. */
  isTooLong = false

  /** Takes a package, or notes why not. */
  add(candidate: InstalledPackage): void {
    const { name, version, arch } = candidate
    if (!isWord(name) || !isLine(version) || arch.length > ARCH_MAX || (arch !== '' && !WORD.test(arch))) {
      this.isIncomplete = true
      return
    }
    if (this.packages.length >= MAX_PACKAGES) {
      this.isTooLong = true
      return
    }
    this.packages.push(withinBounds(candidate))
  }
}

/** A source that cannot be told leaves the package itself; what only describes it is cut. */
function withinBounds(candidate: InstalledPackage): InstalledPackage {
  const { name, version, source, sourceVersion, module, vendor } = candidate
  const isSource = isWord(source) && isLine(sourceVersion)
  if (isSource && module.length <= WORD_MAX && vendor.length <= WORD_MAX) return candidate
  return {
    ...candidate,
    source: isSource ? source : name,
    sourceVersion: isSource ? sourceVersion : version,
    module: module.slice(0, WORD_MAX),
    vendor: vendor.slice(0, WORD_MAX),
  }
}

/** Packages that are sorted, merged or copied in one step: some milliseconds. */
const STEP_PACKAGES = 1_000

/**
 * The columns of a report, sorted by (name, arch, version); what stands in two lists counts once. It is made in steps,
 * between which whoever runs them may do something else.
 */
export function* packageColumns(packages: readonly InstalledPackage[]): Generator<void, PackageColumns> {
  const columns: PackageColumns = {
    name: [],
    version: [],
    arch: [],
    source: [],
    source_version: [],
    module: [],
    vendor: [],
  }
  let last: InstalledPackage | null = null
  for (const [index, each] of (yield* sortedPackages(packages)).entries()) {
    if (index % STEP_PACKAGES === 0) yield
    if (last !== null && compareColumns(last, each) === 0) continue
    last = each
    columns.name.push(each.name)
    columns.version.push(each.version)
    columns.arch.push(each.arch)
    columns.source.push(each.source)
    columns.source_version.push(each.sourceVersion)
    columns.module.push(each.module)
    columns.vendor.push(each.vendor)
  }
  return columns
}

/** Sorts runs, then merges them two by two. */
function* sortedPackages(packages: readonly InstalledPackage[]): Generator<void, readonly InstalledPackage[]> {
  let runs: (readonly InstalledPackage[])[] = []
  for (let from = 0; from < packages.length; from += STEP_PACKAGES) {
    runs.push(packages.slice(from, from + STEP_PACKAGES).sort(compareColumns))
    yield
  }
  while (runs.length > 1) {
    const merged: (readonly InstalledPackage[])[] = []
    for (let at = 0; at < runs.length; at += 2) merged.push(yield* mergedRuns(runs[at]!, runs[at + 1] ?? []))
    runs = merged
  }
  return runs[0] ?? []
}

function* mergedRuns(
  one: readonly InstalledPackage[],
  two: readonly InstalledPackage[],
): Generator<void, readonly InstalledPackage[]> {
  const merged: InstalledPackage[] = []
  for (let a = 0, b = 0; a < one.length || b < two.length; ) {
    const isFirst = b >= two.length || (a < one.length && compareColumns(one[a]!, two[b]!) <= 0)
    merged.push(isFirst ? one[a++]! : two[b++]!)
    if (merged.length % STEP_PACKAGES === 0) yield
  }
  return merged
}
