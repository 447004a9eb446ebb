// A worker on its own host, beside ingest: bus, state, outbox, tombstones and feeds in files of data_dir.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { busConsumers } from '../../bus/bus.ts'
import { FileBusReader } from '../../bus/file-bus-reader.ts'
import { collectorPaths, type WorkerConfig } from '../../config.ts'
import { EvaluationStore } from '../../store/file-evaluation-store.ts'
import { FileFeedStore } from '../../store/file-feed-store.ts'
import { Tombstones } from '../../store/tombstones.ts'
import { newTurns } from '../../store/write-turns.ts'
import type { ShardStatus } from '../evaluation/shard-messages.ts'
import { sampleHold } from './bus-room.ts'
import type { GroupStore, StorageParts, WorkerStorage } from './worker-storage.ts'

/** How often the bus gets the saved position, and is asked whether it refused a batch. */
const BUS_POLL_MS = 2000
const GROUPS = 'groups'

type FileWorkerStorageOptions = {
  readonly config: WorkerConfig
  readonly log: Logger
  readonly nowMs: () => number
  /** The bus is written in this process, which wakes the threads that read it: they hardly poll. */
  readonly isWoken?: boolean
}

/** Where snapshots, outbox and dead letters are. */
export const alertingDirOf = (config: WorkerConfig): string =>
  config['alerting.rules_dir'] ?? join(config.data_dir, 'alerting')

export class FileWorkerStorage implements WorkerStorage {
  readonly shards: WorkerStorage['shards']
  readonly samplesBus: WorkerStorage['samplesBus']
  readonly outbox: EvaluationStore
  readonly groups: GroupStore
  readonly tombstones: Tombstones
  readonly raiseReload = null
  readonly others = null
  private readonly bus: FileBusReader
  private parts: StorageParts | null = null
  private timer: ReturnType<typeof setInterval> | null = null
  private refusedAtMs = 0

  constructor(private readonly options: FileWorkerStorageOptions) {
    const { config, nowMs, isWoken = false } = options
    const paths = collectorPaths(config.data_dir)
    const dataDir = alertingDirOf(config)
    const snapshotDir = join(dataDir, 'snapshots')
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    this.bus = new FileBusReader(paths.bus, Object.values(busConsumers))
    const turns = newTurns()
    const store = new EvaluationStore(dataDir, snapshotDir, turns)
    this.outbox = store
    this.tombstones = new Tombstones(join(config.data_dir, 'tombstones.json'), nowMs)
    this.shards = { kind: 'file', busPath: paths.bus, dataDir, snapshotDir, turns, isWoken }
    this.samplesBus = { kind: 'file', path: paths.bus, hold: sampleHold(config), isWoken }
    this.groups = {
      leaderToken: () => 'own',
      load: () => store.kept(GROUPS),
      commit: (events, groups, atMs) => {
        store.commitKept(events, GROUPS, groups, atMs)
        return true
      },
      down: null,
      forgetDown: () => {},
    }
  }

  async feedStore(feed: 'rules' | 'silences'): Promise<FileFeedStore> {
    return new FileFeedStore(collectorPaths(this.options.config.data_dir).feeds, feed, this.options.log)
  }

  async lag(statuses: readonly ShardStatus[], samplesLag: number): Promise<number> {
    const last = await this.bus.lastPosition()
    const evaluated = Math.min(...statuses.map(status => status.position), last)
    return Math.max(0, last - evaluated, samplesLag)
  }

  isReady(): boolean {
    return true
  }

  async start(parts: StorageParts): Promise<void> {
    this.parts = parts
    this.refusedAtMs = await this.bus.refusedAtMs()
    this.timer = setInterval(() => {
      this.pollBus().catch(error => this.options.log.error({ err: error }, 'cannot trim the bus'))
    }, BUS_POLL_MS)
  }

  private async pollBus(): Promise<void> {
    await this.passEvaluated()
    const refusedAtMs = await this.bus.refusedAtMs()
    if (refusedAtMs === this.refusedAtMs) return
    this.refusedAtMs = refusedAtMs
    this.options.log.warn('the bus was full and refused batches; agents are not taken for lost for a while')
    this.parts?.shards.overflowed(refusedAtMs)
    this.parts?.samples.release()
  }

  private async passEvaluated(): Promise<void> {
    if (this.parts) await this.bus.pass(busConsumers.evaluation, 0, this.parts.shards.snapshotPosition())
  }

  lost(): void {}

  async stop(): Promise<void> {
    if (this.timer) clearInterval(this.timer)
  }

  async close(): Promise<void> {
    await this.passEvaluated()
    this.outbox.close()
    await this.bus.close()
  }
}
