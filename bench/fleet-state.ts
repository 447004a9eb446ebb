// What the evaluation of a fleet asks of one process: the memory of 15 million active series of 100,000 servers, and
// how long the others wait while a rule is edited that touches all servers of a company, or a shard is saved. Each
// question in a process of its own; argument: the number of servers.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BusGroup, BusReader } from '../apps/collector/bus/bus.ts'
import { EvaluationStore } from '../apps/collector/store/file-evaluation-store.ts'
import { ShardLoop } from '../apps/collector/worker/evaluation/shard-loop.ts'
import { FLAP_DEFAULTS } from '../core/alerting/evaluate/flapping.ts'
import { packRule } from '../core/alerting/rules/packed-rule.ts'
import type { RawRule, RuleRecord } from '../core/alerting/rules/rule.ts'
import { EntryEncoder } from '../core/bus/entry.ts'
import { limits } from '../core/limits.ts'
import { SampleBatch } from '../core/series/sample-batch.ts'
import { fullSeriesKey, seriesId } from '../core/series/series-key.ts'
import { hostSeries } from './batches.ts'

const SERIES = 150
/** Of these, so many are of this host alone, as checks are. */
const OWN_SERIES = 5
const SERVERS_A_GROUP = 500
const START_MS = 1_767_225_600_000
const ROUND_MS = 30_000
const say = (line: Record<string, unknown>): void => console.log(JSON.stringify({ bench: 'fleet-state', ...line }))
const round = (value: number, digits = 1): number => Math.round(value * 10 ** digits) / 10 ** digits
const uuid = (digit: string, index: number): string =>
  `${digit}0000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`

const shared = hostSeries(SERIES).map(({ name, labels }) => fullSeriesKey(name, labels))
const ownKey = (server: number, own: number): string =>
  `port_up{check="check ${own}",target="host-${server}:${8000 + own}"}`

const ruleOf = (companyId: string, index: number, metric: string, fields: Partial<RawRule>): RawRule => ({
  id: uuid('1', index),
  version: 1,
  sync_version: 1,
  company_id: companyId,
  name: metric,
  kind: 'threshold',
  scope: { all: true, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] },
  resolved_server_ids: [],
  metric,
  matchers: {},
  operator: '>',
  threshold: 90,
  for_seconds: 300,
  recover_threshold: null,
  recover_for_seconds: 0,
  severity: 'warning',
  no_data: 'ignore',
  renotify_seconds: 0,
  enabled: true,
  deleted: false,
  ...fields,
})

/** The default set of a company (document 2), agent_down excepted. */
const defaultRules = (companyId: string, first: number): RawRule[] => [
  ruleOf(companyId, first, 'cpu_usage_percent', { for_seconds: 600, recover_threshold: 80 }),
  ruleOf(companyId, first + 1, 'mem_used_percent', { for_seconds: 600, recover_threshold: 85 }),
  ruleOf(companyId, first + 2, 'disk_used_percent', { threshold: 85 }),
  ruleOf(companyId, first + 3, 'disk_used_percent', { threshold: 95, severity: 'critical' }),
  ruleOf(companyId, first + 4, 'load_per_core_5m', { threshold: 2, for_seconds: 900 }),
  ruleOf(companyId, first + 5, 'cert_days_left', { operator: '<', threshold: 14, for_seconds: 0 }),
  ruleOf(companyId, first + 6, 'cert_days_left', { operator: '<', threshold: 3, for_seconds: 0, severity: 'critical' }),
]

/** Hands out the batches of one round of all servers; keeps when it was asked. */
class FleetBus implements BusReader {
  readonly partitions = [0]
  /** How long it was not looked at, each time: what waits on it waits so long. Making a batch does not count. */
  waitsMs: number[] = []
  private answeredAtMs = performance.now()
  private readonly encoder = new EntryEncoder()
  private readonly batch = new SampleBatch()
  private readonly ids = shared.map(key => seriesId(key))

  constructor(
    private readonly servers: number,
    private readonly companyOf: (server: number) => string,
  ) {}

  private round = 0
  private next = 0
  private position = 0

  startRound(): void {
    this.round++
    this.next = 0
  }

  private entry(server: number): Uint8Array {
    const { batch } = this
    const atMs = START_MS + this.round * ROUND_MS
    batch.clear()
    for (let index = 0; index < SERIES; index++) {
      const isOwn = index >= SERIES - OWN_SERIES
      const key = isOwn ? ownKey(server, index) : shared[index]!
      const { lo, hi } = isOwn ? seriesId(key) : this.ids[index]!
      batch.idLo[index] = lo
      batch.idHi[index] = hi
      batch.pointStart[index + 1] = index + 1
      batch.tsMs[index] = atMs
      batch.value[index] = 1 + ((index + this.round) % 40) / 100
      if (this.round === 1 && (isOwn || server < 64 * 20)) batch.definitions.push({ seriesIndex: index, key })
    }
    batch.seriesCount = SERIES
    batch.pointCount = SERIES
    const serverId = uuid('a', server)
    const header = {
      companyId: this.companyOf(server),
      serverId,
      agentId: serverId,
      seq: this.round,
      intervalSeconds: 30,
    }
    return this.encoder.encode({ ...header, receivedAtMs: atMs }, batch).slice()
  }

  async read(): Promise<BusGroup[]> {
    this.waitsMs.push(performance.now() - this.answeredAtMs)
    const group = this.nextGroup()
    this.answeredAtMs = performance.now()
    return group
  }

  private nextGroup(): BusGroup[] {
    const count = Math.min(SERVERS_A_GROUP, this.servers - this.next)
    if (this.round === 0 || count <= 0) return []
    const bytes = Buffer.concat(Array.from({ length: count }, (_, index) => this.entry(this.next + index)))
    this.next += count
    const group = { partition: 0, firstPosition: this.position + 1, count, bytes: new Uint8Array(bytes) }
    this.position += count
    return [group]
  }

  async lastPosition(): Promise<number> {
    return this.position
  }
  async passed(): Promise<number> {
    return 0
  }
  async pass(): Promise<void> {}
  async close(): Promise<void> {}
}

type Site = {
  readonly loop: ShardLoop
  readonly bus: FleetBus
  readonly clock: { nowMs: number }
  readonly end: () => void
}

function newSite(servers: number, companyOf: (server: number) => string, rules: readonly RuleRecord[]): Site {
  const directory = mkdtempSync(join(tmpdir(), 'fleet-'))
  const store = new EvaluationStore(directory, directory)
  const bus = new FleetBus(servers, companyOf)
  const clock = { nowMs: START_MS }
  const config = {
    shards: Array.from({ length: limits.stateShards }, (_, shard) => shard),
    threadIndex: 0,
    partition: 0,
    pollMs: 50,
    settings: { noDataAfterMs: limits.noDataAfterMs, flapping: FLAP_DEFAULTS },
    snapshotIntervalMs: limits.rulesStateIntervalMs,
    sweepIntervalMs: limits.presenceSweepMs,
    presenceGraceMinMs: 0,
    seriesSweepIntervalMs: limits.seriesSweepMs,
  }
  const loop = new ShardLoop(
    config,
    bus,
    store,
    () => clock.nowMs,
    () => {},
  )
  loop.startRules(rules, 1)
  loop.restore()
  const end = (): void => {
    store.close()
    rmSync(directory, { recursive: true, force: true })
  }
  return { loop, bus, clock, end }
}

async function playRound({ loop, bus, clock }: Site): Promise<void> {
  clock.nowMs += ROUND_MS
  bus.startRound()
  while ((await loop.consume()) > 0);
}

async function settleMemory(): Promise<void> {
  Bun.gc(true)
  await Bun.sleep(1500)
  Bun.gc(true)
}

/** The middle and the longest of the waits since the list was emptied. */
function waitsOf(bus: FleetBus): { medianMs: number; longestMs: number } {
  const waits = bus.waitsMs.sort((a, b) => a - b)
  return { medianMs: round(waits[waits.length >> 1]!), longestMs: round(waits.at(-1)!) }
}

async function memory(servers: number): Promise<void> {
  const companies = Math.ceil(servers / 1000)
  const companyOf = (server: number): string => uuid('c', server % companies)
  await settleMemory()
  const before = process.memoryUsage().rss
  const rules = Array.from({ length: companies }, (_, company) => defaultRules(uuid('c', company), company * 10)).flat()
  const site = newSite(servers, companyOf, rules)
  await playRound(site)
  await playRound(site)
  await settleMemory()
  const bytes = process.memoryUsage().rss - before
  const series = servers * SERIES
  const states = site.loop.evaluation.states.count
  say({
    question: 'memory of the evaluation of a fleet',
    servers,
    series,
    states,
    keys: site.loop.evaluation.dictionary.size,
    gigabytes: round(bytes / 1e9, 2),
    bytesASeries: round(bytes / series),
  })
  const { bus, clock } = site
  await site.loop.turn()
  // Every shard once, as it comes to be saved while batches go on.
  bus.waitsMs = []
  for (let turn = 0; turn < limits.stateShards; turn++) {
    clock.nowMs += limits.rulesStateIntervalMs / limits.stateShards + 1
    await site.loop.turn()
  }
  say({ question: 'every shard saved, all servers swept: evaluation waits', servers, ...waitsOf(bus) })
  site.end()
}

async function ruleEdit(
  servers: number,
  name: string,
  isListed: boolean,
  edit: (rule: RawRule) => RawRule,
): Promise<void> {
  const companyId = uuid('c', 1)
  const ids = Array.from({ length: servers }, (_, server) => uuid('a', server))
  const listed = (rule: RawRule): RawRule => ({
    ...rule,
    scope: { ...rule.scope, all: false },
    resolved_server_ids: ids,
  })
  const rules = defaultRules(companyId, 0).map(rule => (isListed ? listed(rule) : rule))
  // The main thread packs a rule and hands it over; what the shard thread does of that counts.
  const packed = rules.map(packRule)
  const site = newSite(servers, () => companyId, packed)
  await playRound(site)
  await playRound(site)
  await site.loop.sweep(site.clock.nowMs)
  await settleMemory()
  const changed = packRule({ ...edit(rules[2]!), version: 2, sync_version: 2 })
  await site.loop.consume()
  site.bus.waitsMs = []
  const startedAt = performance.now()
  const received = structuredClone(changed)
  const edited = packed.map((rule, index) => (index === 2 ? received : rule))
  await site.loop.setRules(edited, 2)
  const inForceMs = performance.now() - startedAt
  await playRound(site)
  await site.loop.sweep(site.clock.nowMs)
  say({
    question: `a rule edit that touches every server: ${name}: evaluation waits`,
    servers,
    states: site.loop.evaluation.states.count,
    inForceMs: round(inForceMs),
    ...waitsOf(site.bus),
  })
  site.end()
}

const questions: Record<string, (servers: number) => Promise<void>> = {
  memory,
  threshold: servers => ruleEdit(servers, 'threshold', false, rule => ({ ...rule, threshold: 80 })),
  signature: servers => ruleEdit(servers, 'signature', false, rule => ({ ...rule, matchers: { mount: '/' } })),
  scope: servers =>
    ruleEdit(servers, 'one server less in a list of all', true, rule => ({
      ...rule,
      resolved_server_ids: rule.resolved_server_ids.slice(1),
    })),
}

const [first = '100000', question] = process.argv.slice(2)
if (question) await questions[question]!(Number(first))
else
  for (const name of Object.keys(questions))
    Bun.spawnSync([process.execPath, import.meta.path, first, name], { stdout: 'inherit', stderr: 'inherit' })
