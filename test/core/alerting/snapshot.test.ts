// Snapshots: what is saved comes back bit by bit; bytes that are no snapshot are told apart.
import { expect, test } from 'bun:test'
import { crc32 } from 'node:zlib'
import { encodeSnapshot, restoreSnapshot } from '../../../core/alerting/durability/snapshot.ts'
import { applyEntry } from '../../../core/alerting/evaluate/evaluator.ts'
import { compileRuleSet } from '../../../core/alerting/rules/compile-rule-set.ts'
import type { RawRule } from '../../../core/alerting/rules/rule.ts'
import { emptyRuleSet } from '../../../core/alerting/rules/rule-set.ts'
import { setRules } from '../../../core/alerting/rules/rule-slots.ts'
import { EvaluationState } from '../../../core/alerting/state/evaluation-state.ts'
import { EntryReader, encodeEntry } from '../../../core/bus/entry.ts'
import { shardOfServer } from '../../../core/bus/shard-of-server.ts'
import { SampleBatch } from '../../../core/series/sample-batch.ts'
import { seriesId } from '../../../core/series/series-key.ts'
import { company, ruleRecord } from '../../support/rule-record.ts'

const START_MS = 1_767_225_600_000
const SERVER = '50000000-0000-4000-8000-000000000001'
const KEY = 'cpu_usage_percent'

const rule = (version: number): RawRule => ruleRecord({ version, sync_version: version })

function evaluationWith(rules: readonly RawRule[]): EvaluationState {
  const evaluation = new EvaluationState({
    noDataAfterMs: 300_000,
    flapping: { windowMs: 1_800_000, transitions: 4, stableMs: 1_800_000 },
  })
  setRules(evaluation, compileRuleSet(rules, emptyRuleSet))
  return evaluation
}

function feed(evaluation: EvaluationState, tsMs: number, value: number): string[] {
  const batch = new SampleBatch()
  const { lo, hi } = seriesId(KEY)
  batch.idLo[0] = lo
  batch.idHi[0] = hi
  batch.pointStart[1] = 1
  batch.tsMs[0] = tsMs
  batch.value[0] = value
  batch.seriesCount = 1
  batch.pointCount = 1
  batch.definitions.push({ seriesIndex: 0, key: KEY })
  const header = {
    companyId: company,
    serverId: SERVER,
    agentId: SERVER,
    receivedAtMs: tsMs,
    seq: 1,
    intervalSeconds: 30,
  }
  const reader = new EntryReader()
  reader.open(encodeEntry(header, batch))
  reader.next()
  applyEntry(evaluation, reader, 1)
  return evaluation.drainEvents().map(event => `${event.type} ${event.reason ?? ''}`.trim())
}

const SHARD = shardOfServer(SERVER)
const save = (evaluation: EvaluationState, atMs = START_MS) => encodeSnapshot(evaluation, SHARD, 42, 7, atMs)

test('[SNAP-005, SNAP-006] a firing alert comes back with place on the bus and in the journal, and resolves', () => {
  const before = evaluationWith([rule(1)])
  expect(feed(before, START_MS, 95)).toEqual(['alert.opened'])
  const after = evaluationWith([rule(1)])
  after.dictionary.load(SHARD, [KEY])
  expect(restoreSnapshot(after, save(before), SHARD)).toEqual({ position: 42, journalMark: 7 })
  expect(feed(after, START_MS + 30_000, 50)).toEqual(['alert.resolved recovered'])
})

test('[SNAP-005] saving what was loaded gives the same bytes, for times far from the saving too', () => {
  for (const ageMs of [0, 1000, 3_000_000_000]) {
    const before = evaluationWith([rule(1)])
    feed(before, START_MS - ageMs, 50)
    const bytes = save(before)
    const after = evaluationWith([rule(1)])
    after.dictionary.load(SHARD, [KEY])
    restoreSnapshot(after, bytes, SHARD)
    expect(save(after)).toEqual(bytes)
  }
})

test('[CHG-013] a snapshot under another signature closes its alert with rule_changed', () => {
  const before = evaluationWith([rule(1)])
  feed(before, START_MS, 95)
  const after = evaluationWith([{ ...rule(2), scope: { ...rule(2).scope, all: false, server_ids: [SERVER] } }])
  after.dictionary.load(SHARD, [KEY])
  restoreSnapshot(after, save(before), SHARD)
  expect(feed(after, START_MS + 30_000, 95)).toEqual(['alert.resolved rule_changed', 'alert.opened'])
})

test('[SNAP-005] bytes that were cut or changed, or are of another format or shard, are refused with what is wrong', () => {
  const before = evaluationWith([rule(1)])
  feed(before, START_MS, 95)
  const good = save(before)
  const fault = (bytes: Uint8Array) => {
    const result = restoreSnapshot(evaluationWith([]), bytes, SHARD)
    return 'fault' in result ? result.fault : 'read'
  }
  expect(fault(new Uint8Array(0))).toBe('not a snapshot')
  expect(fault(new TextEncoder().encode('{"this":"is something else"}'))).toBe('not a snapshot')
  expect(fault(good.slice(0, good.length - 8))).toBe('checksum does not match')
  for (const at of [20, good.length >> 1, good.length - 1]) {
    const changed = good.slice()
    changed[at] = changed[at]! ^ 1
    expect(fault(changed)).toBe('checksum does not match')
  }
  expect(new DataView(good.buffer, good.byteOffset).getUint32(8, true)).toBe(crc32(good.subarray(12)))
  const newer = good.slice()
  newer[7] = '2'.charCodeAt(0)
  expect(fault(newer)).toBe('format 2, this program reads 1')
  const other = (SHARD + 1) % 64
  expect(fault(encodeSnapshot(before, other, 42, 7, START_MS))).toBe(`it is of shard ${other}`)
})
