// The feed's records of rules, compiled into the running set.
import { compileRule } from './compile-rule.ts'
import type { CompiledRule, CompileResult, RejectedRule, RuleRecord } from './rule.ts'
import { type CompanyRules, companyRules, type RuleSet } from './rule-set.ts'

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
    const agentDownIds: string[] = []
    for (const raw of raws) {
      const result = compiledOf(raw)
      if (result.kind === 'compiled') compiled.push(result.rule)
      else if (result.kind === 'skipped') agentDownIds.push(raw.id)
    }
    loaded += compiled.length
    const held = previous.fingerprints.get(companyId) === fingerprint ? previous.companies.get(companyId) : undefined
    companies.set(companyId, held ?? companyRules(compiled, agentDownIds))
    fingerprints.set(companyId, fingerprint)
  }
  return { companies, loaded, rejected, fingerprints, results }
}
