// The running rules of all companies, compiled from the raw set of the feed (document 2 "Rule sync on the collector").
// The rules of a company are one object, which is replaced only when one of them changed. Servers remember the object
// that they are bound to, so its identity is the version.
import { type CompiledRule, type CompileResult, compileRule, type RejectedRule, type RuleRecord } from './rule.ts'

/**
 * The rules of one company, by metric. Its identity is its version: when the object is another one, servers must be
 * bound again.
 */
export type CompanyRules = {
  readonly byId: ReadonlyMap<string, CompiledRule>
  readonly byMetric: ReadonlyMap<string, readonly CompiledRule[]>
}

export type RuleSet = {
  readonly companies: ReadonlyMap<string, CompanyRules>
  readonly loaded: number
  readonly rejected: readonly RejectedRule[]
  /** `id:sync_version` of all rules of each company, to detect whether they changed. */
  readonly fingerprints: ReadonlyMap<string, string>
  /** The result of compiling each record, by company, id and sync_version. An unchanged record reuses it. */
  readonly results: ReadonlyMap<string, CompileResult>
}

export const emptyCompanyRules: CompanyRules = { byId: new Map(), byMetric: new Map() }
export const emptyRuleSet: RuleSet = {
  companies: new Map(),
  loaded: 0,
  rejected: [],
  fingerprints: new Map(),
  results: new Map(),
}

function companyRules(rules: readonly CompiledRule[]): CompanyRules {
  const byMetric = new Map<string, CompiledRule[]>()
  for (const rule of rules) {
    const sameMetric = byMetric.get(rule.metric)
    if (sameMetric) sameMetric.push(rule)
    else byMetric.set(rule.metric, [rule])
  }
  return { byId: new Map(rules.map(rule => [rule.id, rule])), byMetric }
}

/** The companies whose rules were added, changed or removed between two sets. */
export function changedCompanies(before: RuleSet, after: RuleSet): Set<string> {
  const changed = new Set<string>()
  for (const [companyId, rules] of after.companies)
    if (before.companies.get(companyId) !== rules) changed.add(companyId)
  for (const companyId of before.companies.keys()) if (!after.companies.has(companyId)) changed.add(companyId)
  return changed
}

/** The identity of a record (company, id, sync_version); null when one of them is missing or malformed. */
const recordOf = (raw: RuleRecord): string | null =>
  typeof raw?.company_id === 'string' && typeof raw.id === 'string' && Number.isInteger(raw.sync_version)
    ? `${raw.company_id} ${raw.id} ${raw.sync_version}`
    : null

/**
 * Compiles the raw set. Companies whose records are the same as in `previous` keep their object, and with it their
 * bindings. Never throws.
 */
export function compileRuleSet(records: Iterable<RuleRecord>, previous: RuleSet): RuleSet {
  const byCompany = new Map<string, RuleRecord[]>()
  const strays: RuleRecord[] = []
  for (const raw of records) {
    if (typeof raw?.company_id !== 'string') strays.push(raw)
    else {
      const ofCompany = byCompany.get(raw.company_id)
      if (ofCompany) ofCompany.push(raw)
      else byCompany.set(raw.company_id, [raw])
    }
  }
  const companies = new Map<string, CompanyRules>()
  const fingerprints = new Map<string, string>()
  const results = new Map<string, CompileResult>()
  const rejected: RejectedRule[] = []
  let loaded = 0
  const compiledOf = (raw: RuleRecord): CompileResult => {
    const record = recordOf(raw)
    const result = (record === null ? undefined : previous.results.get(record)) ?? compileRule(raw)
    if (record !== null) results.set(record, result)
    if (result.kind === 'rejected') rejected.push(result.rejected)
    return result
  }
  for (const raw of strays) compiledOf(raw)
  for (const [companyId, raws] of byCompany) {
    const fingerprint = raws
      .map(raw => `${raw.id}:${raw.sync_version}`)
      .sort()
      .join(',')
    const compiled: CompiledRule[] = []
    for (const raw of raws) {
      const result = compiledOf(raw)
      if (result.kind === 'compiled') compiled.push(result.rule)
    }
    loaded += compiled.length
    const held = previous.fingerprints.get(companyId) === fingerprint ? previous.companies.get(companyId) : undefined
    companies.set(companyId, held ?? companyRules(compiled))
    fingerprints.set(companyId, fingerprint)
  }
  return { companies, loaded, rejected, fingerprints, results }
}
