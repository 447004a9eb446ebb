import { expect, test } from 'bun:test'
import { compileRule } from '../../../core/alerting/rules/compile-rule.ts'
import { packRule } from '../../../core/alerting/rules/packed-rule.ts'
import type { RuleRecord } from '../../../core/alerting/rules/rule.ts'
import { hasServerId, packServerIds } from '../../../core/alerting/rules/server-ids.ts'
import { uuidFromText } from '../../../core/series/hash.ts'
import { ruleRecord } from '../../support/rule-record.ts'

const ids = Array.from({ length: 3000 }, (_, index) => uuidFromText(`server ${index}`))
const [given, others] = [ids.slice(0, 1500), ids.slice(1500)]

test('packed servers are those of all lists, in any order, each once; what is no UUID is none', () => {
  const packed = packServerIds([given.slice(0, 1000), [...given.slice(500), 'host-1', 'F'.repeat(36)]])
  expect(packed.length).toBe(1500 * 4)
  for (const id of given) expect(hasServerId(packed, id)).toBe(true)
  for (const id of others) expect(hasServerId(packed, id)).toBe(false)
  const sorted = packServerIds([[...given].sort()])
  expect([...sorted]).toEqual([...packed])
})

test('ids that differ in one bit are told apart, at both ends of the list too', () => {
  const low = '00000000-0000-4000-8000-000000000001'
  const high = 'ffffffff-ffff-4fff-bfff-ffffffffffff'
  const packed = packServerIds([[high, low]])
  expect(hasServerId(packed, low)).toBe(true)
  expect(hasServerId(packed, high)).toBe(true)
  for (const id of [low.replace(/1$/, '0'), low.replace(/1$/, '2'), high.replace(/^f/, '7'), high.replace(/f$/, 'e')])
    expect(hasServerId(packed, id)).toBe(false)
  expect(hasServerId(packServerIds([[]]), low)).toBe(false)
})

test('[RUL-007] a rule that is handed over packed covers what its record names, and is the same rule', () => {
  const raw = ruleRecord({
    scope: { all: false, server_ids: given.slice(0, 700), tags: [], environments: [], roles: [], datacenters: [] },
    resolved_server_ids: given,
  })
  const plain = compileRule(raw)
  const packed = compileRule(packRule(raw))
  expect(packed).toEqual(plain)
  expect(packed.kind === 'compiled' && given.every(id => hasServerId(packed.rule.serverIds, id))).toBe(true)
  expect(packed.kind === 'compiled' && others.some(id => hasServerId(packed.rule.serverIds, id))).toBe(false)
})

test('a record that only looks packed names its servers itself, and a scope that is none is rejected as ever', () => {
  const strange = (changes: object): RuleRecord => packRule({ ...ruleRecord({}), ...changes })
  const forged = compileRule(
    strange({ scope: { all: false, server_ids: [ids[0]] }, packed: { serverIds: { 0: 1 }, record: 'x' } }),
  )
  expect(forged.kind === 'compiled' && hasServerId(forged.rule.serverIds, ids[0]!)).toBe(true)
  for (const changes of [
    { scope: 'all' },
    { scope: null },
    { resolved_server_ids: 7 },
    { scope: { server_ids: [1] } },
  ]) {
    const result = compileRule(strange(changes))
    expect(result.kind === 'rejected' && result.rejected.reason).toBe('scope')
  }
})
