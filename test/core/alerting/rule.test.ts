// What a rule may say, and what the collector makes of one that it may not.
import { expect, test } from 'bun:test'
import { compileRule } from '../../../core/alerting/rules/compile-rule.ts'
import { compileRuleSet } from '../../../core/alerting/rules/compile-rule-set.ts'
import { ruleFaults } from '../../../core/alerting/rules/rule-faults.ts'
import { changedCompanies, emptyRuleSet } from '../../../core/alerting/rules/rule-set.ts'

const good = {
  id: '10000000-0000-4000-8000-000000000001',
  version: 3,
  sync_version: 7,
  company_id: 'c0000000-0000-4000-8000-000000000001',
  name: 'disk',
  kind: 'threshold',
  scope: { all: true, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] },
  resolved_server_ids: [],
  metric: 'disk_used_percent',
  matchers: {},
  operator: '>',
  threshold: 85,
  for_seconds: 300,
  recover_threshold: null,
  recover_for_seconds: 0,
  severity: 'warning',
  no_data: 'ignore',
  renotify_seconds: 0,
  enabled: true,
  deleted: false,
}

/** The reason under which a changed rule is rejected, or `compiled` / `skipped`. */
function outcome(change: Record<string, unknown>): string {
  const result = compileRule({ ...good, ...change })
  return result.kind === 'rejected' ? result.rejected.reason : result.kind
}

test('[RUL-001, RUL-002] a rule with every field compiles, of kind threshold or check, with its version', () => {
  const result = compileRule(good)
  expect(result.kind === 'compiled' && result.rule).toMatchObject({ version: 3, forMs: 300_000, threshold: 85 })
  expect(outcome({ kind: 'check' })).toBe('compiled')
  expect(outcome({ kind: 'other' })).toBe('kind')
})

test('[RUL-003] a rule of kind agent_down is skipped and not counted as invalid', () => {
  expect(outcome({ kind: 'agent_down', metric: null, operator: null, threshold: null })).toBe('skipped')
  const set = compileRuleSet([{ ...good, kind: 'agent_down' } as never], emptyRuleSet)
  expect([set.loaded, set.rejected]).toEqual([0, []])
})

test('[RUL-008, RUL-009] a metric outside the catalogue and a label that the metric does not have are invalid', () => {
  expect(outcome({ metric: 'no_such_metric' })).toBe('metric')
  expect(outcome({ matchers: { interface: 'eth0' } })).toBe('matcher_label')
  expect(outcome({ matchers: { mount: '/' } })).toBe('compiled')
})

test('[RUL-012] a list matcher has at most 64 values', () => {
  const values = (count: number) => Array.from({ length: count }, (_, index) => `/${index}`)
  expect(outcome({ matchers: { mount: values(64) } })).toBe('compiled')
  expect(outcome({ matchers: { mount: values(65) } })).toBe('matcher_list')
  expect(outcome({ matchers: { mount: [] } })).toBe('matcher_list')
})

test('[RUL-014, RUL-015] a regex has at most 128 characters and must be RE2', () => {
  expect(outcome({ matchers: { mount: { regex: 'a'.repeat(128) } } })).toBe('compiled')
  expect(outcome({ matchers: { mount: { regex: 'a'.repeat(129) } } })).toBe('matcher_regex')
  expect(outcome({ matchers: { mount: { regex: 'a(?=b)' } } })).toBe('matcher_regex')
  expect(outcome({ matchers: { mount: { regex: '(a)\\1' } } })).toBe('matcher_regex')
  expect(outcome({ matchers: { mount: { regex: '(' } } })).toBe('matcher_regex')
})

test('[RUL-017, RUL-018] operator is one of six, threshold is required and finite', () => {
  for (const operator of ['>', '>=', '<', '<=', '==', '!=']) expect(outcome({ operator })).toBe('compiled')
  expect(outcome({ operator: '=>' })).toBe('operator')
  for (const threshold of [null, undefined, '85', Number.NaN, Number.POSITIVE_INFINITY])
    expect(outcome({ threshold })).toBe('threshold')
})

test('[RUL-019, RUL-020, RUL-021, RUL-022] recover_threshold is optional, on the right side, unused with == and !=', () => {
  const of = (operator: string, recover: number | null) => outcome({ operator, recover_threshold: recover })
  for (const operator of ['>', '>=']) {
    expect(of(operator, null)).toBe('compiled')
    expect(of(operator, 85)).toBe('compiled')
    expect(of(operator, 80)).toBe('compiled')
    expect(of(operator, 86)).toBe('recover_threshold')
  }
  for (const operator of ['<', '<=']) {
    expect(of(operator, 85)).toBe('compiled')
    expect(of(operator, 90)).toBe('compiled')
    expect(of(operator, 84)).toBe('recover_threshold')
  }
  for (const operator of ['==', '!=']) expect(of(operator, 1000)).toBe('compiled')
})

test('[RUL-023, RUL-024, RUL-026, RUL-027] severity, no_data, durations and scope are validated', () => {
  expect(outcome({ severity: 'fatal' })).toBe('severity')
  expect(outcome({ no_data: 'close' })).toBe('no_data')
  for (const field of ['for_seconds', 'recover_for_seconds', 'renotify_seconds']) {
    expect(outcome({ [field]: -1 })).toBe('duration')
    expect(outcome({ [field]: 60.5 })).toBe('duration')
  }
  expect(outcome({ for_seconds: 86_401 })).toBe('duration')
  expect(outcome({ renotify_seconds: 59 })).toBe('duration')
  expect(outcome({ renotify_seconds: 60 })).toBe('compiled')
  for (const scope of [null, 'all', [], { all: 'yes' }, { server_ids: [1] }]) expect(outcome({ scope })).toBe('scope')
  expect(outcome({ scope: {}, resolved_server_ids: [] })).toBe('compiled')
})

test('[RUL-026] a rule without the optional fields has their defaults', () => {
  const { for_seconds: _f, recover_for_seconds: _r, no_data: _n, renotify_seconds: _e, ...rest } = good
  const result = compileRule(rest)
  expect(result.kind === 'compiled' && result.rule).toMatchObject({
    forMs: 0,
    recoverForMs: 0,
    noData: 'ignore',
    renotifyMs: 0,
  })
})

test('[RUL-028, RUL-033] whatever a feed holds, the good rules of it run', () => {
  const strange = [null, 7, [], {}, { id: 1 }, { ...good, id: 'x', metric: {} }, { ...good, company_id: 5 }] as never[]
  const set = compileRuleSet([...strange, good as never], emptyRuleSet)
  expect(set.loaded).toBe(1)
  expect(set.rejected).toHaveLength(strange.length)
})

test('[RUL-030] faults come in the order in which they count', () => {
  const faults = ruleFaults({
    ...good,
    kind: 'x',
    metric: 'x',
    operator: 'x',
    threshold: null,
    severity: 'x',
    scope: null,
  })
  expect(faults.map(fault => fault.reason)).toEqual(['kind', 'metric', 'operator', 'threshold', 'severity', 'scope'])
})

test('[CHG-014] a company whose records are the same keeps its rules as they are, one whose records changed does not', () => {
  const other = { ...good, id: 'r2', company_id: 'other' }
  const before = compileRuleSet([good, other] as never[], emptyRuleSet)
  const after = compileRuleSet([good, { ...other, sync_version: 8, threshold: 90 }] as never[], before)
  expect([...changedCompanies(before, after)]).toEqual(['other'])
  expect([...changedCompanies(after, compileRuleSet([good] as never[], after))]).toEqual(['other'])
})
