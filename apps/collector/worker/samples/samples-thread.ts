// The thread that owns the samples store: it consumes the bus, computes the rollups and answers the main thread's
// calls. One a process, since there is one embedded engine a process. Entry file of its own; only main.ts files name
// it.

import { setMaxListeners } from 'node:events'
import pTimeout from 'p-timeout'
import { backoffMs } from '../../../../core/backoff.ts'
import { shardOfServer } from '../../../../core/bus/shard-of-server.ts'
import { limits } from '../../../../core/limits.ts'
import type { RangePlan } from '../../../../core/query/query-plan.ts'
import type { BufferedSource } from '../../../../core/samples/latest/buffered-points.ts'
import { CellStream } from '../../../../core/samples/rollup/cell-stream.ts'
import { cellMs } from '../../../../core/samples/rollup/cell-width.ts'
import { stepBack } from '../../../process/thread-priority.ts'
import { type ClickHouse, causeOf, openClickHouse } from '../../store/clickhouse/clickhouse.ts'
import { companiesWithSamples, rememberRetention } from '../../store/clickhouse/retention-memory.ts'
import {
  type ExpiredDays,
  type Expiry,
  expireSamples,
  purgeSamples,
  reclaim,
} from '../../store/clickhouse/samples-delete.ts'
import { SamplesReader } from '../../store/clickhouse/samples-query.ts'
import { newestStored } from '../../store/clickhouse/samples-rollups.ts'
import { migrateSamples, SamplesStoreRefused } from '../../store/clickhouse/samples-schema.ts'
import { CallServer, type Handlers } from '../../thread-calls.ts'
import { LateCellTracker } from './late-cell-tracker.ts'
import { LatestValues } from './latest-values.ts'
import { RollupSchedule } from './rollup-schedule.ts'
import { SampleWriter } from './sample-writer.ts'
import { openSamplesBus } from './samples-bus.ts'
import type {
  FromSamplesThread,
  SamplesCalls,
  SamplesStats,
  SamplesThreadOptions,
  ToSamplesThread,
} from './samples-messages.ts'

declare const self: Worker
setMaxListeners(0)

const RETRY = { startMs: 1_000, capMs: 30_000 }
const PROBE_PERIOD_MS = 5_000
const PROBE_MAX_MS = 2_000
const READING_POLL_MS = 100
/** A purge waits so long for the block on its way; then the store is down, and the purge is to be called for again. */
const DRAIN_MAX_MS = 5_000
/** A stop waits so long for what is buffered: of a large fleet it takes half a minute, and stays on the bus. */
const STOP_DRAIN_MAX_MS = 7_000
const say = (message: FromSamplesThread): void => self.postMessage(message)

class SamplesThread {
  private readonly store: ClickHouse
  private readonly bus: ReturnType<typeof openSamplesBus>
  private readonly writer: SampleWriter
  private readonly reader: SamplesReader
  private readonly latest: LatestValues
  private readonly rollups: RollupSchedule
  private readonly calls: CallServer<SamplesCalls>
  private readonly stream = new CellStream()
  private readonly lateCellTracker = new LateCellTracker()
  private running: Promise<void> = Promise.resolve()
  private isMigrated = false
  private probe: { readonly atMs: number; readonly isUp: boolean } = { atMs: 0, isUp: false }
  private isStopped = false
  /** Whether rollups are this worker's to compute. */
  private isLeader: boolean
  private lastError: string | null = null

  constructor(options: SamplesThreadOptions) {
    const { clickhouse: url, database, cluster = null } = options
    this.store = openClickHouse({ url, database, cluster })
    this.bus = openSamplesBus(options, {
      onNews: () => this.writer.wake(),
      onTrouble: cause => this.trouble('cannot read the bus', new Error(cause)),
      // Redis may have been started anew, with fewer entries than were read.
      onRecovered: () => this.writer.readAnew(),
    })
    const { reader: busReader, isOnlyWorker, hold } = this.bus
    this.isLeader = isOnlyWorker
    // Of several workers one computes the rollups, from raw samples: it does not see those of the others as they pass.
    const cells = isOnlyWorker ? { stream: this.stream, lateCellTracker: this.lateCellTracker } : {}
    const nowMs = () => Date.now()
    const buffered: BufferedSource = (companyId, serverId) => this.writer.bufferedOf(companyId, serverId)
    this.reader = new SamplesReader(this.store, nowMs, buffered, (companyId, serverId) =>
      this.writer.pendingDefinitions(companyId, serverId),
    )
    this.latest = new LatestValues({
      reader: this.reader,
      nowMs,
      buffered,
      bufferedCompany: {
        serversOf: companyId => this.writer.bufferedCompany.serversOf(companyId),
        eachBuffered: (...args) => this.writer.bufferedCompany.eachBuffered(...args),
        unstoredKeys: (...args) => this.writer.bufferedCompany.unstoredKeys(...args),
      },
      isOnlyWorker,
      isOwn: serverId => isOnlyWorker || busReader.partitions.includes(shardOfServer(serverId)),
      onTrouble: error => this.trouble('cannot read the series', error),
    })
    this.writer = new SampleWriter({
      store: this.store,
      bus: busReader,
      tokenPrefix: this.bus.tokenPrefix,
      nowMs,
      onInserted: (rows, seconds) => {
        this.lastError = null
        this.latest.blockStored()
        say({ kind: 'inserted', rows, seconds })
      },
      onSeries: definitions => this.latest.learn(definitions),
      onDefinitions: () => this.reader.forgetDefinitions(),
      onStored: server => this.latest.take(server),
      askRetention: companyIds => say({ kind: 'retentionWanted', companyIds }),
      onTrouble: error => this.trouble('cannot store samples', error),
      ...cells,
      computedBeforeMs: () => this.rollups.claimedBeforeMs,
      ...(isOnlyWorker ? {} : { learnComputed: () => this.rollups.learnClaim() }),
      ...(this.bus.readTombstones ? { readTombstones: this.bus.readTombstones } : {}),
      hold,
      pollMs: this.bus.pollMs,
    })
    this.rollups = new RollupSchedule({
      store: this.store,
      nowMs,
      isLeader: () => this.isLeader,
      arrivedBeforeMs: this.bus.arrivedBeforeMs ?? (() => this.writer.arrivedBeforeMs()),
      isShared: !isOnlyWorker,
      ...cells,
      onTrouble: error => this.trouble('cannot compute rollups', error),
    })
    this.calls = new CallServer(self, this.handlers(), causeOf)
  }

  private trouble(what: string, error: unknown): void {
    const message = `${what}: ${causeOf(error)}`
    this.lastError = message
    this.probe = { atMs: 0, isUp: false }
    say({ kind: 'trouble', message })
  }

  /** Whether the store has its schema and answers; asked again after 5 s, or when something failed. */
  private async isReady(): Promise<boolean> {
    if (!this.isMigrated) return false
    if (Date.now() - this.probe.atMs > PROBE_PERIOD_MS) {
      const answer = this.store.rows('SELECT 1').then(() => undefined)
      const isUp = await pTimeout(answer, { milliseconds: PROBE_MAX_MS, message: 'no answer' }).then(
        () => true,
        () => false,
      )
      this.probe = { atMs: Date.now(), isUp }
    }
    return this.probe.isUp
  }

  /** Brings the schema up, for as long as it takes; throws only where waiting cannot help. */
  async start(isEmbedded: boolean): Promise<void> {
    for (let failures = 1; !this.isStopped; failures++) {
      try {
        await migrateSamples(this.store, this.bus.exclusively)
        this.isMigrated = true
        this.lastError = null
        // What is late is known only once it is known how far the rollups are.
        await this.rollups.start()
        this.writer.continueAfter((await newestStored(this.store)).seq)
        if (this.bus.isOnlyWorker) this.latest.start()
        this.running = this.writer.run()
        return
      } catch (error) {
        if (error instanceof SamplesStoreRefused || isEmbedded) throw error
        this.trouble('cannot reach the samples store', error)
        await Bun.sleep(backoffMs(RETRY, failures))
      }
    }
  }

  receive(message: ToSamplesThread): void {
    switch (message.kind) {
      case 'wake':
        this.writer.wake()
        return
      case 'release':
        this.writer.release()
        return
      case 'tombstones':
        this.writer.setTombstones(message.tombstones)
        return
      case 'partitions':
        this.isLeader = message.isLeader
        this.setPartitions(message.partitions)
        return
      case 'retention':
        this.writer.setRetentionDays(new Map(message.retentionDays))
        return
      case 'call':
        this.calls.receive(message)
        return
      case 'start':
        return
    }
  }

  private setPartitions(partitions: readonly number[]): void {
    // The same ones again, as when only the leader has changed, must not end what was begun for them.
    if (String(partitions) === String(this.bus.reader.partitions)) return
    this.latest.restart()
    this.bus.setPartitions(partitions)
    this.writer.forgetPartitions(partitions)
    this.writer.wake()
    void this.learnLatest(partitions)
  }

  /**
   * Series are learnt from the store once it is known where this worker goes on: definitions that stand before that are
   * stored, and those behind it come over the bus.
   */
  private async learnLatest(partitions: readonly number[]): Promise<void> {
    while (this.bus.reader.partitions === partitions && !this.writer.isReading(partitions)) {
      if (this.isStopped) return
      await Bun.sleep(READING_POLL_MS)
    }
    if (this.bus.reader.partitions === partitions && partitions.length > 0) this.latest.start()
  }

  private handlers(): Handlers<SamplesCalls> {
    const { store } = this
    return {
      querySeries: plan => this.reader.querySeries(plan, this.rightBeforeMs(plan)),
      queryMetrics: (plan, metrics) =>
        this.reader.queryMetrics(plan, metrics, this.rightBeforeMs(plan), limits.queryMetricsPointsMax),
      seriesKeys: (...args) => this.reader.keysOfServer(...args),
      latestValues: (...args) => this.latest.read(...args),
      companyValues: (...args) => this.latest.readCompany(...args),
      purge: (companyId, serverId) => this.purge(companyId, serverId),
      expire: (expiries, isDryRun) => this.expire(expiries, isDryRun),
      reclaim: () => this.rollups.exclusively(() => reclaim(store)).then(() => null),
      companies: () => companiesWithSamples(store),
      rememberRetention: (seen, nowMs) => rememberRetention(store, seen, nowMs),
      runRollups: nowMs => this.rollups.runNow(nowMs).then(() => null),
      stats: () => this.stats(),
      flush: () => this.writer.flush().then(() => null),
      stop: () => this.stop().then(() => null),
    }
  }

  /** Up to where the cells of a server are computed and nothing came for them since. */
  private rightBeforeMs({ companyId, serverId, source }: RangePlan): number {
    if (source === 'raw') return 0
    const lateMs = Math.min(
      this.lateCellTracker.oldestOf({ companyId, serverId }),
      this.writer.oldestCellOf(companyId, serverId),
    )
    const width = cellMs[source]
    return Math.min(this.rollups.complete[source], Math.floor(lateMs / width) * width)
  }

  /**
   * Blocks on their way are let in first, so that the delete finds them; a pass of the rollups does not run meanwhile.
   */
  private async purge(companyId: string, serverId: string | null): Promise<null> {
    await pTimeout(this.writer.drained(), {
      milliseconds: DRAIN_MAX_MS,
      message: 'the samples store does not take samples just now',
    })
    await this.rollups.exclusively(async () => {
      // Once more afterwards: what was stored meanwhile may be deleted or not.
      this.stream.invalidateAll()
      this.latest.forget(companyId, serverId)
      try {
        await purgeSamples(this.store, companyId, serverId)
      } finally {
        this.stream.invalidateAll()
        this.latest.forget(companyId, serverId)
      }
    })
    this.reader.forgetDefinitions()
    return null
  }

  private expire(expiries: readonly Expiry[], isDryRun: boolean): Promise<ExpiredDays[]> {
    return this.rollups.exclusively(() => {
      if (!isDryRun) for (const { beforeMs } of expiries) this.stream.distrustBefore(beforeMs)
      return expireSamples(this.store, expiries, isDryRun)
    })
  }

  private async stats(): Promise<SamplesStats> {
    const { writer } = this
    return {
      isReady: await this.isReady(),
      lastError: this.lastError,
      rowsStored: writer.rowsStored,
      blocksStored: writer.blocksStored,
      insertErrors: writer.insertErrors,
      bufferRows: writer.bufferRows,
      droppedPurged: writer.dropped.purged,
      droppedRetentionLocked: writer.dropped.retentionLocked,
      // A bus that is away says so itself; the store may still answer.
      lagEntries: await writer.lagEntries().catch(() => 0),
      rollupErrors: this.rollups.errors,
      completeBeforeMs: this.rollups.complete,
    }
  }

  /**
   * Drains the bus to the store when the store answers and no other worker can, for some seconds, then closes both.
   * What is left stays on the bus.
   */
  private async stop(): Promise<void> {
    this.isStopped = true
    this.latest.stop()
    await this.rollups.stop()
    if (this.bus.isOnlyWorker && this.isMigrated && this.lastError === null)
      await pTimeout(this.writer.flush(), { milliseconds: STOP_DRAIN_MAX_MS, fallback: () => {} })
    this.writer.abort()
    await this.running
    await this.bus.close()
    await this.store.close()
  }
}

let thread: SamplesThread | null = null

self.onmessage = (event: MessageEvent<ToSamplesThread>) => {
  const message = event.data
  if (message.kind !== 'start') {
    thread?.receive(message)
    return
  }
  const { options } = message
  const isEmbedded = options.clickhouse.startsWith('embedded:')
  // Before the engine starts its threads. Storing may wait; agents and alerts may not.
  stepBack()
  try {
    thread = new SamplesThread(options)
    thread.receive({ kind: 'tombstones', tombstones: options.tombstones ?? [] })
  } catch (error) {
    say({ kind: 'fatal', message: causeOf(error) })
    return
  }
  // A server that does not answer yet is no reason not to start: the bus holds what comes in.
  if (!isEmbedded) say({ kind: 'started' })
  thread.start(isEmbedded).then(
    () => say({ kind: 'started' }),
    error => say({ kind: 'fatal', message: causeOf(error) }),
  )
}
