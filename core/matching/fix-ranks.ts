// The rules of a row as numbers: where the fix of each stands among all fixes of the row. An installed version is then
// compared with a few of them, and each rule costs two numbers instead of two texts (MAT-180, MAT-187). A row that is
// asked for once alone is not ranked: to put its fixes in order costs more than to compare each of them.
import type { Rule } from './advisory.ts'
import type { PackageSystem } from './report-schema.ts'
import { compareVersions } from './version.ts'

/** Of rows with fewer rules, the texts are compared. */
const RANKED_MIN = 8

/** A rule whose text has to be looked at: it has other bounds than a fix, or there are several of its vulnerability. */
export const UNRANKED = -1
/** Behind every version: there is no fix. */
const NEVER = 0x7fffffff

type RankedRules = {
  /** The fixes that rules name, each once, the lowest first. */
  readonly fixes: readonly string[]
  /** By rule: the place of its fix, `NEVER` or `UNRANKED`. */
  readonly ranks: Int32Array
}

/** By the rules of a row as its reader keeps them: null once they were asked for. */
const known = new WeakMap<readonly Rule[], RankedRules | null>()

/** Undefined for small rows, at the first time, and for rpm, whose boundaries are in no one order (MAT-093). */
export function rankedRules(rules: readonly Rule[], system: PackageSystem): RankedRules | undefined {
  if (rules.length < RANKED_MIN || system === 'rpm') return undefined
  const held = known.get(rules)
  if (held) return held
  const ranked = held === null ? rank(rules, system) : null
  known.set(rules, ranked)
  return ranked ?? undefined
}

function rank(rules: readonly Rule[], system: PackageSystem): RankedRules {
  const places = new Map<string, number>()
  for (const { fixed } of rules) if (fixed !== undefined) places.set(fixed, 0)
  const fixes = [...places.keys()].sort((a, b) => compareVersions(system, a, b))
  for (const [place, fix] of fixes.entries()) places.set(fix, place)
  const ranks = Int32Array.from(rules, (rule, at) => {
    const isAlone = rules[at - 1]?.vuln !== rule.vuln && rules[at + 1]?.vuln !== rule.vuln
    const isPlain = rule.introduced === undefined && rule.last_affected === undefined && rule.versions === undefined
    if (!isAlone || !isPlain) return UNRANKED
    return rule.fixed === undefined ? NEVER : places.get(rule.fixed)!
  })
  return { fixes, ranks }
}

/** How many of the fixes a version is at or above: rules whose rank is lower do not hit (MAT-114). */
export function fixesPassed({ fixes }: RankedRules, system: PackageSystem, version: string): number {
  let from = 0
  let to = fixes.length
  while (from < to) {
    const middle = (from + to) >>> 1
    if (compareVersions(system, version, fixes[middle]!) < 0) to = middle
    else from = middle + 1
  }
  return from
}
