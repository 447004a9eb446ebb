// A rule compiled as the collector evaluates it, or why it is refused (rule-faults.ts; document 2 "Rule").
import { isObject, type Unchecked } from '../../json-object.ts'
import { canonicalMatchers, compileMatchers } from './matchers.ts'
import {
  type CompiledRule,
  type CompileResult,
  compileEverywhere,
  type RawRule,
  type RejectedRule,
  type RuleFault,
  type RuleRecord,
} from './rule.ts'
import { ruleFaults } from './rule-faults.ts'
import { packedIds, packServerIds } from './server-ids.ts'

/** Compiles one rule of the feed; never throws, whatever it is given. */
export function compileRule(raw: unknown): CompileResult {
  if (!isObject(raw)) return rejection({}, { reason: 'decode', field: '', message: 'a rule must be an object' })
  if (typeof raw.too_large === 'number')
    return rejection(raw, {
      reason: 'too_large',
      field: '',
      message: `the record has up to ${raw.too_large} bytes, more than is delivered: its scope names too many servers`,
    })
  for (const field of ['id', 'company_id'] as const)
    if (typeof raw[field] !== 'string' || raw[field] === '')
      return rejection(raw, { reason: 'decode', field, message: `${field} must be a string` })
  if (!Number.isInteger(raw.version))
    return rejection(raw, { reason: 'decode', field: 'version', message: 'version must be an integer' })
  if (raw.kind === 'agent_down') return { kind: 'skipped' }
  return isValid(raw) ? { kind: 'compiled', rule: compile(raw) } : rejection(raw, ruleFaults(raw)[0]!)
}

function rejection(raw: Unchecked, fault: RuleFault): CompileResult {
  const rejected: RejectedRule = {
    rule_id: typeof raw.id === 'string' ? raw.id : '',
    company_id: typeof raw.company_id === 'string' ? raw.company_id : '',
    version: Number.isInteger(raw.version) ? (raw.version as number) : 0,
    reason: fault.reason,
    message: fault.field ? `${fault.field}: ${fault.message}` : fault.message,
  }
  return { kind: 'rejected', rejected }
}

type ValidRule = RawRule & Pick<RuleRecord, 'packed'>

const isValid = (raw: Unchecked): raw is Unchecked & ValidRule => ruleFaults(raw).length === 0

function compile(raw: ValidRule): CompiledRule {
  const everywhere = compileEverywhere(raw)
  const matchers = raw.matchers ?? {}
  const scopeAll = raw.scope.all === true
  return {
    ...everywhere,
    matchers: compileMatchers(matchers, null).matchers,
    scopeAll,
    serverIds: packedIds(raw) ?? packServerIds([raw.scope.server_ids ?? [], raw.resolved_server_ids ?? []]),
    signature: JSON.stringify([raw.company_id, everywhere.metric, canonicalMatchers(matchers), scopeAll]),
  }
}
