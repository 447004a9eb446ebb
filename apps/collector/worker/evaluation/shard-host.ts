// The loops of one shard thread: with files a single loop for all its shards; over Redis one loop for each shard, since
// shards come and go with their leases. Messages to the thread go to each of its loops; what loops that start later
// must know is kept here.

import { type RawRules, rulesById } from '../../../../core/alerting/durability/rule-change-record.ts'
import type { SilenceRecord } from '../../../../core/alerting/evaluate/suppression.ts'
import type { RuleRecord } from '../../../../core/alerting/rules/rule.ts'
import { assert } from '../../../../core/assert.ts'
import { shardOfServer } from '../../../../core/bus/shard-of-server.ts'
import { limits } from '../../../../core/limits.ts'
import { isInForce, type Tombstone } from '../../../../core/retention/tombstone.ts'
import { busConsumers } from '../../bus/bus.ts'
import { FileBusReader } from '../../bus/file-bus-reader.ts'
import { RedisBusReader } from '../../bus/redis-bus-reader.ts'
import { EvaluationStore } from '../../store/file-evaluation-store.ts'
import { RecentCommits } from '../../store/redis/commit-again-after-loss.ts'
import { openRedis, RedisAway, whenReady } from '../../store/redis/redis-client.ts'
import { redisKeys } from '../../store/redis/redis-keys.ts'
import { RedisShardStore, RuleRecords, ShardLost } from '../../store/redis/redis-shard-store.ts'
import type { KnownShard } from '../../store/shard-store.ts'
import { ShardLoop } from './shard-loop.ts'
import type {
  FromShardThread,
  ServerAttributesUpdate,
  ShardStorage,
  ShardThreadConfig,
  ToShardThread,
} from './shard-messages.ts'

/** The poll intervals of the bus: with files each loop polls; over Redis one poll serves all loops of the thread. */
const FILE_POLL_MS = 50
/** Where the loop is woken, it reads by itself only in case. */
const WOKEN_POLL_MS = 500
const REDIS_BUS_POLL_MS = 50
/** A loop over Redis is woken when its partition has entries; this interval is for its sweeps. */
const REDIS_POLL_MS = 250

/** What was known of a shard that another worker has by now. */
const ENDED_KEPT_MS = 600_000

type Running = { readonly loop: ShardLoop; readonly finished: Promise<void> }
type Start = Extract<ToShardThread, { kind: 'start' }>

export class ShardHost {
  private readonly running = new Map<number, Running>()
  private rules: RawRules
  private rulesSince: number
  private silences: readonly SilenceRecord[]
  private readonly attributes = new Map<string, ServerAttributesUpdate>()
  private tombstones: readonly Tombstone[]
  private readonly config: ShardThreadConfig
  private readonly redis: RedisShards | null
  private close: () => Promise<void> = async () => {}

  constructor(
    start: Start,
    private readonly tell: (message: FromShardThread) => void,
  ) {
    this.config = start.config
    this.rules = rulesById(start.rules)
    this.rulesSince = start.rulesSince
    this.silences = start.silences
    this.tombstones = start.tombstones
    this.keepAttributes(start.attributes)
    const { storage } = start.config
    if (storage.kind === 'file') {
      this.redis = null
      this.openOnDisk(storage)
    } else {
      this.redis = new RedisShards(storage, this.running, tell)
      this.tell({ kind: 'ready', positions: [], faults: [] })
    }
  }

  get loops(): ShardLoop[] {
    return [...this.running.values()].map(({ loop }) => loop)
  }

  private openOnDisk(storage: ShardStorage & { readonly kind: 'file' }): void {
    const bus = new FileBusReader(storage.busPath, [busConsumers.evaluation])
    const store = new EvaluationStore(storage.dataDir, storage.snapshotDir, storage.turns)
    this.close = async () => {
      store.close()
      await bus.close()
    }
    const pollMs = storage.isWoken ? WOKEN_POLL_MS : FILE_POLL_MS
    const config = { ...this.config, partition: 0, pollMs, seriesSweepIntervalMs: limits.seriesSweepMs }
    const loop = new ShardLoop(config, bus, store, Date.now, this.tell)
    const faults = this.prepare(loop)
    this.forgetPurged(loop)
    this.attributes.clear()
    this.tell({ kind: 'ready', positions: [loop.position], faults })
    const finished = loop.run()
    this.running.set(0, { loop, finished })
    // A thread that cannot evaluate must not look alive: the process ends, and the next one starts from snapshot and
    // journal.
    finished.catch(error => this.fail(error))
  }

  private fail(error: unknown): void {
    const cause = error instanceof Error ? error.message : String(error)
    this.tell({ kind: 'log', level: 'error', message: 'evaluation failed', fields: { cause } })
    // Thrown outside of any promise, so that nothing catches it and the thread ends.
    setTimeout(() => {
      throw error
    })
  }

  private prepare(loop: ShardLoop): string[] {
    loop.startRules([...this.rules.values()], this.rulesSince)
    loop.setSilences(this.silences)
    loop.setAttributes(this.attributesOf(loop))
    loop.setTombstones(this.tombstones)
    return loop.restore()
  }

  private keepAttributes(updates: readonly ServerAttributesUpdate[]): void {
    for (const update of updates) this.attributes.set(update.serverId, update)
  }

  private attributesOf(loop: ShardLoop): ServerAttributesUpdate[] {
    const all = [...this.attributes.values()]
    return this.redis ? all.filter(update => shardOfServer(update.serverId) === loop.partition) : all
  }

  /** Over Redis: starts the evaluation of a shard under its lease, from its durable state. */
  async acquire(shard: number, token: string): Promise<void> {
    if (!this.redis) return
    assert(this.config.shards.includes(shard), 'a thread works on its own shards')
    const opened = await this.redis.open(shard, token)
    if (!opened) return
    const config = {
      ...this.config,
      shards: [shard],
      threadIndex: shard,
      partition: shard,
      pollMs: REDIS_POLL_MS,
      seriesSweepIntervalMs: limits.seriesSweepMs,
    }
    const loop = new ShardLoop(config, this.redis.bus, opened.store, Date.now, opened.tell)
    const faults = this.prepare(loop)
    opened.store.restored()
    const from = loop.position
    if (loop.distrustAfter(opened.head)) this.tell({ kind: 'wentBack', shard, from, to: opened.head })
    // A shard without servers has no snapshot, and the entries that it passed are removed from the bus.
    loop.position = Math.max(loop.position, opened.passed)
    this.forgetPurged(loop)
    if (faults.length > 0) this.tell({ kind: 'ready', positions: [], faults })
    const finished = loop.run()
    this.running.set(shard, { loop, finished })
    finished.catch(error => {
      if (error instanceof ShardLost || error instanceof RedisAway) opened.lost(error)
      else this.fail(error)
    })
  }

  async handOver(shard: number): Promise<void> {
    await this.redis?.handOver(shard)
  }

  revoke(shard: number): void {
    this.redis?.revoke(shard)
  }

  /** Resolves once every loop runs the set with these changes. */
  async setRules(changed: readonly RuleRecord[], removed: readonly string[], since: number): Promise<void> {
    this.rules = rulesById(changed, this.rules)
    for (const ruleId of removed) this.rules.delete(ruleId)
    this.rulesSince = since
    const done: Promise<unknown>[] = []
    for (const { loop, finished } of [...this.running.values()]) {
      // A loop that ends meanwhile is not waited for: the next owner of its shard starts with its own set.
      done.push(Promise.race([loop.setRules([...this.rules.values()], this.rulesSince), finished.catch(() => {})]))
      // Yields between loops, so that the others can evaluate; the next loop gets the newest set.
      await new Promise(resolve => setImmediate(resolve))
    }
    await Promise.all(done)
  }

  setSilences(silences: readonly SilenceRecord[]): void {
    this.silences = silences
    for (const loop of this.loops) loop.setSilences(silences)
  }

  setAttributes(updates: readonly ServerAttributesUpdate[]): void {
    if (!this.redis) {
      for (const loop of this.loops) loop.setAttributes(updates)
      return
    }
    this.keepAttributes(updates)
    for (const loop of this.loops)
      loop.setAttributes(updates.filter(update => shardOfServer(update.serverId) === loop.partition))
  }

  /** Saved state of a tenant whose tombstone has ended is of what came after that. */
  private forgetPurged(loop: ShardLoop): void {
    for (const tombstone of this.tombstones)
      if (isInForce(tombstone, Date.now())) loop.forget(tombstone.companyId, tombstone.serverId)
  }

  setTombstones(tombstones: readonly Tombstone[]): void {
    this.tombstones = tombstones
    this.redis?.forgetRecent()
    for (const loop of this.loops) loop.setTombstones(tombstones)
  }

  /** Ends every loop and closes its store. Over Redis the shards were handed over before. */
  async stop(): Promise<void> {
    for (const loop of this.loops) loop.stop(this.redis === null)
    const finished = [...this.running.values()].map(running => running.finished)
    if (this.redis) await Promise.allSettled(finished)
    else await Promise.all(finished)
    await this.close()
    await this.redis?.close()
  }
}

type Opened = {
  readonly store: RedisShardStore
  readonly passed: number
  /** The last position of the bus. */
  readonly head: number
  readonly tell: (message: FromShardThread) => void
  readonly lost: (error: Error) => void
}

/**
 * The shards of a thread over Redis share one connection and one poll of the bus. When the connection breaks all of
 * them end, and start again from their durable state.
 */
class RedisShards {
  readonly bus: RedisBusReader
  private readonly redis: ReturnType<typeof openRedis>
  private readonly keys: ReturnType<typeof redisKeys>
  private readonly records: RuleRecords
  /** Evaluations that ended because Redis or a lease was lost: it may turn out that Redis has nothing any more. */
  private readonly ended = new Map<number, Running & { readonly endedAtMs: number; readonly keptSinceMs: number }>()
  /** The lease token of each shard. */
  private readonly tokens = new Map<number, string>()
  private readonly stores = new Map<number, RedisShardStore>()
  private readonly recent = new Map<number, RecentCommits>()

  constructor(
    storage: ShardStorage & { readonly kind: 'redis' },
    private readonly running: Map<number, Running>,
    private readonly tell: (message: FromShardThread) => void,
  ) {
    this.keys = redisKeys(storage.prefix)
    this.redis = openRedis({
      address: storage.address,
      name: 'collector-worker-shards',
      onTrouble: cause => this.disconnected(cause),
      onRecovered: () => {},
    })
    this.records = new RuleRecords(this.redis, this.keys)
    this.bus = new RedisBusReader(
      this.redis,
      this.keys,
      REDIS_BUS_POLL_MS,
      shard => this.running.get(shard)?.loop.wake(),
      (shard, from) => tell({ kind: 'wentBack', shard, from, to: 0 }),
    )
  }

  forgetRecent(): void {
    for (const recent of this.recent.values()) recent.clear()
  }

  private recentOf(shard: number): RecentCommits {
    const recent = this.recent.get(shard) ?? new RecentCommits()
    this.recent.set(shard, recent)
    return recent
  }

  /** Reads the durable state of a shard. Null when the lease was lost meanwhile, or the shard cannot be read. */
  async open(shard: number, token: string): Promise<Opened | null> {
    this.tokens.set(shard, token)
    const lost = (error: Error): void => this.end(shard, token, error.message)
    try {
      const { redis, keys } = this
      await whenReady(redis)
      await (this.running.get(shard) ?? this.ended.get(shard))?.finished.catch(() => {})
      const store = await RedisShardStore.open({
        redis,
        keys,
        shard,
        token,
        records: this.records,
        recent: this.recentOf(shard),
      })
      const passed = await this.bus.passed(busConsumers.evaluation, shard)
      // After everything that is durable was read: none of its positions can be higher.
      const head = await this.bus.lastPosition(shard)
      const known = store.isEmpty ? await this.takeKnown(shard) : null
      this.ended.delete(shard)
      if (known === null) store.distrustAfter(head)
      const events = known === null ? store.commitAgain(head) : store.startFrom(known, Date.now())
      if (events > 0) this.tell({ kind: 'committedAgain', shard, events })
      if (this.tokens.get(shard) !== token) return null
      this.stores.set(shard, store)
      return { store, passed, head, lost, tell: message => this.told(shard, store, message) }
    } catch (error) {
      lost(error instanceof Error ? error : new Error(String(error)))
      return null
    }
  }

  /** What this worker knows of a shard that it evaluated last. */
  private async takeKnown(shard: number): Promise<KnownShard | null> {
    const ended = this.ended.get(shard)
    await ended?.finished.catch(() => {})
    const known = ended?.loop.known(shard)
    return ended && known ? { ...known, endedAtMs: ended.endedAtMs } : null
  }

  /** Another worker has had the shard for long. */
  private forgetEnded(): void {
    for (const [shard, { keptSinceMs }] of this.ended)
      if (performance.now() - keptSinceMs > ENDED_KEPT_MS) this.ended.delete(shard)
  }

  /**
   * Handles the messages of a loop over Redis. Events are told of once they are in Redis: who sends them to the hub
   * would not find them, and look again a second later. When a snapshot is durable, its position is passed on the bus.
   */
  private told(shard: number, store: RedisShardStore, message: FromShardThread): void {
    if (message.kind === 'events') {
      // What was not written is told of too: it counts as made.
      store
        .flushed()
        .catch(() => {})
        .then(() => this.tell(message))
      return
    }
    if (message.kind !== 'snapshot') {
      this.tell(message)
      return
    }
    this.forgetEnded()
    store
      .flushed()
      .then(() => this.bus.pass(busConsumers.evaluation, shard, message.position))
      // The loop notices a lost shard by itself; after a failed pass the next snapshot passes more.
      .catch(() => {})
  }

  private end(shard: number, token: string, cause: string): void {
    if (this.tokens.get(shard) !== token) return
    this.revoke(shard)
    this.tell({ kind: 'lost', shard, token, cause })
  }

  private disconnected(cause: string): void {
    for (const [shard, token] of [...this.tokens]) this.end(shard, token, cause)
  }

  async handOver(shard: number): Promise<void> {
    const running = this.running.get(shard)
    this.tokens.delete(shard)
    running?.loop.stop(false)
    // When the last save failed, the shard's durable state is that of the save before.
    await running?.finished.catch(() => {})
    // The lease may have expired and been acquired again meanwhile: the loop under the new lease stays.
    if (this.running.get(shard) !== running) return
    this.running.delete(shard)
    this.stores.delete(shard)
    this.bus.forget(shard)
  }

  /** Ends the evaluation of a shard without a further write. */
  revoke(shard: number): void {
    this.tokens.delete(shard)
    this.stores.get(shard)?.abandon()
    this.stores.delete(shard)
    const running = this.running.get(shard)
    running?.loop.stop(false)
    this.bus.forget(shard)
    if (running) this.ended.set(shard, { ...running, endedAtMs: Date.now(), keptSinceMs: performance.now() })
    this.running.delete(shard)
  }

  async close(): Promise<void> {
    await this.bus.close()
    this.redis.disconnect()
  }
}
