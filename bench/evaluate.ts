// What evaluation costs in one shard thread: a sample of a series that no rule is bound to, a sample against a bound
// rule, saving and loading a million states, and the memory of a state. Each question in a process of its own: what one
// made the compiler of the runtime expect would cost the next. Usage: bun bench/evaluate.ts [QUESTION]. Prints one JSON
// line a question.

import { encodeSnapshot, restoreSnapshot } from '../core/alerting/durability/snapshot.ts'
import { applyEntry } from '../core/alerting/evaluate/evaluator.ts'
import { FLAP_DEFAULTS } from '../core/alerting/evaluate/flapping.ts'
import { sweepServers, sweepStates } from '../core/alerting/evaluate/sweep.ts'
import { compileRuleSet } from '../core/alerting/rules/compile-rule-set.ts'
import type { RawRule } from '../core/alerting/rules/rule.ts'
import { emptyRuleSet } from '../core/alerting/rules/rule-set.ts'
import { setRules } from '../core/alerting/rules/rule-slots.ts'
import { EvaluationState } from '../core/alerting/state/evaluation-state.ts'
import { EntryReader, encodeEntry } from '../core/bus/entry.ts'
import { limits } from '../core/limits.ts'
import { SampleBatch } from '../core/series/sample-batch.ts'
import { fullSeriesKey, seriesId } from '../core/series/series-key.ts'
import { hostSeries } from './batches.ts'

const SERVERS = 7_000
const SERIES = 150
const ROUNDS = 8
/** Rounds before these, which bind the series and warm the code: a worker runs for months. */
const WARM_ROUNDS = 8
const ROUND_MS = 30_000
const START_MS = 1_767_225_600_000
const COMPANY = '11111111-1111-4111-8111-111111111111'
const settings = {
  noDataAfterMs: limits.noDataAfterMs,
  flapping: FLAP_DEFAULTS,
}
const say = (line: Record<string, unknown>): void => console.log(JSON.stringify({ bench: 'evaluate', ...line }))
const round = (value: number, digits = 1): number => Math.round(value * 10 ** digits) / 10 ** digits
const serverId = (index: number): string => `aaaaaaaa-0000-4000-8000-${index.toString(16).padStart(12, '0')}`
const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

const series = hostSeries(SERIES)
const keys = series.map(({ name, labels }) => fullSeriesKey(name, labels))
const batch = new SampleBatch()
keys.forEach((key, index) => {
  const { lo, hi } = seriesId(key)
  batch.idLo[index] = lo
  batch.idHi[index] = hi
})
batch.seriesCount = SERIES

/**
 * All servers of one round behind each other, as the bus hands them out. Receive time and sample time are the round's.
 */
function groupOf(servers: number, turn: number, hasDefinitions: boolean, pointsASeries = 1): Uint8Array {
  const atMs = START_MS + turn * ROUND_MS
  batch.definitions.length = 0
  if (hasDefinitions) batch.definitions.push(...keys.map((key, seriesIndex) => ({ seriesIndex, key })))
  batch.pointCount = SERIES * pointsASeries
  while (batch.tsMs.length < batch.pointCount) batch.growPoints()
  for (let index = 0; index < SERIES; index++) {
    batch.pointStart[index + 1] = (index + 1) * pointsASeries
    for (let point = 0; point < pointsASeries; point++) {
      const at = index * pointsASeries + point
      batch.tsMs[at] = atMs + (point * ROUND_MS) / pointsASeries
      // Most values are far from a threshold, a few cross it and come back.
      batch.value[at] = index % 50 === 0 && turn % 4 === 1 ? 99 : 20 + ((index + turn) % 40)
    }
  }
  const parts: Uint8Array[] = []
  for (let server = 0; server < servers; server++) {
    const header = { companyId: COMPANY, agentId: serverId(server), receivedAtMs: atMs, seq: turn, intervalSeconds: 30 }
    parts.push(encodeEntry({ ...header, serverId: serverId(server) }, batch))
    batch.definitions.length = 0
  }
  return Buffer.concat(parts)
}

const ruleOf = (metric: string, index: number): RawRule => ({
  id: `11111111-0000-4000-8000-${index.toString(16).padStart(12, '0')}`,
  version: 1,
  sync_version: index + 1,
  company_id: COMPANY,
  name: metric,
  kind: 'threshold',
  scope: { all: true, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] },
  resolved_server_ids: [],
  metric,
  matchers: {},
  operator: '>',
  threshold: 90,
  for_seconds: 300,
  recover_threshold: 80,
  recover_for_seconds: 60,
  severity: 'warning',
  no_data: 'ignore',
  renotify_seconds: 3600,
  enabled: true,
  deleted: false,
})
const everyMetric = [...new Set(series.map(({ name }) => name))]

function evaluationWith(rules: readonly RawRule[]): EvaluationState {
  const evaluation = new EvaluationState(settings)
  setRules(evaluation, compileRuleSet(rules, emptyRuleSet))
  return evaluation
}

/** CPU ms of `ROUNDS` rounds over all servers. */
function measure(evaluation: EvaluationState, servers: number, pointsASeries = 1): number {
  const reader = new EntryReader()
  let position = 0
  let spentMs = 0
  for (let turn = 0; turn < WARM_ROUNDS + ROUNDS; turn++) {
    const group = groupOf(servers, turn, turn === 0, pointsASeries)
    const startMs = cpuMs()
    reader.open(group)
    while (reader.next()) applyEntry(evaluation, reader, ++position)
    if (turn >= WARM_ROUNDS) spentMs += cpuMs() - startMs
    evaluation.drainEvents()
    evaluation.touchedRows.clear()
  }
  return spentMs
}

function unbound(): void {
  const servers = Math.ceil(SERVERS / 4)
  const spentMs = measure(evaluationWith([]), servers)
  const samples = servers * SERIES * ROUNDS
  say({ question: 'a sample no rule is bound to', samples, ns: round((spentMs * 1e6) / samples) })
}

function bound(rulesASeries: number): void {
  const rules = Array.from({ length: rulesASeries }, (_, copy) =>
    everyMetric.map((metric, index) => ruleOf(metric, copy * everyMetric.length + index)),
  ).flat()
  const servers = Math.ceil(SERVERS / 4 / rulesASeries)
  const evaluation = evaluationWith(rules)
  const spentMs = measure(evaluation, servers)
  const pairs = servers * SERIES * ROUNDS * rulesASeries
  say({
    question: `a sample against a bound rule, ${rulesASeries} a series`,
    pairs,
    ns: round((spentMs * 1e6) / pairs),
    millionPerCpuSecond: round(pairs / spentMs / 1000),
  })
}

function backFilled(pointsASeries: number): void {
  const servers = Math.ceil(SERVERS / 4 / pointsASeries)
  const spentMs = measure(evaluationWith(everyMetric.map(ruleOf)), servers, pointsASeries)
  const pairs = servers * SERIES * ROUNDS * pointsASeries
  say({
    question: `a sample against a bound rule, ${pointsASeries} points a series`,
    pairs,
    ns: round((spentMs * 1e6) / pairs),
  })
}

/** The allocator gives freed memory back a moment later. */
async function settleMemory(): Promise<void> {
  Bun.gc(true)
  await Bun.sleep(1500)
  Bun.gc(true)
}

async function snapshots(): Promise<void> {
  // The buffers of the load are made first, so that what grows after is the evaluation alone.
  const groups = [groupOf(SERVERS, 0, true), groupOf(SERVERS, 1, false)]
  await settleMemory()
  const before = process.memoryUsage().rss
  const evaluation = evaluationWith(everyMetric.map(ruleOf))
  const reader = new EntryReader()
  for (const group of groups) {
    reader.open(group)
    while (reader.next()) applyEntry(evaluation, reader, 1)
  }
  await settleMemory()
  const states = evaluation.states.count
  const memoryBytes = process.memoryUsage().rss - before
  let startMs = cpuMs()
  const nowMs = START_MS + ROUND_MS
  const files = Array.from({ length: limits.stateShards }, (_, shard) => encodeSnapshot(evaluation, shard, 1, 1, nowMs))
  const saveMs = cpuMs() - startMs
  const bytes = files.reduce((sum, file) => sum + file.length, 0)
  const restored = evaluationWith(everyMetric.map(ruleOf))
  for (let shard = 0; shard < limits.stateShards; shard++) restored.dictionary.load(shard, keys)
  startMs = cpuMs()
  for (const [shard, file] of files.entries()) restoreSnapshot(restored, file, shard)
  const loadMs = cpuMs() - startMs
  if (restored.states.count !== states) throw new Error('not every state came back')
  startMs = cpuMs()
  sweepServers(evaluation, 0, evaluation.servers.length, 0, nowMs)
  sweepStates(evaluation, 0, evaluation.states.end, nowMs)
  const sweepMs = cpuMs() - startMs
  say({
    question: 'save and load of states',
    states,
    saveSeconds: round(saveMs / 1000, 3),
    loadSeconds: round(loadMs / 1000, 3),
    bytesAState: round(bytes / states),
    memoryBytesAState: round(memoryBytes / states),
    sweepSeconds: round(sweepMs / 1000, 3),
  })
}

const questions: Readonly<Record<string, () => void | Promise<void>>> = {
  snapshots,
  unbound,
  'bound-1': () => bound(1),
  'bound-4': () => bound(4),
  'points-2': () => backFilled(2),
  'points-20': () => backFilled(20),
}
const [, file = '', question] = process.argv
if (question !== undefined) await questions[question]?.()
else
  for (const name of Object.keys(questions)) {
    const child = Bun.spawn(['bun', file, name], { stdout: 'inherit', stderr: 'inherit' })
    if ((await child.exited) !== 0) throw new Error(`${name} failed`)
  }
