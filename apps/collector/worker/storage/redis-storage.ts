// The storage of a worker among others: bus, state and outbox in Redis, shards by lease. The leader, which sweeps
// groups and retention, has a separate lease.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import pTimeout from 'p-timeout'
import type { Logger } from 'pino'
import { shardOfServer } from '../../../../core/bus/shard-of-server.ts'
import { limits } from '../../../../core/limits.ts'
import { TombstoneSet } from '../../../../core/retention/tombstone.ts'
import { readHeads } from '../../bus/redis-bus.ts'
import type { RedisAddress } from '../../store/redis/redis-address.ts'
import { RedisShared } from '../../store/redis/redis-announcements.ts'
import type { openRedis } from '../../store/redis/redis-client.ts'
import { readWhenReady, redisAway, redisCause } from '../../store/redis/redis-client.ts'
import { RedisFeedStore } from '../../store/redis/redis-feed-store.ts'
import { LEADER, type RedisKeys } from '../../store/redis/redis-keys.ts'
import { type HeldLease, LEASE_MS, RedisLeases } from '../../store/redis/redis-lease-assignment.ts'
import { RedisOutboxStore } from '../../store/redis/redis-outbox.ts'
import { type Question, RedisQuestions } from '../../store/redis/redis-questions.ts'
import type { ServerAlerting, ShardStatus } from '../evaluation/shard-messages.ts'
import { isValuesOfWorker, type SampleHold } from '../samples/samples-messages.ts'
import { answerServerQuestion } from '../samples/samples-of-all.ts'
import { LeaseFollower } from './lease-follower.ts'
import type { GroupStore, OtherWorkers, StorageParts, WorkerCounts, WorkerStorage } from './worker-storage.ts'

const POLL_MS = 1_000
const LEASE_RENEW_MS = 1_000
/** Another worker pulls within two seconds by the counter, whether it answers or not. */
const RELOAD_WAIT_MS = 2_000
/** The hub waits three seconds for an answer. */
const SAMPLES_WAIT_MS = 2_000
/** A stop waits so long until what was held is stored; what is not comes from the bus again. */
const FLUSH_MAX_MS = 3_000
const GROUPS = 'groups'

type RedisWorkerStorageOptions = {
  readonly redis: ReturnType<typeof openRedis>
  readonly keys: RedisKeys
  readonly address: RedisAddress
  /** Replicas that must have an event before the hub is told. */
  readonly replicas: number
  readonly hold: SampleHold
  readonly log: Logger
  readonly nowMs: () => number
}

const isAlerting = (value: unknown): value is ServerAlerting =>
  typeof value === 'object' && value !== null && 'companyId' in value && 'presence' in value && 'series' in value

const isCounts = (value: unknown): value is WorkerCounts =>
  typeof value === 'object' &&
  value !== null &&
  'retention' in value &&
  ['online', 'pending', 'firing', 'noData', 'flapping'].every(
    name => name in value && typeof Reflect.get(value, name) === 'number',
  )

export class RedisWorkerStorage implements WorkerStorage {
  readonly shards: WorkerStorage['shards']
  readonly samplesBus: WorkerStorage['samplesBus']
  readonly outbox: RedisOutboxStore
  readonly groups: GroupStore
  readonly tombstones: RedisShared
  readonly others: OtherWorkers
  private readonly leases: LeaseFollower
  private readonly questions: RedisQuestions
  private parts: StorageParts | null = null
  private timer: ReturnType<typeof setInterval> | null = null
  private polling: Promise<void> = Promise.resolve()
  private isLeasing = false
  private toldShards = 0
  /** Shards that are being handed over to another worker. */
  private readonly leaving = new Set<number>()
  /** New shards whose outbox may have events of tenants that were purged while nobody had the shard. */
  private readonly unpurged = new Set<number>()

  /** Resolves once the tombstones in force are read. */
  static async open(options: RedisWorkerStorageOptions): Promise<RedisWorkerStorage> {
    const storage = new RedisWorkerStorage(options)
    await readWhenReady(options.redis, () => storage.tombstones.poll())
    return storage
  }

  private constructor(private readonly options: RedisWorkerStorageOptions) {
    const { redis, keys, address, replicas, hold, nowMs, log } = options
    const owner = `${hostname()}:${process.pid}:${randomUUID()}`
    this.shards = { kind: 'redis', address, prefix: keys.prefix }
    this.samplesBus = { kind: 'redis', address, prefix: keys.prefix, hold }
    this.outbox = new RedisOutboxStore(
      redis,
      keys,
      () => this.ownedShards(),
      replicas,
      shard => !this.unpurged.has(shard),
    )
    this.tombstones = new RedisShared(redis, keys, nowMs)
    this.groups = {
      leaderToken: () => this.leases.tokenOf(LEADER),
      load: () => this.outbox.kept(GROUPS),
      commit: async (events, groups, atMs) => {
        const token = this.leases.tokenOf(LEADER)
        return token !== null && (await this.outbox.commitKept(token, events, GROUPS, groups, atMs))
      },
      down: () => this.outbox.downServers(),
      forgetDown: serverIds => this.outbox.forgetDown(serverIds),
    }
    this.leases = new LeaseFollower({
      store: new RedisLeases(redis, keys, owner, LEASE_MS, () =>
        log.error(
          'Redis has lost what it had, or the newest of it: alerts that no running worker knows of stay open at the hub until somebody closes them there',
        ),
      ),
      periodMs: LEASE_RENEW_MS,
      shardCount: limits.stateShards,
      onAcquired: held => this.acquired(held),
      onRevoked: lease => this.gone(lease),
      handOver: lease => this.handOver(lease),
      onError: (what, error) => log.error({ cause: redisCause(error) }, what),
      onBesideFormer: () =>
        log.warn(
          'a worker of a former version is running: this one evaluates and stores nothing until the last has ended',
        ),
    })
    this.questions = new RedisQuestions(
      redis,
      keys,
      owner,
      question => this.answer(question),
      cause => log.warn({ cause }, 'cannot answer another worker'),
    )
    this.others = {
      isOwn: serverId => this.ownedShards().includes(shardOfServer(serverId)),
      ownShards: () => this.ownedShards().length,
      samples: async asked => (await this.ask({ kind: 'samples', asked }, 'first', SAMPLES_WAIT_MS))[0],
      companyValues: async (companyId, metric, sinceMs) => {
        const asked = { kind: 'companyValues', companyId, metric, sinceMs } as const
        return (await this.ask(asked, 'all', SAMPLES_WAIT_MS)).filter(isValuesOfWorker)
      },
      alerting: async serverId => {
        const [answer] = await this.ask({ kind: 'alerting', serverId }, 'first')
        return isAlerting(answer) ? answer : null
      },
      online: async companyId => {
        const answers = await this.ask({ kind: 'online', companyId }, 'all')
        return answers.reduce((sum: number, count) => sum + (typeof count === 'number' ? count : 0), 0)
      },
      counts: async () => (await this.ask({ kind: 'counts' }, 'all')).filter(isCounts),
      reload: async feed => {
        await this.ask({ kind: 'reload', feed }, 'all', RELOAD_WAIT_MS)
      },
    }
  }

  /** Throws RedisAway while Redis does not answer. */
  private ask(...asked: Parameters<RedisQuestions['ask']>): Promise<unknown[]> {
    return this.questions.ask(...asked).catch(redisAway)
  }

  private ownedShards(): number[] {
    return this.leases.current.map(({ lease }) => lease).filter(lease => lease !== LEADER && !this.leaving.has(lease))
  }

  private async answer(question: Question): Promise<unknown> {
    if (!this.parts) return null
    const { shards, samples, counts, onReload } = this.parts
    switch (question.kind) {
      case 'counts':
        return counts()
      case 'alerting':
        return shards.alerting(question.serverId)
      case 'online':
        return shards.online(question.companyId)
      case 'samples':
        return this.others.isOwn(question.asked.serverId) ? answerServerQuestion(samples, question.asked) : null
      case 'companyValues': {
        const { companyId, metric, sinceMs } = question
        return {
          shards: this.others.ownShards(),
          values: await samples.companyValues(companyId, metric, sinceMs, true),
        }
      }
      case 'reload':
        await onReload(question.feed)
        return true
    }
  }

  feedStore(feed: 'rules' | 'silences'): Promise<RedisFeedStore> {
    return RedisFeedStore.open(this.options.redis, this.options.keys, feed)
  }

  async lag(statuses: readonly ShardStatus[], samplesLag: number): Promise<number> {
    const heads = await readHeads(this.options.redis, this.options.keys).catch(redisAway)
    const unevaluated = statuses.reduce(
      (sum, { partition, position }) => sum + Math.max(0, heads[partition]! - position),
      0,
    )
    return Math.max(unevaluated, samplesLag)
  }

  raiseReload(feed: 'rules' | 'silences' | 'checks' | 'settings'): Promise<void> {
    return this.tombstones.raiseReload(feed)
  }

  isReady(): boolean {
    return this.options.redis.status === 'ready'
  }

  async start(parts: StorageParts): Promise<void> {
    this.parts = parts
    this.timer = setInterval(() => void this.pollNow(), POLL_MS)
    await this.pollNow()
  }

  /**
   * Resolves once everything that other processes had done by now is in force here; while Redis is unreachable, without
   * that.
   */
  pollNow(): Promise<void> {
    this.polling = this.polling.then(() => this.poll())
    return this.polling
  }

  /** Applies changes of other processes. While Redis is unreachable its connection logs that. */
  private async poll(): Promise<void> {
    const { parts } = this
    if (!parts) return
    const shards = this.ownedShards().length
    if (shards !== this.toldShards) {
      const isLeader = this.groups.leaderToken() !== null
      this.options.log.info({ shards, duties: isLeader }, 'the shares of the workers changed')
      this.toldShards = shards
    }
    try {
      await this.takeNews(parts)
      await this.purgeNewShards()
      if (this.isLeasing || !parts.hasRules()) return
      // No shard is leased before the rules are known: without rules every open alert would close as rule_removed.
      this.isLeasing = true
      this.leases.start()
    } catch (error) {
      this.options.log.debug({ cause: redisCause(error) }, 'cannot poll for news of other processes')
    }
  }

  private async takeNews(parts: StorageParts): Promise<void> {
    const [{ reloads, tombstones, overflowAtMs }] = await Promise.all([this.tombstones.poll(), this.outbox.measure()])
    const reloading = Promise.all(reloads.map(feed => parts.onReload(feed)))
    // Before this worker has a shard, it waits for requested pulls, so that they are in force when it gets one. After
    // that, changes of other processes do not wait for the hub.
    if (!this.isLeasing) await reloading
    else reloading.catch(error => this.options.log.error({ err: error }, 'cannot reload a feed'))
    if (tombstones.length > 0) await parts.onTombstones(tombstones)
    if (overflowAtMs === null) return
    parts.shards.overflowed(overflowAtMs)
    parts.samples.release()
    this.options.log.warn('the bus was full and refused batches; agents are not taken for lost for a while')
  }

  /** What purges left in the outboxes of shards that nobody had; tombstones are those of now. */
  private async purgeNewShards(): Promise<void> {
    const shards = [...this.unpurged]
    if (shards.length === 0) return
    for (const shard of shards) {
      const { nowMs } = this.options
      await this.outbox.removePurged(shard, new TombstoneSet(this.tombstones.kept()), nowMs())
      this.unpurged.delete(shard)
    }
  }

  private acquired({ lease, token }: HeldLease): void {
    this.leaving.delete(lease)
    if (lease !== LEADER) {
      if (this.unpurged.size === 0) void this.pollNow()
      this.unpurged.add(lease)
      this.parts?.shards.acquire(lease, token)
    }
    this.shareOut()
  }

  private gone(lease: number): void {
    this.unpurged.delete(lease)
    if (lease !== LEADER) this.parts?.shards.revoke(lease)
    this.shareOut()
  }

  private async handOver(lease: number): Promise<void> {
    this.leaving.add(lease)
    this.unpurged.delete(lease)
    this.shareOut()
    if (lease !== LEADER) await this.parts?.shards.handOver(lease)
  }

  /** The worker that evaluates a shard also stores its samples. */
  private shareOut(): void {
    const isLeader = this.leases.tokenOf(LEADER) !== null && !this.leaving.has(LEADER)
    this.parts?.samples.setPartitions(this.ownedShards(), isLeader)
  }

  lost(shard: number, token: string, cause: string): void {
    this.options.log.warn({ shard, cause }, 'evaluation of a shard ended; it starts again from what is saved')
    this.leases.drop(shard, token)
  }

  async stop(): Promise<void> {
    if (this.timer) clearInterval(this.timer)
    await this.polling
    // The next owner of each shard would read and store all of it a second time.
    if (this.parts)
      await pTimeout(this.parts.samples.flush(), { milliseconds: FLUSH_MAX_MS, fallback: () => {} }).catch(() => {})
    if (this.isLeasing) await this.leases.stop()
    this.parts?.samples.setPartitions([], false)
  }

  async close(): Promise<void> {
    this.questions.close()
    this.options.redis.disconnect()
  }
}
