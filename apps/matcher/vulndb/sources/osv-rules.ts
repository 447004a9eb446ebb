// The rules of one OSV record (MAT-076 to 079): its ranges as boundaries, per release, package and build.
import type { Rule } from '../../../../core/matching/advisory.ts'
import { flavourOfVersion } from '../../../../core/matching/build-flavour.ts'
import { compareVersions, isValidVersion } from '../../../../core/matching/version.ts'
import { compareText, sortedUnique } from '../rules-text.ts'
import { ecosystemOf, type OsvDistro, osvNamesBy } from './ecosystems.ts'
import { isObject, isPackageName, type JsonObject, objectsOf, type RuleKey, textOf, textsOf } from './source.ts'

/** What of a title is looked at: no text of any length may cost more. */
const TITLE_CHARS_MAX = 1000

/** What a rule says of versions. */
type Bounds = Pick<Rule, 'introduced' | 'fixed' | 'last_affected' | 'versions'>

/** What a rule says beside its versions, the same for all CVEs of a record. */
type OsvRule = { readonly key: RuleKey; readonly rule: Omit<Rule, 'vuln' | 'advisories'> }

type Severity = { readonly severity: string; readonly minor: boolean }

/** Each `introduced` with the `fixed` or `last_affected` that follows it; `"0"` is the beginning (MAT-076). */
function boundsOfEvents(events: readonly JsonObject[]): Bounds[] {
  const bounds: Bounds[] = []
  let open: Bounds | null = null
  for (const event of events) {
    const { introduced, fixed, last_affected } = event
    if (typeof introduced === 'string') {
      if (open !== null) bounds.push(open)
      open = introduced === '0' ? {} : { introduced }
    }
    if (open === null) continue
    if (typeof fixed === 'string') bounds.push({ ...open, fixed })
    else if (typeof last_affected === 'string') bounds.push({ ...open, last_affected })
    else continue
    open = null
  }
  if (open !== null) bounds.push(open)
  return bounds
}

function boundsOf(affected: JsonObject): Bounds[] {
  const ranges = objectsOf(affected.ranges)
  if (ranges.length > 0)
    return ranges.filter(range => range.type === 'ECOSYSTEM').flatMap(range => boundsOfEvents(objectsOf(range.events)))
  const versions = textsOf(affected.versions)
  return versions.length === 0 ? [] : [{ versions }]
}

/** Modules that a title names, as `nodejs:18` in `Moderate: nodejs:18 security update` (MAT-117). */
const modulesOfTitle = (title: string): string[] =>
  sortedUnique(
    [...title.matchAll(/(?<![\w:.-])([A-Za-z][\w.+-]*:[A-Za-z0-9][\w.+-]*)(?=[\s,])/g)].map(found => found[1]!),
  )

/** Names of the binaries that SUSE limits a package to: `[{"openssl-1_1": "1.1.1l-150500.17.6.1"}]`. */
function binariesOf(affected: JsonObject): string[] | undefined {
  const specific = affected.ecosystem_specific
  if (!isObject(specific)) return undefined
  const names = objectsOf(specific.binaries).flatMap(binaries => Object.keys(binaries).filter(isPackageName))
  return names.length === 0 ? undefined : names
}

const meaningOf = (rule: OsvRule): string =>
  JSON.stringify([rule.key, rule.rule.module, rule.rule.channel, rule.rule.flavour, rule.rule.introduced])

const systemOf = (distro: OsvDistro): 'dpkg' | 'rpm' => (distro === 'debian' || distro === 'ubuntu' ? 'dpkg' : 'rpm')

/** Several fixed versions of one package and module are builds of one fix: the lowest clears (MAT-079). */
function lowestFixes(rules: readonly OsvRule[], distro: OsvDistro): OsvRule[] {
  const system = systemOf(distro)
  const kept = new Map<string, OsvRule>()
  const others: OsvRule[] = []
  for (const each of rules) {
    const { fixed } = each.rule
    if (fixed === undefined || !isValidVersion(system, fixed)) {
      others.push(each)
      continue
    }
    const meaning = meaningOf(each)
    const before = kept.get(meaning)
    const isLower =
      before?.rule.fixed === undefined ||
      (compareVersions(system, fixed, before.rule.fixed) || compareText(fixed, before.rule.fixed)) < 0
    const lower = before === undefined || isLower ? each : before
    const binaries = joinBinaries(before, each)
    const { binaries: _, ...rest } = lower.rule
    kept.set(meaning, { key: lower.key, rule: binaries === undefined ? rest : { ...rest, binaries } })
  }
  return [...kept.values(), ...others]
}

/** A rule without a limit covers every binary, and so does what it is joined with. */
function joinBinaries(before: OsvRule | undefined, each: OsvRule): readonly string[] | undefined {
  if (before === undefined) return each.rule.binaries
  if (before.rule.binaries === undefined || each.rule.binaries === undefined) return undefined
  return sortedUnique([...before.rule.binaries, ...each.rule.binaries])
}

/** `severityOf`: what the distribution says of one entry of `affected`. */
export function osvRules(
  record: JsonObject,
  distro: OsvDistro,
  severityOf: (affected: JsonObject) => Severity,
): { readonly rules: readonly OsvRule[]; readonly isKnown: boolean } {
  const modules = modulesOfTitle(textOf(record.summary).slice(0, TITLE_CHARS_MAX))
  let isKnown = false
  const rules = objectsOf(record.affected).flatMap(affected => {
    const pkg = affected.package
    const ecosystem = isObject(pkg) ? ecosystemOf(distro, textOf(pkg.ecosystem)) : null
    if (!isObject(pkg) || ecosystem === null || !isPackageName(pkg.name)) return []
    isKnown = true
    const key: RuleKey = { release: ecosystem.release, package: pkg.name, by: osvNamesBy(distro) }
    const binaries = distro === 'suse' || distro === 'opensuse' ? binariesOf(affected) : undefined
    return boundsOf(affected).flatMap((bounds): OsvRule[] => {
      const flavour = ecosystem.flavour ?? flavourOfVersion(bounds.fixed ?? '')
      const rule: OsvRule['rule'] = {
        ...bounds,
        status: bounds.fixed === undefined ? 'no_fix' : 'fixed',
        channel: ecosystem.channel,
        ...severityOf(affected),
        no_distro_fix: false,
        ...(flavour === undefined ? {} : { flavour }),
        ...(binaries === undefined ? {} : { binaries }),
      }
      const isModular = bounds.fixed?.includes('.module') === true && modules.length > 0
      const builds = isModular ? modules.map(module => ({ ...rule, module })) : [rule]
      return builds.map(build => ({ key, rule: build }))
    })
  })
  return { rules: lowestFixes(rules, distro), isKnown }
}
