// What the rows of the database say of one package instance (MAT-115, MAT-144 to MAT-147): a verdict a vulnerability,
// and of several that speak of it the one that counts. It depends on the instance and the database only, never on a
// server: so it is made once for the fleet (MAT-180). Which rows concern an instance: rows-of-instance.ts; whether a
// rule hits a version: rule-hit.ts.
import type { AdvisoryReader, FixChannel, FixStatus, Rule } from './advisory.ts'
import { fixesPassed, rankedRules, UNRANKED } from './fix-ranks.ts'
import type { MatchOptions } from './match-options.ts'
import type { PackageInstance } from './package-instance.ts'
import { isCounted, lookUpOf, ownVulnsOf, rowsOf } from './rows-of-instance.ts'
import { type Build, buildOf, comparerOf, hitsOf, isHit, isModuleBuild, misfitOf } from './rule-hit.ts'
import { compareVersions } from './version.ts'

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
