// What makes a rule of the feed valid, and what it compiles to.
import { describe, expect, test } from 'bun:test'
import { canonicalMatchers, compileMatchers, matchesLabels } from '../../../core/alerting/matchers.ts'
import { compileRule, rejectReasons, ruleFaults } from '../../../core/alerting/rule.ts'
import { compileRuleSet, emptyRuleSet } from '../../../core/alerting/rule-set.ts'
import { metrics } from '../../../core/series/catalogue.ts'

const scope = { all: true, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] }
const good = {
  id: 'a0000000-0000-4000-8000-000000000001',
  version: 3,
  sync_version: 7,
  company_id: 'c0000000-0000-4000-8000-000000000001',
  name: 'Disk filling',
  kind: 'threshold',
  scope,
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

/** The first fault of the good rule with these changes: reason and field; null when it is still good. */
const firstFault = (changes: Record<string, unknown>): string | null => {
  const [fault] = ruleFaults({ ...good, ...changes })
  return fault ? `${fault.reason} ${fault.field}` : null
}
const accepts = (changes: Record<string, unknown>) => expect(firstFault(changes)).toBeNull()
const refuses = (changes: Record<string, unknown>, expected: string) => expect(firstFault(changes)).toBe(expected)

describe('validation', () => {
  test('[RUL-001] a rule with every field of the document is valid', () => accepts({}))

  test('[RUL-002] kind is threshold, check or agent_down', () => {
    for (const kind of ['threshold', 'check', 'agent_down']) accepts({ kind })
    for (const kind of ['Threshold', '', null, undefined, 1]) refuses({ kind }, 'kind kind')
  })

  test('[RUL-008] the metric is one of the 61 of the catalogue', () => {
    expect(metrics).toHaveLength(61)
    for (const { name } of metrics) accepts({ metric: name })
    for (const metric of ['cpu', '', null, 'disk_used_percent ']) refuses({ metric }, 'metric metric')
  })

  test('[RUL-009] a matcher names a label that the metric has', () => {
    accepts({ matchers: { mount: '/', device: '/dev/sda', fstype: 'ext4' } })
    refuses({ matchers: { core: '0' } }, 'matcher_label matchers.core')
    refuses({ metric: 'cpu_usage_percent', matchers: { mount: '/' } }, 'matcher_label matchers.mount')
  })

  test('[RUL-012] a list has 1 to 64 strings', () => {
    const list = (length: number) => Array.from({ length }, (_, index) => `/data${index}`)
    accepts({ matchers: { mount: list(64) } })
    refuses({ matchers: { mount: list(65) } }, 'matcher_list matchers.mount')
    refuses({ matchers: { mount: [] } }, 'matcher_list matchers.mount')
    refuses({ matchers: { mount: ['/', 1] } }, 'matcher_list matchers.mount')
  })

  test('[RUL-014] a regex has at most 128 characters', () => {
    accepts({ matchers: { mount: { regex: 'a'.repeat(128) } } })
    refuses({ matchers: { mount: { regex: 'a'.repeat(129) } } }, 'matcher_regex matchers.mount')
  })

  test('[RUL-015] a regex that RE2 does not take is refused: look-ahead, back-references, bad syntax, nothing', () => {
    for (const regex of ['(?=a)b', '(a)\\1', '(', '[z-a]', ''])
      refuses({ matchers: { mount: { regex } } }, 'matcher_regex matchers.mount')
    refuses({ matchers: { mount: { regex: 'a', flags: 'i' } } }, 'matcher_regex matchers.mount')
  })

  test('[RUL-017] the operator is one of six', () => {
    for (const operator of ['>', '>=', '<', '<=', '==', '!=']) accepts({ operator })
    for (const operator of ['=', '=>', 'gt', null, undefined]) refuses({ operator }, 'operator operator')
  })

  test('[RUL-018] the threshold is required and finite', () => {
    for (const threshold of [0, -1.5, 1e300]) accepts({ threshold })
    for (const threshold of [null, undefined, '90', Number.NaN, Number.POSITIVE_INFINITY])
      refuses({ threshold }, 'threshold threshold')
  })

  test('[RUL-019, RUL-020, RUL-021, RUL-022] recover_threshold is optional, on the side of recovery, and unused with == and !=', () => {
    for (const operator of ['>', '>=']) {
      for (const recover_threshold of [undefined, null, 85, 80]) accepts({ operator, recover_threshold })
      refuses({ operator, recover_threshold: 85.001 }, 'recover_threshold recover_threshold')
    }
    for (const operator of ['<', '<=']) {
      for (const recover_threshold of [undefined, null, 85, 90]) accepts({ operator, recover_threshold })
      refuses({ operator, recover_threshold: 84.999 }, 'recover_threshold recover_threshold')
    }
    for (const operator of ['==', '!='])
      for (const recover_threshold of [1, 1000]) accepts({ operator, recover_threshold })
    refuses({ recover_threshold: 'low' }, 'recover_threshold recover_threshold')
  })

  test('[RUL-023, RUL-024] severity and no_data are one of three each', () => {
    for (const severity of ['info', 'warning', 'critical']) accepts({ severity })
    for (const severity of ['high', '', null]) refuses({ severity }, 'severity severity')
    for (const no_data of ['ignore', 'alert', 'resolve', null, undefined]) accepts({ no_data })
    refuses({ no_data: 'ok' }, 'no_data no_data')
  })

  test('[RUL-026] durations are whole seconds within their domain; renotify is 0 or a minute to a week', () => {
    for (const field of ['for_seconds', 'recover_for_seconds']) {
      for (const value of [0, 86_400, null, undefined]) accepts({ [field]: value })
      for (const value of [-1, 86_401, 1.5, '60']) refuses({ [field]: value }, `duration ${field}`)
    }
    for (const value of [0, 60, 604_800]) accepts({ renotify_seconds: value })
    for (const value of [59, 604_801, -60]) refuses({ renotify_seconds: value }, 'duration renotify_seconds')
  })

  test('[RUL-004, RUL-027] a scope is an object of lists of strings', () => {
    accepts({
      scope: { all: false, server_ids: ['a'], tags: ['web'], environments: [], roles: ['db'], datacenters: ['d1'] },
    })
    accepts({ scope: {} })
    refuses({ scope: 'all' }, 'scope scope')
    refuses({ scope: [] }, 'scope scope')
    refuses({ scope: { all: 'yes' } }, 'scope scope.all')
    refuses({ scope: { tags: 'web' } }, 'scope scope.tags')
    refuses({ scope: { server_ids: [1] } }, 'scope scope.server_ids')
    refuses({ resolved_server_ids: 'a' }, 'scope resolved_server_ids')
  })

  test('the reason of a rejection is the first failing check in the order of the documentation', () => {
    const all = {
      kind: 'x',
      metric: 'x',
      operator: 'x',
      threshold: 'x',
      severity: 'x',
      no_data: 'x',
      for_seconds: -1,
      scope: 1,
    }
    const reasons = ruleFaults({ ...good, ...all }).map(fault => fault.reason)
    expect(reasons).toEqual([...reasons].sort((a, b) => rejectReasons.indexOf(a) - rejectReasons.indexOf(b)))
    const result = compileRule({ ...good, ...all })
    expect(result.kind === 'rejected' && result.rejected.reason).toBe('kind')
  })
})

describe('compilation', () => {
  test('[RUL-003] agent_down is skipped, and is not invalid', () => {
    const raw = {
      ...good,
      kind: 'agent_down',
      metric: null,
      matchers: null,
      operator: null,
      threshold: null,
      no_data: null,
    }
    expect(compileRule(raw)).toEqual({ kind: 'skipped' })
    expect(ruleFaults(raw)).toEqual([])
  })

  test('[RUL-033] nothing that a feed can hold makes it throw', () => {
    for (const raw of [
      null,
      undefined,
      7,
      'rule',
      [],
      {},
      { id: 1 },
      { ...good, version: '3' },
      { ...good, matchers: 'x' },
      { ...good, scope: null },
    ])
      expect(compileRule(raw).kind).toBe('rejected')
    expect(compileRule({ ...good, matchers: null }).kind).toBe('compiled')
  })

  test('[RUL-028] an invalid rule is left out, the others run', () => {
    const other = { ...good, id: 'a0000000-0000-4000-8000-000000000002', metric: 'nonsense' }
    const set = compileRuleSet([good, other] as never, emptyRuleSet)
    expect(set.loaded).toBe(1)
    expect(set.rejected).toEqual([
      {
        rule_id: other.id,
        company_id: good.company_id,
        version: 3,
        reason: 'metric',
        message: 'metric: must be a metric of the catalogue',
      },
    ])
  })

  test('[CHG-014] the rules of a company that did not change stay the same object', () => {
    const ofOther = {
      ...good,
      id: 'a0000000-0000-4000-8000-000000000009',
      company_id: 'c0000000-0000-4000-8000-000000000009',
    }
    const before = compileRuleSet([good, ofOther] as never, emptyRuleSet)
    const after = compileRuleSet([{ ...good, threshold: 70, sync_version: 8 }, ofOther] as never, before)
    expect(after.companies.get(ofOther.company_id)).toBe(before.companies.get(ofOther.company_id)!)
    expect(after.companies.get(good.company_id)).not.toBe(before.companies.get(good.company_id)!)
  })

  test('[CHG-001] the signature is company, metric, matchers in any order, and scope.all', () => {
    const signature = (changes: Record<string, unknown>) => {
      const result = compileRule({ ...good, ...changes })
      return result.kind === 'compiled' ? result.rule.signature : result.kind
    }
    const base = signature({ matchers: { mount: ['/b', '/a'], fstype: 'ext4' } })
    expect(signature({ matchers: { fstype: 'ext4', mount: ['/a', '/b'] } })).toBe(base)
    for (const changes of [
      { threshold: 1 },
      { for_seconds: 1 },
      { name: 'x' },
      { severity: 'info' },
      { operator: '<' },
      { resolved_server_ids: ['x'] },
    ])
      expect(signature({ matchers: { mount: ['/b', '/a'], fstype: 'ext4' }, ...changes })).toBe(base)
    for (const changes of [
      { company_id: 'other' },
      { metric: 'disk_free_bytes' },
      { matchers: {} },
      { scope: { all: false } },
    ])
      expect(signature({ matchers: { mount: ['/b', '/a'], fstype: 'ext4' }, ...changes })).not.toBe(base)
  })
})

describe('matchers', () => {
  const matches = (raw: Record<string, unknown>, labels: Record<string, string>) => {
    const { matchers, faults } = compileMatchers(raw, null)
    expect(faults).toEqual([])
    return matchesLabels(matchers, labels)
  }

  test('[RUL-010, RUL-011, RUL-013] equals, member of, and a regex over the whole value', () => {
    expect(matches({ mount: '/' }, { mount: '/' })).toBe(true)
    expect(matches({ mount: '/' }, { mount: '/srv' })).toBe(false)
    expect(matches({ mount: ['/a', '/b'] }, { mount: '/b' })).toBe(true)
    expect(matches({ mount: ['/a', '/b'] }, { mount: '/c' })).toBe(false)
    expect(matches({ mount: { regex: '/srv|/data\\d+' } }, { mount: '/data12' })).toBe(true)
    expect(matches({ mount: { regex: '/srv|/data\\d+' } }, { mount: '/data12/x' })).toBe(false)
    expect(matches({ mount: { regex: 'srv' } }, { mount: '/srv' })).toBe(false)
  })

  test('[RUL-016] all must match; a label that is missing is empty; none at all matches every series', () => {
    expect(matches({ mount: '/', fstype: 'ext4' }, { mount: '/', fstype: 'ext4' })).toBe(true)
    expect(matches({ mount: '/', fstype: 'ext4' }, { mount: '/', fstype: 'xfs' })).toBe(false)
    expect(matches({ fstype: '' }, { mount: '/' })).toBe(true)
    expect(matches({ fstype: { regex: '.+' } }, { mount: '/' })).toBe(false)
    expect(matches({}, { anything: 'x' })).toBe(true)
  })

  test('the canonical form does not depend on the order of keys and lists', () => {
    expect(canonicalMatchers({ b: ['2', '1'], a: { regex: 'x' } })).toBe(
      canonicalMatchers({ a: { regex: 'x' }, b: ['1', '2'] }),
    )
  })

  test('a regex that would take a backtracking engine years is judged at once', () => {
    expect(matches({ mount: { regex: '(a+)+b' } }, { mount: 'a'.repeat(2000) })).toBe(false)
  })
})
