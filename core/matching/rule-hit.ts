// Whether a rule of a row hits an installed package (MAT-114 to MAT-118): whether it concerns the build, by
// architecture, binary, module and special build, and whether the version lies within its boundaries.
import type { Rule } from './advisory.ts'
import { flavourOfVersion } from './build-flavour.ts'
import type { PackageInstance } from './package-instance.ts'
import type { Matched } from './rows-of-instance.ts'
import { compareToBoundary, compareVersions } from './version.ts'

/** What of an instance decides whether a rule concerns it, whatever its version. */
export type Build = {
  readonly instance: PackageInstance
  /** Mark of a special build in the version itself, and the ones that the source's name has (MAT-118). */
  readonly flavour: string | undefined
  readonly sourceFlavours: string
}

export const buildOf = ({ instance, source }: Matched): Build => ({
  instance,
  flavour: flavourOfVersion(instance.version),
  sourceFlavours: source,
})

/** Why a rule does not concern a build; undefined when it does. */
export type Misfit = 'arch' | 'binary' | 'module' | 'module_unknown' | 'flavour'

export function misfitOf(rule: Rule, build: Build): Misfit | undefined {
  const { instance } = build
  if (rule.arches && !isArchNamed(rule.arches, instance.arch)) return 'arch'
  if (rule.binaries && !rule.binaries.includes(instance.name)) return 'binary'
  if (rule.flavour === undefined) {
    if (build.flavour !== undefined) return 'flavour'
  } else if (rule.flavour !== build.flavour && !build.sourceFlavours.includes(rule.flavour)) return 'flavour'
  if (instance.system !== 'rpm') return undefined
  if (rule.module !== undefined) return isOfModule(instance.module, rule.module) ? undefined : 'module'
  if (isModuleBuild(rule))
    return upstreamOf(rule.fixed!) === upstreamOf(instance.version) ? undefined : 'module_unknown'
  return instance.module === '' ? undefined : 'module'
}

const isArchNamed = (arches: readonly string[], arch: string): boolean =>
  arch === 'noarch' || arch === 'all' || arches.includes(arch)

/** `nodejs:18:9020…:rhel9` is of module `nodejs:18`. */
const isOfModule = (label: string, module: string): boolean =>
  label.startsWith(module) && (label.length === module.length || label[module.length] === ':')

/** A fix for a build of a module whose name and stream the source did not say (MAT-117). */
export const isModuleBuild = (rule: Rule): boolean =>
  rule.module === undefined && rule.fixed?.includes('.module') === true

/** The version between epoch and release. */
function upstreamOf(version: string): string {
  const hyphen = version.lastIndexOf('-')
  return version.slice(version.indexOf(':') + 1, hyphen < 0 ? version.length : hyphen)
}

/** One installed version against boundaries of rules: negative, 0 or positive, as `compareToBoundary`. */
type Comparer = (boundary: string) => number

/** Of rows with as many rules, comparisons are remembered. */
const MANY_RULES = 32

/** The thousands of rules of a kernel or browser have but some hundred boundaries: each of them is compared once. */
export function comparerOf(rules: readonly Rule[], system: PackageInstance['system'], version: string): Comparer {
  if (rules.length < MANY_RULES) return boundary => compareToBoundary(system, version, boundary)
  const known = new Map<string, number>()
  return boundary => {
    let order = known.get(boundary)
    if (order === undefined) {
      order = compareToBoundary(system, version, boundary)
      known.set(boundary, order)
    }
    return order
  }
}

/** Whether a version lies within a rule's boundaries (MAT-114). */
export function isHit(
  rule: Rule,
  system: PackageInstance['system'],
  version: string,
  compare: Comparer = boundary => compareToBoundary(system, version, boundary),
): boolean {
  const { introduced, fixed, last_affected: last } = rule
  if (introduced !== undefined && compare(introduced) < 0) return false
  if (rule.versions) return rule.versions.some(each => compareVersions(system, version, each) === 0)
  if (fixed !== undefined && compare(fixed) < 0) return true
  if (last !== undefined && compare(last) <= 0) return true
  return fixed === undefined && last === undefined
}

/**
 * The rules of one vulnerability that hit. None do when the version is at or above the fix of any channel, and no rule
 * of that channel hits (MAT-115): so the build of a paid channel is not held against the standard one's number.
 */
export function hitsOf(rules: readonly Rule[], version: string, build: Build): Rule[] {
  const { system } = build.instance
  const concerning = rules.filter(rule => misfitOf(rule, build) === undefined)
  const hits = concerning.filter(rule => isHit(rule, system, version))
  if (hits.length === 0) return hits
  const isCleared = concerning.some(
    ({ channel, fixed }) =>
      fixed !== undefined &&
      !hits.some(hit => hit.channel === channel) &&
      compareToBoundary(system, version, fixed) >= 0,
  )
  return isCleared ? [] : hits
}
