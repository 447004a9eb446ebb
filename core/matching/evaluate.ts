// What the rows of the database say of one package instance (MAT-113 to MAT-119). It depends on the instance and the
// database only, never on a server: so it is made once for the fleet (MAT-180).
import type { AdvisoryReader, Affected, FixChannel, FixStatus, Rule } from './advisory.ts'
import { flavourOfVersion } from './build-flavour.ts'
import { baseRelease } from './host-release.ts'
import { isKernelImage, isKernelSource, sourceOf } from './kernel-names.ts'
import type { MatchOptions } from './match-options.ts'
import type { PackageInstance } from './package-instance.ts'
import { fixesPassed, rankedRules, UNRANKED } from './ranked-rules.ts'
import { isThirdParty } from './third-party.ts'
import { compareToBoundary, compareVersions, isValidVersion } from './version.ts'

/** One vulnerability that hits an instance, over all rules that hit. */
export type Verdict = {
  readonly vuln: string
  readonly status: FixStatus
  /** The lowest version that clears every hitting rule of the deciding channel; empty without a fix (MAT-144). */
  readonly fixed: string
  readonly channel: FixChannel
  readonly severity: string
  readonly minor: boolean
  /** Sorted, each once. */
  readonly advisories: readonly string[]
  /** The rule names a module build without its module (MAT-117). */
  readonly isModuleUnknown: boolean
}

/** Why an instance is not looked up at all. */
export type Unmatched = 'third_party' | 'no_code' | 'kernel_part' | 'version_invalid'

export type Matched = {
  readonly instance: PackageInstance
  readonly source: string
  readonly sourceVersion: string
  readonly isKernel: boolean
}

/** How an instance is looked up, or why it is not. */
export function lookUpOf(instance: PackageInstance): Matched | Unmatched {
  if (isThirdParty(instance)) return 'third_party'
  const matched = sourceOf(instance)
  if (!matched) return 'no_code'
  const isKernel = isKernelSource(instance.system, matched.source)
  if (isKernel && !isKernelImage(instance)) return 'kernel_part'
  const { system, version } = instance
  const isValid =
    isValidVersion(system, version) && (matched.version === version || isValidVersion(system, matched.version))
  if (!isValid) return 'version_invalid'
  return { instance, source: matched.source, sourceVersion: matched.version, isKernel }
}

/** The source package, or the kernel's canonical source, under which findings of an instance stand (MAT-141). */
export function packageKeyOf(instance: PackageInstance): string {
  return sourceOf(instance)?.source ?? instance.source
}

/** A row of the database that can concern an instance. */
type RowKey = Pick<Affected, 'release' | 'package' | 'by'>

/** Which rules of a row count: all, those of no vulnerability that the rows before name, of these what has no fix. */
type RowShare = 'own' | 'base' | 'unfixed'

/** A row that concerns an instance, with the version of it that the row's boundaries are compared with. */
export type Row = {
  readonly affected: Affected
  readonly version: string
  readonly share: RowShare
}

/** The releases whose rows can concern packages of a release, in the order in which they count. */
function releasesRead(release: string): { readonly release: string; readonly share: RowShare }[] {
  const own = { release, share: 'own' } as const
  const base = baseRelease(release)
  if (base) return [own, { release: base, share: 'base' }]
  const rebuild = /^(?:almalinux|rocky):(.+)$/.exec(release)
  return rebuild ? [own, { release: `rhel:${rebuild[1]}`, share: 'unfixed' }] : [own]
}

/** The rows by which a release's instances are found again when they change, whatever the options say (MAT-182). */
export function rowKeysOf({ instance, source }: Matched): RowKey[] {
  return releasesRead(instance.release).flatMap(({ release }) => keysWithin(release, source, instance))
}

/** By source, and by binary where the distribution's source names binary packages: those of rpm only. */
function keysWithin(release: string, source: string, { system, name }: PackageInstance): RowKey[] {
  const bySource: RowKey = { release, package: source, by: 'source' }
  return system === 'rpm' ? [bySource, { release, package: name, by: 'binary' }] : [bySource]
}

/** The rows of an instance; Red Hat's for its rebuilds when the options say so (MAT-131). */
export function rowsOf(
  matched: Matched,
  reader: Pick<AdvisoryReader, 'affected'>,
  options: Pick<MatchOptions, 'rebuildsUnfixed'>,
): Row[] {
  const { instance, source, sourceVersion } = matched
  const rows: Row[] = []
  for (const { release, share } of releasesRead(instance.release)) {
    if (share === 'unfixed' && !options.rebuildsUnfixed) continue
    for (const key of keysWithin(release, source, instance)) {
      const affected = reader.affected(key.release, key.package, key.by)
      if (affected) rows.push({ affected, version: key.by === 'source' ? sourceVersion : instance.version, share })
    }
  }
  return rows
}

/** Whether a rule of a row counts beside the rows of the release itself. */
export function isCounted(rule: Rule, share: RowShare, ownVulns: ReadonlySet<string>): boolean {
  switch (share) {
    case 'own':
      return true
    case 'base':
      return !ownVulns.has(rule.vuln)
    case 'unfixed':
      return !ownVulns.has(rule.vuln) && (rule.status === 'no_fix' || rule.status === 'wont_fix')
  }
}

/** The vulnerabilities that the rows of the release itself name. */
export function ownVulnsOf(rows: readonly Row[]): ReadonlySet<string> {
  const own = rows.filter(({ share }) => share === 'own')
  return new Set(own.flatMap(({ affected }) => affected.rules.map(rule => rule.vuln)))
}

/** The vulnerabilities that hit an instance, in the order of the database. Empty for what is not matched at all. */
export function evaluateInstance(
  instance: PackageInstance,
  reader: Pick<AdvisoryReader, 'affected'>,
  options: Pick<MatchOptions, 'rebuildsUnfixed'>,
): readonly Verdict[] {
  const matched = lookUpOf(instance)
  if (typeof matched === 'string') return []
  const rows = rowsOf(matched, reader, options)
  if (rows.length === 0) return []
  const build = buildOf(matched)
  const areAllOwn = rows.every(({ share }) => share === 'own')
  const ownVulns = areAllOwn ? undefined : ownVulnsOf(rows)
  const verdicts = rows.map(({ affected, version, share }) => {
    const rules = ownVulns ? affected.rules.filter(rule => isCounted(rule, share, ownVulns)) : affected.rules
    return verdictsOfRow(rules, version, build)
  })
  return verdicts.length === 1 ? verdicts[0]! : mergeLists(instance.system, verdicts)
}

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
const isModuleBuild = (rule: Rule): boolean => rule.module === undefined && rule.fixed?.includes('.module') === true

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
function comparerOf(rules: readonly Rule[], system: PackageInstance['system'], version: string): Comparer {
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

/** Rules of one vulnerability stand beside each other (MAT section 4: sorted). */
function verdictsOfRow(rules: readonly Rule[], version: string, build: Build): Verdict[] {
  const { system } = build.instance
  const ranked = rankedRules(rules, system)
  const passed = ranked ? fixesPassed(ranked, system, version) : 0
  const compare = comparerOf(rules, system, version)
  const verdicts: Verdict[] = []
  for (let from = 0; from < rules.length; ) {
    const rank = ranked ? ranked.ranks[from]! : UNRANKED
    // Most vulnerabilities have one rule and were fixed long ago: a comparison of two numbers is all that they cost.
    if (rank !== UNRANKED && rank < passed) {
      from++
      continue
    }
    const first = rules[from]!
    let to = from + 1
    while (rank === UNRANKED && to < rules.length && rules[to]!.vuln === first.vuln) to++
    if (to === from + 1) {
      const isWithin = rank !== UNRANKED || isHit(first, system, version, compare)
      if (isWithin && misfitOf(first, build) === undefined) verdicts.push(verdictOf([first], system))
    } else {
      const hits = hitsOf(rules.slice(from, to), version, build)
      if (hits.length > 0) verdicts.push(verdictOf(hits, system))
    }
    from = to
  }
  return verdicts
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

/** The rules that hit as one verdict; what is undetermined says nothing beside what is determined. */
function verdictOf(hits: readonly Rule[], system: PackageInstance['system']): Verdict {
  const [first] = hits
  if (hits.length === 1) return verdictOfRule(first!)
  return hits.map(verdictOfRule).reduce((a, b) => mergeVerdicts(system, a, b))
}

/** A rule says the same of all that it hits: of a source with thousands of packages once, not for each of them. */
const verdictOfKnownRule = new WeakMap<Rule, Verdict>()

function verdictOfRule(rule: Rule): Verdict {
  const known = verdictOfKnownRule.get(rule)
  if (known !== undefined) return known
  const verdict: Verdict = {
    vuln: rule.vuln,
    status: rule.fixed === undefined ? (rule.status === 'fixed' ? 'no_fix' : rule.status) : 'fixed',
    fixed: rule.fixed ?? '',
    channel: rule.channel,
    severity: rule.severity,
    minor: rule.minor,
    advisories: rule.advisories,
    isModuleUnknown: isModuleBuild(rule),
  }
  verdictOfKnownRule.set(rule, verdict)
  return verdict
}

const STATUS_RANK: Readonly<Record<FixStatus, number>> = { undetermined: 0, no_fix: 1, wont_fix: 2, fixed: 3 }

/** Severity words of all distributions in one order, each distribution's own within it (MAT-146). */
const SEVERITY_RANK: Readonly<Record<string, number>> = {
  '': 0,
  negligible: 2,
  unimportant: 2,
  none: 2,
  minor: 2,
  low: 3,
  medium: 4,
  moderate: 4,
  high: 5,
  important: 5,
  critical: 6,
}

const severityRank = (severity: string): number => SEVERITY_RANK[severity] ?? 1

/** Two verdicts of one vulnerability, of several rules or of several binaries of a source (MAT-144 to MAT-147). */
export function mergeVerdicts(system: PackageInstance['system'], a: Verdict, b: Verdict): Verdict {
  if (a === b) return a
  if (a.status !== b.status && (a.status === 'undetermined' || b.status === 'undetermined'))
    return a.status === 'undetermined' ? b : a
  const winner = decides(system, a, b) ? a : b
  return {
    vuln: a.vuln,
    status: winner.status,
    fixed: winner.fixed,
    channel: winner.channel,
    severity: severityRank(a.severity) >= severityRank(b.severity) ? a.severity : b.severity,
    minor: a.minor && b.minor,
    advisories: union(a.advisories, b.advisories),
    isModuleUnknown: a.isModuleUnknown || b.isModuleUnknown,
  }
}

/** A known fix before none, the standard channel before paid ones, the higher fix before the lower. */
function decides(system: PackageInstance['system'], a: Verdict, b: Verdict): boolean {
  if (a.status !== b.status) return STATUS_RANK[a.status] > STATUS_RANK[b.status]
  if (a.channel !== b.channel && (a.channel === 'standard' || b.channel === 'standard')) return a.channel === 'standard'
  return a.fixed === b.fixed || b.fixed === '' || compareVersions(system, a.fixed, b.fixed) >= 0
}

function union(a: readonly string[], b: readonly string[]): readonly string[] {
  if (b.length === 0) return a
  return a.length === 0 ? b : [...new Set([...a, ...b])].sort()
}

function mergeLists(system: PackageInstance['system'], lists: readonly (readonly Verdict[])[]): Verdict[] {
  const merged = new Map<string, Verdict>()
  for (const list of lists)
    for (const verdict of list) {
      const before = merged.get(verdict.vuln)
      merged.set(verdict.vuln, before ? mergeVerdicts(system, before, verdict) : verdict)
    }
  return [...merged.values()]
}
