// Runs a world: the real shard loop on a bus and a store that die with it at any point, a hub that is away at times and
// gets things twice, and beside them the oracle, told of every step once it counts. Returns what differs.
import { ShardLoop } from '../../apps/collector/worker/evaluation/shard-loop.ts'
import type { ServerAttributesUpdate } from '../../apps/collector/worker/evaluation/shard-messages.ts'
import type { AlertEvent } from '../../core/alerting/evaluate/event.ts'
import type { RawSilence } from '../../core/alerting/evaluate/suppression.ts'
import type { RawRule } from '../../core/alerting/rules/rule.ts'
import { encodeEntry } from '../../core/bus/entry.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { sampleBatchOf } from './batch.ts'
import { Fuse, Killed, MemoryBus, MemoryStore, type SimStore } from './durable.ts'
import { HubModel } from './hub-model.ts'
import { LifecycleHub } from './lifecycle-hub.ts'
import { Oracle, type OracleEvent, type OracleStep, type SweepPart } from './oracle.ts'
import { type Plan, type SimAction, type SimBatch, START_MS } from './plan.ts'
import { type Random, randomOf } from './random.ts'

const TICK_MS = 10_000
const TURNS_MAX = 10_000
/** Ingest forgets a series sooner than evaluation does, and announces it again. */
const POLL_MS = 240_000
const INGEST_FORGETS_MS = 120_000

/** A loop that says which part of its work a commit belongs to. */
class WatchedLoop extends ShardLoop {
  onSweep: (atMs: number) => void = () => {}
  onSweepEnd: () => void = () => {}

  onLeft: (serverId: string, agentIds: readonly string[]) => void = () => {}

  protected override serverRemoved(serverId: string, agentIds: readonly string[]): void {
    this.onLeft(serverId, agentIds)
    super.serverRemoved(serverId, agentIds)
  }

  override async sweep(nowMs: number): Promise<void> {
    this.onSweep(nowMs)
    await super.sweep(nowMs)
    this.onSweepEnd()
  }
}

export class World {
  private readonly fuse = new Fuse()
  private readonly bus = new MemoryBus()
  private readonly store: SimStore
  private readonly hub = new HubModel()
  private readonly lifecycle = new LifecycleHub()
  private readonly oracle: Oracle
  private readonly random: Random
  private readonly shards: readonly number[]
  private readonly batches: SimBatch[] = []
  private readonly waiting: Uint8Array[] = []
  /** When ingest last saw each series of each agent. */
  private readonly announced = new Map<string, number>()
  private readonly emitted = new Map<string, AlertEvent>()
  private readonly attributes = new Map<string, ServerAttributesUpdate>()
  private silences: readonly RawSilence[] = []
  /** The set of the hub and its cursor; the one that the process kept. */
  private hubRules: { rules: readonly RawRule[]; since: number } = { rules: [], since: 0 }
  private keptRules: { rules: readonly RawRule[]; since: number } = { rules: [], since: 0 }
  private loop: WatchedLoop | null = null
  private startsAtMs = START_MS
  private nowMs = START_MS
  private isHubUp = true
  /** Steps whose work is done and not yet known to count. */
  private pending: OracleStep[] = []
  private toldUpTo = 0
  /** Every shard is saved up to here. */
  private savedUpTo = 0
  private sweepAtMs: number | null = null
  private sweepPart: SweepPart | null = null
  private coming: RawRule[] | readonly RawRule[] = []

  constructor(
    private readonly plan: Plan,
    storeOf: (fuse: Fuse) => SimStore = fuse => new MemoryStore(fuse),
  ) {
    this.store = storeOf(this.fuse)
    this.oracle = new Oracle(plan.settings)
    const servers = plan.actions.flatMap(({ action }) => (action.kind === 'batch' ? [action.batch.serverId] : []))
    this.shards = [...new Set(servers.map(shardOfServer)), 63].sort((a, b) => a - b)
    this.random = randomOf(plan.seed ^ 0x5bd1e995)
    this.store.onCommit = events => {
      this.flush()
      for (const event of events) this.noteEmitted(event)
    }
    this.store.onRules = () => {
      this.flush()
      this.oracle.take({ kind: 'rules', rules: this.coming })
    }
    this.hub.onApplied = event => this.lifecycle.apply(event)
    this.bus.onRead = () => {
      this.sweepPart = null
    }
  }

  private readonly faults: string[] = []

  private noteEmitted(event: AlertEvent): void {
    const known = this.emitted.get(event.event_id)
    if (known) this.faults.push(`emitted twice: ${JSON.stringify(known)} and ${JSON.stringify(event)}`)
    else this.emitted.set(event.event_id, event)
  }

  private flush(): void {
    for (const step of this.pending) this.oracle.take(step)
    this.pending = []
  }

  async run(): Promise<string[]> {
    const { actions, endMs } = this.plan
    let next = 0
    for (let tickMs = START_MS; tickMs <= endMs; tickMs += TICK_MS) {
      for (; next < actions.length && actions[next]!.atMs <= tickMs; next++) {
        const { action, atMs, isQuiet } = actions[next]!
        this.nowMs = atMs
        await this.startIfDue()
        await this.alive(() => this.apply(action))
        if (!isQuiet) await this.alive(() => this.work())
      }
      this.nowMs = tickMs
      await this.startIfDue()
      await this.alive(() => this.work())
      this.deliver()
    }
    this.fuse.clear()
    this.startsAtMs = Math.min(this.startsAtMs, this.nowMs)
    await this.startIfDue()
    await this.alive(() => this.work())
    this.isHubUp = true
    while (this.store.nextEvents(1).length > 0) this.deliver()
    this.flush()
    return [...this.faults, ...this.differences()]
  }

  /** Does something in the process; a death ends the process. */
  private async alive(act: () => Promise<void>): Promise<void> {
    try {
      await act()
    } catch (error) {
      if (!(error instanceof Killed)) throw error
      this.die(0)
    }
  }

  /** What was done and left no durable trace is done again from the bus, or by the next sweep. */
  private die(downMs: number): void {
    this.loop = null
    this.sweepAtMs = null
    this.toldUpTo -= this.pending.filter(step => step.kind === 'batch').length
    this.pending = []
    this.fuse.clear()
    this.startsAtMs = this.nowMs + (downMs || this.random.between(0, 20) * 1000)
  }

  private async startIfDue(): Promise<void> {
    if (this.loop || this.nowMs < this.startsAtMs) return
    await this.alive(() => this.start())
  }

  private async start(): Promise<void> {
    this.store.reopen()
    const config = {
      shards: this.shards,
      threadIndex: 0,
      partition: 0,
      pollMs: 50,
      settings: this.plan.settings,
      snapshotIntervalMs: this.plan.snapshotIntervalMs,
      sweepIntervalMs: TICK_MS,
      presenceGraceMinMs: 0,
      seriesSweepIntervalMs: POLL_MS,
    }
    const loop = new WatchedLoop(
      config,
      this.bus,
      this.store,
      () => this.nowMs,
      message => {
        if (message.kind === 'snapshot') this.savedUpTo = message.position
      },
    )
    this.watch(loop)
    loop.startRules(this.keptRules.rules, this.keptRules.since)
    loop.setSilences(this.silences)
    this.oracle.take({ kind: 'silences', silences: this.silences })
    const updates = [...this.attributes.values()]
    loop.setAttributes(updates)
    this.faults.push(...loop.restore())
    this.oracle.take({ kind: 'started', atMs: this.nowMs })
    this.loop = loop
    for (const update of updates) this.setAttributes(loop, update)
    await this.syncRules(loop)
  }

  /** Every commit asks for the events first: what was done before it is a step of its own. */
  private watch(loop: WatchedLoop): void {
    const { evaluation } = loop
    const drainEvents = evaluation.drainEvents.bind(evaluation)
    let lastPosition = -1
    evaluation.drainEvents = () => {
      if (this.sweepAtMs !== null && loop.position === lastPosition) {
        this.sweepPart =
          this.sweepPart === null && evaluation.servers.length > 0
            ? 'servers'
            : this.sweepPart === 'servers' && evaluation.states.end > 0
              ? 'states'
              : 'flapping'
        this.pending.push({ kind: 'sweep', part: this.sweepPart, atMs: this.sweepAtMs })
      }
      for (; this.toldUpTo < loop.position; this.toldUpTo++)
        this.pending.push({ kind: 'batch', batch: this.batches[this.toldUpTo]! })
      lastPosition = loop.position
      return drainEvents()
    }
    loop.onLeft = (serverId, [agentId = '']) =>
      this.pending.push({ kind: 'attributes', atMs: this.nowMs, serverId, agentId, attributes: null })
    loop.onSweep = atMs => {
      this.flush()
      this.sweepAtMs = atMs
      this.sweepPart = null
      lastPosition = loop.position
    }
    loop.onSweepEnd = () => {
      this.sweepAtMs = null
      this.flush()
    }
  }

  private async work(): Promise<void> {
    const { loop } = this
    // What came together is one group of the bus: it counts together, or not at all.
    while (this.waiting.length > 0) this.bus.publish(this.waiting.splice(0, this.random.between(1, 4)))
    if (!loop) return
    for (let turns = 0; (await loop.turn()) > 0; turns++)
      if (turns > TURNS_MAX) throw new Error('the loop does not come to rest')
    this.flush()
    for (let tick = 0; tick < 3; tick++) await Promise.resolve()
    if (this.keptRules !== this.hubRules)
      throw new Error('rules do not come in force though nothing is left to evaluate')
  }

  private setAttributes(loop: WatchedLoop, update: ServerAttributesUpdate): void {
    this.flush()
    if (update.attributes) this.pending.push({ kind: 'attributes', atMs: this.nowMs, agentId: '', ...update })
    loop.setAttributes([update])
    this.flush()
  }

  private async syncRules(loop: WatchedLoop): Promise<void> {
    const wanted = this.hubRules
    this.coming = wanted.rules
    let failure: unknown = null
    loop.setRules(wanted.rules, wanted.since).then(
      () => {
        this.keptRules = wanted
      },
      error => {
        failure = error
      },
    )
    for (let tick = 0; tick < 3; tick++) await Promise.resolve()
    if (failure) throw failure
  }

  private async apply(action: SimAction): Promise<void> {
    const { loop } = this
    switch (action.kind) {
      case 'batch':
        this.publish(action.batch)
        return
      case 'rules':
        this.hubRules = { rules: action.rules, since: this.hubRules.since + 1 }
        if (loop) await this.syncRules(loop)
        return
      case 'silences':
        this.silences = action.silences
        this.flush()
        if (loop) this.oracle.take({ kind: 'silences', silences: action.silences })
        loop?.setSilences(action.silences)
        return
      case 'attributes':
        this.attributes.set(action.serverId, updateOf(action))
        if (loop) this.setAttributes(loop, updateOf(action))
        return
      case 'overflow':
        this.flush()
        if (loop) this.oracle.take({ kind: 'overflow', atMs: this.nowMs })
        loop?.overflowed(this.nowMs)
        return
      case 'kill':
        if (action.ops > 0) this.fuse.set(action.ops - 1, action.isAfter)
        else this.die(action.downMs)
        return
      case 'stop':
        if (loop) await this.stopInOrder(loop)
        this.die(action.downMs)
        return
      case 'hub':
        this.isHubUp = action.isUp
    }
  }

  private async stopInOrder(loop: WatchedLoop): Promise<void> {
    while ((await loop.consume()) > 0);
    this.flush()
    loop.snapshot()
  }

  private publish(batch: SimBatch): void {
    const samples = sampleBatchOf(batch.series, key => {
      const announcement = `${batch.serverId} ${batch.agentId} ${key}`
      const seenAtMs = this.announced.get(announcement) ?? Number.NEGATIVE_INFINITY
      this.announced.set(announcement, batch.receivedAtMs)
      return batch.receivedAtMs - seenAtMs >= INGEST_FORGETS_MS
    })
    this.batches.push(batch)
    this.waiting.push(encodeEntry({ ...batch, seq: this.batches.length }, samples))
  }

  /** A few events at a time; sometimes the hub took them and the answer was lost. */
  private deliver(): void {
    if (this.random.chance(0.3)) this.bus.trim(this.savedUpTo)
    if (!this.isHubUp) return
    const count = this.random.between(1, 200)
    for (const text of this.store.nextEvents(count)) this.hub.receive(JSON.parse(text) as AlertEvent)
    if (this.random.chance(0.7)) this.store.removeEvents(count)
  }

  private differences(): string[] {
    const faults = this.hub.clashes.map(clash => `two events of one id: ${clash}`)
    const expected = new Map<string, string[]>()
    for (const event of this.oracle.events)
      expected.set(event.key, [...(expected.get(event.key) ?? []), eventText(event)])
    const found = new Map<string, string[]>()
    const seqs = new Map<string, number>()
    for (const event of this.emitted.values()) {
      const own = oracleEventOf(event)
      found.set(own.key, [...(found.get(own.key) ?? []), eventText(own)])
      if (event.seq <= (seqs.get(own.key) ?? 0)) faults.push(`seq of ${own.key} does not grow at ${event.seq}`)
      seqs.set(own.key, event.seq)
    }
    for (const key of new Set([...expected.keys(), ...found.keys()])) {
      const [wanted, got] = [expected.get(key) ?? [], found.get(key) ?? []]
      const at = wanted.findIndex((text, index) => text !== got[index])
      if (at < 0 && wanted.length === got.length) continue
      const index = at < 0 ? wanted.length : at
      faults.push(
        `${key} event ${index}:\n    oracle ${wanted[index] ?? 'nothing'}\n    worker ${got[index] ?? 'nothing'}`,
      )
    }
    const open = this.hub.open().filter(key => !this.oracle.isOfGoneAgent(key))
    const shouldBeOpen = this.oracle.open().filter(key => !this.oracle.isOfGoneAgent(key))
    if (JSON.stringify(open) !== JSON.stringify(shouldBeOpen))
      faults.push(`open at the hub: ${JSON.stringify(open)}\n    should be: ${JSON.stringify(shouldBeOpen)}`)
    const alerts = this.lifecycle.open().filter(key => !this.oracle.isOfGoneAgent(key))
    if (JSON.stringify(alerts) !== JSON.stringify(shouldBeOpen))
      faults.push(`active alerts: ${JSON.stringify(alerts)}\n    should be: ${JSON.stringify(shouldBeOpen)}`)
    return faults
  }

  /** Everything that was told, in order. */
  get events(): AlertEvent[] {
    return [...this.emitted.values()]
  }

  /** How much happened: for a world in which nothing happens proves nothing. */
  get eventCount(): number {
    return this.emitted.size
  }
}

const updateOf = (action: Extract<SimAction, { kind: 'attributes' }>): ServerAttributesUpdate =>
  action.attributes
    ? { serverId: action.serverId, attributes: action.attributes }
    : { serverId: action.serverId, attributes: null, revokedAgentIds: [action.agentId] }

function eventText({ key: _key, ...event }: OracleEvent): string {
  const fields = Object.entries({ ...event, atMs: event.atMs - START_MS }).sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify(Object.fromEntries(fields))
}

function oracleEventOf(event: AlertEvent): OracleEvent {
  return {
    key: `${event.server_id}|${event.rule_id}|${event.series_key}`,
    type: event.type,
    atMs: Date.parse(event.occurred_at),
    value: event.value,
    threshold: event.threshold,
    severity: event.severity,
    version: event.rule_version,
    suppressed: event.suppressed ? event.suppress_reason : null,
    reason: event.reason ?? null,
    durationSeconds: event.duration_seconds ?? null,
    peak: event.peak_value ?? null,
    transitions: event.transitions ?? null,
    isNoData: event.labels.no_data === 'true',
  }
}
