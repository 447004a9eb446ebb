// The stored form of rules: one text for one meaning, so that equal input gives equal bytes in whatever order it came
// (MAT-075), and a digest tells whether a package's rules have changed.
import { createHash } from 'node:crypto'
import type { Rule } from '../../../core/matching/advisory.ts'

/** Order of characters by code unit, the same on every host. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

export const sortedUnique = (texts: Iterable<string>): string[] => [...new Set(texts)].toSorted(compareText)

/** A rule with its keys in the order of the contract and its lists sorted; absent members stay absent. */
function orderedRule(rule: Rule): Rule {
  return {
    vuln: rule.vuln,
    advisories: sortedUnique(rule.advisories),
    ...(rule.introduced === undefined ? {} : { introduced: rule.introduced }),
    ...(rule.fixed === undefined ? {} : { fixed: rule.fixed }),
    ...(rule.last_affected === undefined ? {} : { last_affected: rule.last_affected }),
    ...(rule.versions === undefined ? {} : { versions: sortedUnique(rule.versions) }),
    status: rule.status,
    channel: rule.channel,
    severity: rule.severity,
    minor: rule.minor,
    no_distro_fix: rule.no_distro_fix,
    ...(rule.arches === undefined ? {} : { arches: sortedUnique(rule.arches) }),
    ...(rule.module === undefined ? {} : { module: rule.module }),
    ...(rule.flavour === undefined ? {} : { flavour: rule.flavour }),
    ...(rule.binaries === undefined ? {} : { binaries: sortedUnique(rule.binaries) }),
  }
}

/**
 * The rules of one package as they are stored: sorted by vulnerability and text, each once. Rules that differ by their
 * advisories only say the same of a version, and become one with the advisories of all.
 */
export function rulesText(rules: Iterable<Rule>): string {
  const byMeaning = new Map<string, Rule>()
  for (const rule of rules) {
    const ordered = orderedRule(rule)
    const meaning = JSON.stringify({ ...ordered, advisories: [] })
    const same = byMeaning.get(meaning)
    byMeaning.set(
      meaning,
      same ? { ...same, advisories: sortedUnique([...same.advisories, ...ordered.advisories]) } : ordered,
    )
  }
  const sorted = [...byMeaning].toSorted(([a, x], [b, y]) => compareText(x.vuln, y.vuln) || compareText(a, b))
  return JSON.stringify(sorted.map(([, rule]) => rule))
}

export const sha256 = (text: string | Uint8Array): Buffer => createHash('sha256').update(text).digest()
