// Staged rows → the tables of a database: rows of one package from several sources become one, words about one
// vulnerability become one, releases get their ends of support (MAT section 4). Equal input gives equal rows (MAT-075).
import type { Release, Rule, Vulnerability } from '../../../../core/matching/advisory.ts'
import { compareText, rulesText, sortedUnique } from '../rules-text.ts'
import { isObject, type ReleasePart, type VulnerabilityPart } from '../sources/source.ts'
import type { AdvisoryNote, StagedPart, StagedRow } from './staging.ts'

export type MergedRow = {
  readonly release: string
  readonly package: string
  readonly by: 'source' | 'binary'
  /** Null where sources said only which advisories belong to rules that nobody has. */
  readonly rules: string | null
  /** The source that alone said it; null when several did, whose shares follow. */
  readonly sourceId: number | null
  readonly shares: readonly { readonly sourceId: number; readonly rules: string }[]
  readonly vulns: ReadonlySet<string>
}

type Share = { readonly rules: Rule[]; readonly notes: AdvisoryNote[] }

/** Consecutive items with one key. */
export function* grouped<T>(items: Iterable<T>, keyOf: (item: T) => string): Generator<T[]> {
  let group: T[] = []
  let key = ''
  for (const item of items) {
    const own = keyOf(item)
    if (group.length > 0 && own !== key) {
      yield group
      group = []
    }
    key = own
    group.push(item)
  }
  if (group.length > 0) yield group
}

export const rowKey = (row: StagedRow): string => `${row.release_id}\n${row.package}\n${row.by}`

const isRule = (item: Rule | AdvisoryNote): item is Rule => 'status' in item

function notesText(notes: readonly AdvisoryNote[]): string[] {
  const byVuln = new Map<string, string[]>()
  for (const { vuln, advisories } of notes) byVuln.set(vuln, [...(byVuln.get(vuln) ?? []), ...advisories])
  return [...byVuln]
    .toSorted(([a], [b]) => compareText(a, b))
    .map(([vuln, advisories]) => JSON.stringify({ vuln, advisories: sortedUnique(advisories) }))
}

/** What one source said of a package, as it is stored beside that of others. */
function shareText(share: Share): string {
  const notes = notesText(share.notes)
  const rules = rulesText(share.rules).slice(1, -1)
  return `[${[...(rules === '' ? [] : [rules]), ...notes].join(',')}]`
}

/** Rules with a fix name the advisories that another source knows of it (MAT-080). */
function withNotes(rules: readonly Rule[], notes: readonly AdvisoryNote[]): readonly Rule[] {
  if (notes.length === 0) return rules
  const byVuln = new Map<string, string[]>()
  for (const { vuln, advisories } of notes) byVuln.set(vuln, [...(byVuln.get(vuln) ?? []), ...advisories])
  return rules.map(rule => {
    const ids = rule.status === 'fixed' ? byVuln.get(rule.vuln) : undefined
    return ids === undefined ? rule : { ...rule, advisories: sortedUnique([...rule.advisories, ...ids]) }
  })
}

/** One package's rows of all sources. */
export function mergeRows(rows: readonly StagedRow[]): MergedRow {
  const shares = new Map<number, Share>()
  for (const row of rows) {
    const share = shares.get(row.source_id) ?? { rules: [], notes: [] }
    shares.set(row.source_id, share)
    const items: (Rule | AdvisoryNote)[] = JSON.parse(row.rules)
    for (const item of items) {
      if (isRule(item)) share.rules.push(item)
      else share.notes.push(item)
    }
  }
  const all = [...shares.values()]
  const rules = all.flatMap(share => share.rules)
  const notes = all.flatMap(share => share.notes)
  const only = shares.size === 1 && notes.length === 0
  const { release_id: release, package: name, by } = rows[0]!
  return {
    release,
    package: name,
    by,
    rules: rules.length === 0 ? null : rulesText(withNotes(rules, notes)),
    sourceId: only ? rows[0]!.source_id : null,
    shares: only ? [] : [...shares].map(([sourceId, share]) => ({ sourceId, rules: shareText(share) })),
    vulns: new Set(rules.map(rule => rule.vuln)),
  }
}

const REFERENCES_MAX = 20

/** Parts of one vulnerability in the order of whose word counts: the first that says a thing is believed. */
function mergeParts(parts: readonly VulnerabilityPart[]): VulnerabilityPart {
  const first = <K extends keyof VulnerabilityPart>(key: K): VulnerabilityPart[K] | undefined =>
    parts.find(part => part[key] !== undefined && part[key] !== '' && part[key] !== null)?.[key]
  const scored = parts.find(part => typeof part.cvss_score === 'number')
  const aliases = sortedUnique(parts.flatMap(part => part.aliases ?? []))
  const references = [...new Set(parts.flatMap(part => part.references ?? []))].slice(0, REFERENCES_MAX)
  const merged: VulnerabilityPart = {
    id: parts[0]!.id,
    ...(aliases.length === 0 ? {} : { aliases }),
    severity: first('severity'),
    cvss_vector: scored?.cvss_vector,
    cvss_score: scored?.cvss_score,
    score_source: scored?.score_source,
    published_ms: first('published_ms'),
    modified_ms: first('modified_ms'),
    title: first('title'),
    ...(references.length === 0 ? {} : { references }),
    kev: parts.some(part => part.kev === true) ? true : undefined,
    kev_due_date: first('kev_due_date'),
    epss: first('epss'),
  }
  // Absent members must stay absent in the text that is stored.
  const plain: unknown = JSON.parse(JSON.stringify(merged))
  return isPart(plain) ? plain : { id: parts[0]!.id }
}

const isPart = (value: unknown): value is VulnerabilityPart => isObject(value) && typeof value.id === 'string'

type MergedVulnerability = {
  readonly vulnerability: Vulnerability
  readonly sourceId: number | null
  readonly shares: readonly { readonly sourceId: number; readonly part: string }[]
}

/** One vulnerability's parts of all sources. `rankOf`: whose word counts first, the lowest. */
export function mergeVulnerability(
  staged: readonly StagedPart[],
  rankOf: (sourceId: number) => number,
): MergedVulnerability {
  const bySource = new Map<number, string[]>()
  for (const { source_id: id, part } of staged) bySource.set(id, [...(bySource.get(id) ?? []), part])
  const shares = [...bySource]
    .map(([sourceId, texts]) => ({
      sourceId,
      part: mergeParts(sortedUnique(texts).map((text): VulnerabilityPart => JSON.parse(text))),
    }))
    .toSorted(
      (a, b) => rankOf(a.sourceId) - rankOf(b.sourceId) || compareText(JSON.stringify(a.part), JSON.stringify(b.part)),
    )
  return {
    vulnerability: wholeVulnerability(mergeParts(shares.map(({ part }) => part))),
    sourceId: shares.length === 1 ? shares[0]!.sourceId : null,
    shares: shares.map(({ sourceId, part }) => ({ sourceId, part: JSON.stringify(part) })),
  }
}

const wholeVulnerability = (part: VulnerabilityPart): Vulnerability => ({
  id: part.id,
  aliases: part.aliases ?? [],
  severity: part.severity ?? '',
  cvss_vector: part.cvss_vector ?? '',
  cvss_score: part.cvss_score ?? null,
  score_source: part.score_source ?? '',
  published_ms: part.published_ms ?? null,
  modified_ms: part.modified_ms ?? null,
  title: part.title ?? '',
  references: part.references ?? [],
  kev: part.kev ?? false,
  kev_due_date: part.kev_due_date ?? '',
  epss: part.epss ?? null,
})

/** The table in the code, changed by what sources say, and the releases that only have rows. */
export function mergeReleases(
  known: readonly Release[],
  parts: readonly ReleasePart[],
  withRows: Iterable<string>,
): Release[] {
  const releases = new Map(known.map(release => [release.id, release]))
  const blank = (id: string): Release => ({
    id,
    distro: id.split(':', 1)[0]!,
    version: id.slice(id.indexOf(':') + 1),
    codename: '',
    standard_until: '',
    extended_until: '',
    eol_until: '',
    channel: 'standard',
    successors: [],
  })
  for (const part of parts.toSorted((a, b) => compareText(JSON.stringify(a), JSON.stringify(b)))) {
    const changed = { ...(releases.get(part.id) ?? blank(part.id)), ...part }
    releases.set(part.id, { ...changed, eol_until: changed.extended_until || changed.standard_until })
  }
  for (const id of withRows) if (!releases.has(id)) releases.set(id, blank(id))
  return [...releases.values()].toSorted((a, b) => compareText(a.id, b.id))
}
