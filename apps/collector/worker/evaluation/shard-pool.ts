// The shard threads as the main thread of a worker sees them: which thread owns which of the 64 shards, the messages to
// all of them, and their answers.

import { availableParallelism } from 'node:os'
import { type RawRules, rulesById } from '../../../../core/alerting/durability/rule-change-record.ts'
import type { SilenceRecord } from '../../../../core/alerting/evaluate/suppression.ts'
import type { RuleRecord } from '../../../../core/alerting/rules/rule.ts'
import { shardOfServer } from '../../../../core/bus/shard-of-server.ts'
import { threadFault } from '../../../../core/error-info.ts'
import { limits } from '../../../../core/limits.ts'
import type { Tombstone } from '../../../../core/retention/tombstone.ts'
import { endThread } from '../../../process/end-thread.ts'
import { CallClient } from '../../thread-calls.ts'
import type {
  FromShardThread,
  ServerAlerting,
  ServerAttributesUpdate,
  ShardCalls,
  ShardNotice,
  ShardStatus,
  ShardThreadConfig,
  ToShardThread,
} from './shard-messages.ts'

/** Evaluation is about a tenth of what a batch costs its collector, and each thread reads the whole bus. */
const CORES_A_SHARD_THREAD = 4

/** How many shard threads suit the host. */
export const shardThreadCount = (): number => Math.ceil(availableParallelism() / CORES_A_SHARD_THREAD)

type ShardPoolOptions = {
  /** Named by the executable's main file: a compiled executable needs each thread's file as an entry of its own. */
  readonly threadUrl: URL | string
  readonly threads: number
  readonly config: Omit<ShardThreadConfig, 'shards' | 'threadIndex'>
  readonly rules: readonly RuleRecord[]
  /** The feed's cursor of the set. */
  readonly rulesSince: number
  readonly silences: readonly SilenceRecord[]
  /** Known before the first entry is evaluated, so that a replay suppresses the same events as before. */
  readonly attributes: readonly ServerAttributesUpdate[]
  /** Tombstones that have not expired: the state of their tenants is dropped before anything is evaluated. */
  readonly tombstones: readonly Tombstone[]
  readonly onMessage: (message: ShardNotice) => void
  /** A thread that dies takes the process with it. */
  readonly onFailure: (error: Error) => void
}

type Thread = { readonly worker: Worker; readonly calls: CallClient<ShardCalls>; snapshotPosition: number }

export class ShardPool {
  private readonly threads: Thread[] = []
  private isStopping = false
  /** The rules that the threads have. */
  private rules: RawRules

  private constructor(private readonly options: ShardPoolOptions) {
    this.rules = rulesById(options.rules)
  }

  /** Starts the threads; resolves once every snapshot is loaded. */
  static async start(options: ShardPoolOptions): Promise<ShardPool> {
    const pool = new ShardPool(options)
    await Promise.all(Array.from({ length: options.threads }, (_, index) => pool.startThread(index)))
    return pool
  }

  private startThread(index: number): Promise<void> {
    const { options } = this
    const shards = Array.from({ length: limits.stateShards }, (_, shard) => shard).filter(
      shard => shard % options.threads === index,
    )
    const worker = new Worker(options.threadUrl)
    const thread: Thread = { worker, calls: new CallClient(worker), snapshotPosition: 0 }
    this.threads[index] = thread
    return new Promise((resolve, reject) => {
      worker.onmessage = (event: MessageEvent<FromShardThread>) => {
        const message = event.data
        if (message.kind === 'ready') {
          thread.snapshotPosition = Math.min(...message.positions)
          options.onMessage(message)
          resolve()
        } else this.receive(thread, message)
      }
      worker.onerror = event => {
        const error = new Error(`evaluation thread ${index} failed: ${threadFault(event.message)}`)
        reject(error)
        if (!this.isStopping) options.onFailure(error)
        thread.calls.failAll(error.message)
      }
      const config = { ...options.config, shards, threadIndex: index }
      const { rules, rulesSince, silences, tombstones } = options
      const attributes = options.attributes.filter(update => shards.includes(shardOfServer(update.serverId)))
      this.send(worker, { kind: 'start', config, rules, rulesSince, silences, attributes, tombstones })
    })
  }

  private receive(thread: Thread, message: FromShardThread): void {
    if (message.kind === 'answer' || message.kind === 'failed') {
      thread.calls.receive(message)
      return
    }
    if (message.kind === 'snapshot') thread.snapshotPosition = message.position
    this.options.onMessage(message)
  }

  private send(worker: Worker, message: ToShardThread): void {
    worker.postMessage(message)
  }

  private callAll<N extends keyof ShardCalls>(name: N, ...args: ShardCalls[N]['args']) {
    return Promise.all(this.threads.map(({ calls }) => calls.call(name, ...args)))
  }

  private tellAll(message: ToShardThread): void {
    for (const { worker } of this.threads) this.send(worker, message)
  }

  private threadOf(shard: number): Thread {
    return this.threads[shard % this.threads.length]!
  }

  private ownerOf(serverId: string): Thread {
    return this.threadOf(shardOfServer(serverId))
  }

  /** The bus has new entries. */
  wake(): void {
    this.tellAll({ kind: 'wake' })
  }

  /**
   * Resolves once every thread runs the new set; a record that is the same object as before is not handed over again.
   */
  async setRules(rules: readonly RuleRecord[], rulesSince: number): Promise<void> {
    const before = this.rules
    this.rules = rulesById(rules)
    const changed = rules.filter(rule => before.get(rule.id) !== rule)
    const removed = [...before.keys()].filter(ruleId => !this.rules.has(ruleId))
    await this.callAll('setRules', changed, removed, rulesSince)
  }

  async setSilences(silences: readonly SilenceRecord[]): Promise<void> {
    await this.callAll('setSilences', silences)
  }

  setAttributes(updates: readonly ServerAttributesUpdate[]): void {
    const byThread = new Map<Thread, ServerAttributesUpdate[]>()
    for (const update of updates) {
      const owner = this.ownerOf(update.serverId)
      const ofThread = byThread.get(owner)
      if (ofThread) ofThread.push(update)
      else byThread.set(owner, [update])
    }
    for (const [thread, ofThread] of byThread) this.send(thread.worker, { kind: 'attributes', updates: ofThread })
  }

  /** A purge: removes all state of the company, or of one of its servers, without events. */
  async forget(companyId: string, serverId: string | null): Promise<void> {
    await this.callAll('forget', companyId, serverId)
  }

  setTombstones(tombstones: readonly Tombstone[]): void {
    this.tellAll({ kind: 'tombstones', tombstones })
  }

  /** The number of the company's servers whose agent is up. */
  async online(companyId: string): Promise<number> {
    const counts = await this.callAll('online', companyId)
    return counts.reduce((sum, count) => sum + count, 0)
  }

  /** Servers that are declared lost, of all shards. */
  async down(): Promise<(readonly [serverId: string, sinceMs: number])[]> {
    return (await this.callAll('down')).flat()
  }

  overflowed(atMs: number): void {
    this.tellAll({ kind: 'overflow', atMs })
  }

  async status(): Promise<ShardStatus[]> {
    return (await this.callAll('status')).flat()
  }

  alerting(serverId: string): Promise<ServerAlerting | null> {
    return this.ownerOf(serverId).calls.call('alerting', serverId)
  }

  /** Every snapshot reflects the bus up to this position. */
  snapshotPosition(): number {
    return Math.min(...this.threads.map(thread => thread.snapshotPosition))
  }

  /** Over Redis: evaluation of a shard starts, in its thread. */
  acquire(shard: number, token: string): void {
    this.send(this.threadOf(shard).worker, { kind: 'acquire', shard, token })
  }

  /** Over Redis: resolves when the shard is saved and its evaluation has ended. */
  async handOver(shard: number): Promise<void> {
    await this.threadOf(shard).calls.call('handOver', shard)
  }

  revoke(shard: number): void {
    this.send(this.threadOf(shard).worker, { kind: 'revoke', shard })
  }

  /** Drains the bus, saves every shard, ends the threads. Rejects, once all have ended, when one could not do that. */
  async stop(): Promise<void> {
    this.isStopping = true
    const stopped = await Promise.allSettled(this.threads.map(({ calls }) => calls.call('stop')))
    for (const { calls } of this.threads) calls.failAll('the evaluation threads have ended')
    await Promise.all(this.threads.map(({ worker }) => endThread(worker)))
    for (const one of stopped) if (one.status === 'rejected') throw one.reason
  }
}
