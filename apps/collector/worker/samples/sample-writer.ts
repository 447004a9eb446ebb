// Moves samples from the bus to the samples store: at least once, and in effect once, because a point is unique by
// series and time: whoever reads takes the one of the newer block (core/samples/latest/series-points.ts; for cells
// core/samples/rollup/raw-cells.ts). The writer passes an entry on the bus only when its samples, the definitions of
// its series and its late cells are stored. Samples are buffered for minutes, so that each row gets many points of a
// series. Queries read buffered points from here; after a crash they are read from the bus again, by whichever worker
// reads it then. While the store is down the writer reads no more than one block: the bus is the buffer, and it is
// bounded (decisions G-135 and G-142).

import { assert } from '../../../../core/assert.ts'
import { backoffMs } from '../../../../core/backoff.ts'
import { EntryReader } from '../../../../core/bus/entry.ts'
import { limits } from '../../../../core/limits.ts'
import { writeLockedBeforeMs } from '../../../../core/retention/readable-and-deletable.ts'
import { mergeTombstones, noTombstones, type Tombstone, TombstoneSet } from '../../../../core/retention/tombstone.ts'
import type { LateCell } from '../../../../core/samples/block/late-block.ts'
import { NativeWriter } from '../../../../core/samples/block/native-writer.ts'
import {
  BlockScratch,
  type BufferedPoint,
  type DroppedRows,
  type SampleBlock,
  type ServerPoints,
} from '../../../../core/samples/block/sample-block.ts'
import type { SeriesDefinition } from '../../../../core/samples/block/series-definitions.ts'
import type { BufferedCompany } from '../../../../core/samples/latest/buffered-points.ts'
import type { CellStream } from '../../../../core/samples/rollup/cell-stream.ts'
import { CELL_5M_MS } from '../../../../core/samples/rollup/cell-width.ts'
import { type BusGroup, type BusReader, busConsumers } from '../../bus/bus.ts'
import type { ClickHouse } from '../../store/clickhouse/clickhouse.ts'
import { insertLateCells } from '../../store/clickhouse/samples-rollups.ts'
import { runYielding, TimeSlice } from '../../yield-if-due.ts'
import type { LateCellTracker } from './late-cell-tracker.ts'
import { BLOCK_BYTES, newPendingBlock, type PendingBlock } from './pending-block.ts'
import { PendingDefinitions } from './pending-definitions.ts'
import { areSamplesStored, type Hold } from './when-samples-are-stored.ts'

/** The shortest retention of any plan. */
const RETENTION_MIN_MS = 86_400_000
/** How long storing waits for the hub's answer about retention. Samples do not wait for a silent hub. */
const RETENTION_WAIT_MS = 2_000
const POLL_MS = 100
const REST_MIN_MS = 50
const READ_BYTES_MAX = 2 * 1024 * 1024
/** What was purged until so long ago is known without asking. */
const PURGES_KNOWN_MS = 2_000
const BACKOFF = { startMs: 1_000, capMs: 30_000 }

type SampleWriterOptions = {
  readonly store: ClickHouse
  readonly bus: BusReader
  readonly nowMs: () => number
  readonly onInserted: (rows: number, seconds: number) => void
  /** Called with definitions whose keys may be new, before they and their samples are stored. */
  readonly onSeries?: (definitions: readonly SeriesDefinition[]) => void
  /** Called when definitions are stored and their samples are not yet. */
  readonly onDefinitions: () => void
  /**
   * The prefix of insert tokens, by which the store recognises a repeated block; the positions follow it. It must
   * change when positions may start again from the beginning.
   */
  readonly tokenPrefix?: () => string
  /**
   * Cells that end by this instant may be computed already, so samples for them make them late. By default this is true
   * of every cell that has ended.
   */
  readonly computedBeforeMs?: () => number
  /**
   * Learns what other workers have computed since. Called when samples are stored, before it is asked which are late.
   */
  readonly learnComputed?: () => Promise<void>
  /**
   * What was purged, by whichever worker. Called before anything is stored: a worker that was cut off from the others,
   * or stood still, has not heard of all. Where it rejects, what is buffered waits.
   */
  readonly readTombstones?: () => Promise<readonly Tombstone[]>
  /** Receives every stored sample. */
  readonly stream?: CellStream
  /** Receives the cells that become late, before their samples can be read. */
  readonly lateCellTracker?: LateCellTracker
  /** Called when samples of a server are stored and visible in the store. */
  readonly onStored?: (server: ServerPoints) => void
  readonly hold?: Hold
  /** How many definitions that no two servers share may wait for the store before the bus is read no further. */
  readonly definitionsMax?: number
  /** How long it rests at most before it looks again; 100 ms by default. */
  readonly pollMs?: number
  /** Requests the retention of companies; the answer comes through `setRetentionDays`. */
  readonly askRetention?: (companyIds: readonly string[]) => void
  /** Called for each failed try. */
  readonly onTrouble: (error: unknown) => void
}

export class SampleWriter {
  private readonly options: SampleWriterOptions
  private readonly entries = new EntryReader()
  private readonly samples = new NativeWriter()
  private readonly definitions: PendingDefinitions
  private lastSeq = 0
  /** -Infinity where the bus held nothing at the start. */
  private startedAtMs: number
  private readonly scratch = new BlockScratch()
  private active = newPendingBlock(this.scratch)
  private free: PendingBlock | null = newPendingBlock(this.scratch)
  private inserting: Promise<void> | null = null
  private insertingBlock: PendingBlock | null = null
  /** Whether the last read found nothing new, and the receive time of the newest entry so far. */
  private isCaughtUp = false
  private lastReceivedAtMs = 0
  /** The positions read and the positions passed, by partition. */
  private readonly readTo = new Map<number, number>()
  private readonly passedTo = new Map<number, number>()
  /** Tombstones that this writer was told of, and those that it has read. */
  private told: readonly Tombstone[] = []
  private read: readonly Tombstone[] = []
  private tombstones = noTombstones
  private purgesKnownAtMs = Number.NEGATIVE_INFINITY
  /** Plan retention in days by company, null for one without. */
  private readonly retention = new Map<string, number | null>()
  private wakeUp: (() => void) | null = null
  private isAwake = false
  private isStopping = false
  private isAborted = false
  private isFlushing = 0
  private isReleased = false
  rowsStored = 0
  blocksStored = 0
  insertErrors = 0
  private readonly droppedBefore: DroppedRows = { purged: 0, retentionLocked: 0 }

  constructor(options: SampleWriterOptions) {
    this.options = options
    this.definitions = new PendingDefinitions({
      insert: (block, token) => this.persist(() => options.store.insertBlock('series', block, token)),
      isAborted: () => this.isAborted,
      beforeStored: () => this.learnPurges(),
      onStored: options.onDefinitions,
      onRest: () => this.wake(),
      ownMax: options.definitionsMax,
    })
    this.startedAtMs = options.nowMs()
  }

  /**
   * Makes the next blocks count as newer than `seq`, the last one of an earlier process, even if the clock was set
   * back.
   */
  continueAfter(seq: number): void {
    this.lastSeq = Math.max(this.lastSeq, seq)
  }

  /** Points dropped so far, by reason. */
  get dropped(): DroppedRows {
    const dropped = { ...this.droppedBefore }
    for (const pending of [this.insertingBlock, this.active]) {
      dropped.purged += pending?.block.dropped.purged ?? 0
      dropped.retentionLocked += pending?.block.dropped.retentionLocked ?? 0
    }
    return dropped
  }

  /** The number of points in the active block. */
  get bufferRows(): number {
    return this.active.block.rows
  }

  /** The buffered points of a server, in the order of arrival. */
  bufferedOf(companyId: string, serverId: string): BufferedPoint[] {
    return this.unstoredBlocks().flatMap(block => block.bufferedOf(companyId, serverId))
  }

  /** What is buffered of a whole company. */
  readonly bufferedCompany: BufferedCompany = {
    serversOf: companyId => new Set(this.unstoredBlocks().flatMap(block => [...block.serversOf(companyId)])),
    eachBuffered: (companyId, serverId, take) => {
      for (const block of this.unstoredBlocks()) block.eachBuffered(companyId, serverId, take)
    },
    unstoredKeys: (companyId, metric) => this.definitions.ofMetric(companyId, metric),
  }

  /** In the order of arrival. */
  private unstoredBlocks(): SampleBlock[] {
    return this.insertingBlock ? [this.insertingBlock.block, this.active.block] : [this.active.block]
  }

  /** The series of a server whose definitions are not stored yet. Some may become stored while they are read. */
  pendingDefinitions(companyId: string, serverId: string): ReturnType<PendingDefinitions['of']> {
    return this.definitions.of(companyId, serverId)
  }

  /** The start of the oldest cell that buffered points of a server fall into; Infinity without any. */
  oldestCellOf(companyId: string, serverId: string): number {
    const [one, other] = [this.insertingBlock, this.active].map(pending =>
      pending ? pending.block.oldestCellOf(companyId, serverId) : Number.POSITIVE_INFINITY,
    )
    return Math.min(one!, other!)
  }

  /** Everything received before this instant is stored, as far as this worker reads the bus. */
  arrivedBeforeMs(): number {
    const { positions, block } = this.active
    const pending = this.insertingBlock ?? (positions.size > 0 || block.rows > 0 ? this.active : null)
    if (pending) return pending.receivedAtMs
    return this.isCaughtUp ? this.options.nowMs() : this.lastReceivedAtMs
  }

  /** Wakes the writer: there is something to read, or other work. */
  wake(): void {
    this.isAwake = true
    this.wakeUp?.()
  }

  /** Sets the plan retention of companies in days (null for unlimited), from which their write-locked zones follow. */
  setRetentionDays(retentionDays: ReadonlyMap<string, number | null>): void {
    for (const [companyId, days] of retentionDays) this.retention.set(companyId, days)
    for (const owner of this.active.block.owners)
      if (retentionDays.has(owner.companyId)) owner.lockedBeforeMs = this.lockedBeforeMs(owner.companyId)
  }

  private lockedBeforeMs(companyId: string): number {
    return writeLockedBeforeMs(this.retention.get(companyId) ?? null, this.options.nowMs())
  }

  /**
   * Before samples older than the shortest retention are stored: requests the retention of companies for which it is
   * unknown.
   */
  private async learnRetention(block: SampleBlock): Promise<void> {
    const { askRetention, nowMs } = this.options
    const mayBeLockedMs = nowMs() - RETENTION_MIN_MS
    if (!askRetention || block.oldestCellMs >= mayBeLockedMs) return
    const old = block.owners.filter(({ cells }) => Math.min(...cells) < mayBeLockedMs)
    const unknown = [...new Set(old.map(({ companyId }) => companyId))].filter(id => !this.retention.has(id))
    if (unknown.length === 0) return
    askRetention(unknown)
    const untilMs = performance.now() + RETENTION_WAIT_MS
    while (!this.isAborted && performance.now() < untilMs && unknown.some(id => !this.retention.has(id)))
      await Bun.sleep(POLL_MS / 10)
  }

  /**
   * Drops the samples of purged tenants, in the buffers and on the bus, that were received before the tombstone ended.
   */
  setTombstones(tombstones: readonly Tombstone[]): void {
    this.told = tombstones
    this.dropPurged()
  }

  private dropPurged(): void {
    const nowMs = this.options.nowMs()
    this.tombstones = new TombstoneSet([...this.told, ...this.read])
    const isPurged = (companyId: string, serverId: string, receivedAtMs: number): boolean =>
      this.isPurged(companyId, serverId, Math.min(receivedAtMs, nowMs))
    // Rows of the inserting block that are written already are removed by the delete that follows.
    for (const pending of [this.insertingBlock, this.active])
      for (const owner of pending?.block.owners ?? [])
        if (isPurged(owner.companyId, owner.serverId, owner.receivedAtMs)) pending?.block.purge(owner)
    this.definitions.keep(({ companyId, serverId, seenAtMs }) => !isPurged(companyId, serverId, seenAtMs))
  }

  private async learnPurges(): Promise<void> {
    const { readTombstones } = this.options
    if (!readTombstones || performance.now() - this.purgesKnownAtMs < PURGES_KNOWN_MS) return
    await this.persist(async () => {
      const askedMs = performance.now()
      const endedMs = this.options.nowMs() - limits.purgeTombstoneKeptMs
      // Those of before stay: a Redis that lost its newest writes may lack some.
      this.read = mergeTombstones(this.read, await readTombstones()).filter(({ untilMs }) => untilMs > endedMs)
      this.dropPurged()
      this.purgesKnownAtMs = askedMs
    })
  }

  private isPurged(companyId: string, serverId: string, atMs: number): boolean {
    return this.tombstones.mayCover(atMs) && this.tombstones.covers(companyId, serverId, atMs)
  }

  /**
   * Forgets the partitions that are not in `kept`, because another worker reads them now. When one comes back, reading
   * continues after its passed position.
   */
  forgetPartitions(kept: readonly number[]): void {
    for (const position of [this.readTo, this.passedTo])
      for (const partition of position.keys()) if (!kept.includes(partition)) position.delete(partition)
  }

  /**
   * The bus may have lost entries and assign their positions again. Reading restarts after the position that the bus
   * says was passed; samples read twice are deduplicated by series and time. Positions read before are not passed any
   * more, since other entries may have them now.
   */
  readAnew(): void {
    this.forgetPartitions([])
    this.insertingBlock?.positions.clear()
    this.active.positions.clear()
    this.active.entries = 0
  }

  /** Whether it is known of all these partitions where this worker goes on. */
  isReading(partitions: readonly number[]): boolean {
    return partitions.every(partition => this.readTo.has(partition))
  }

  /** Resolves when no insert is under way, so that a delete finds everything that was inserted before. */
  async drained(): Promise<void> {
    await this.definitions.idle()
    await this.inserting
  }

  /**
   * Entries on the bus that queries cannot see yet. Buffered entries do not count, and neither do definitions that
   * wait: queries know both.
   */
  async lagEntries(): Promise<number> {
    const { bus } = this.options
    const buffered = this.isDue() ? 0 : this.active.entries
    const lags = await Promise.all(
      bus.partitions.map(
        async partition => (await bus.lastPosition(partition)) - (await this.passedPosition(partition)),
      ),
    )
    return Math.max(0, lags.reduce((sum, lag) => sum + lag, 0) - buffered)
  }

  private async passedPosition(partition: number): Promise<number> {
    return this.passedTo.get(partition) ?? this.options.bus.passed(busConsumers.samples, partition)
  }

  /** Resolves when everything that was on the bus at the call is stored. */
  async flush(): Promise<void> {
    const targets = await Promise.all(
      this.options.bus.partitions.map(async partition => ({
        partition,
        position: await this.options.bus.lastPosition(partition),
      })),
    )
    this.isFlushing++
    try {
      for (const { partition, position } of targets)
        while (!this.isAborted && (await this.passedPosition(partition)) < position) {
          this.wake()
          await Bun.sleep(5)
        }
    } finally {
      this.isFlushing--
    }
  }

  /** The bus is full: stores the buffered samples at once, so that their entries can be removed. */
  release(): void {
    this.isReleased = true
    this.wake()
  }

  /** Ends `run` after the present block; what is not stored stays on the bus. */
  stop(): void {
    this.isStopping = true
    this.wake()
  }

  /** Ends `run` even while it is retrying. */
  abort(): void {
    this.isAborted = true
    this.stop()
  }

  /** Whether there is nothing on the bus that an earlier process may have held until it died. */
  private async isFresh(): Promise<boolean> {
    const { bus } = this.options
    try {
      return bus.partitions.length > 0 && (await this.lagEntries()) === 0
    } catch {
      return false
    }
  }

  /** Consumes until stopped. */
  async run(): Promise<void> {
    if (await this.isFresh()) this.startedAtMs = Number.NEGATIVE_INFINITY
    while (!this.isStopping) {
      const readCount = this.mayRead ? await this.readOnce() : 0
      this.definitions.storeIfDue(this.options.nowMs(), !this.isCaughtUp)
      if (this.isDue()) await this.send()
      else if (readCount === 0) await this.rest()
    }
    await this.inserting
  }

  private get mayRead(): boolean {
    return this.active.block.bytes < BLOCK_BYTES && !this.definitions.isFull
  }

  private isDue(): boolean {
    const { nowMs, hold } = this.options
    return areSamplesStored(this.active, {
      nowMs: nowMs(),
      startedAtMs: this.startedAtMs,
      computedBeforeMs: () => this.computedBeforeMs(),
      hold,
      isUrgent: this.isFlushing > 0 || this.isReleased,
    })
  }

  private computedBeforeMs(): number {
    return (this.options.computedBeforeMs ?? this.options.nowMs)()
  }

  /**
   * Waits until it is time for the next read, or for a flush or the stop. The bus commits every few milliseconds, but a
   * few reads a second are enough: a wake-up for each commit would cost more than reading it. Where it is told of new
   * entries it hardly polls: an idle host sleeps.
   */
  private async rest(): Promise<void> {
    const sinceMs = performance.now()
    if (!this.isAwake) {
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, this.options.pollMs ?? POLL_MS)
        this.wakeUp = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      this.wakeUp = null
    }
    this.isAwake = false
    const restedMs = performance.now() - sinceMs
    if (restedMs < REST_MIN_MS && this.isFlushing === 0 && !this.isStopping) await Bun.sleep(REST_MIN_MS - restedMs)
  }

  /** Reads a little of each partition into the active block. Returns the number of groups. */
  private async readOnce(): Promise<number> {
    const { bus } = this.options
    let groupCount = 0
    try {
      // All at once: over Redis each read is a call, and calls that go out together cost one turn.
      const read = await Promise.all(bus.partitions.map(partition => this.readPartition(partition)))
      for (const groups of read)
        for (const group of groups) {
          this.take(group)
          groupCount++
        }
      this.isCaughtUp = groupCount === 0
    } catch (error) {
      this.options.onTrouble(error)
      await Bun.sleep(BACKOFF.startMs)
    }
    return groupCount
  }

  /** Empty for a partition that another worker has got meanwhile. */
  private async readPartition(partition: number): Promise<readonly BusGroup[]> {
    const { bus } = this.options
    const from = this.readTo.get(partition) ?? (await this.passedPosition(partition))
    const groups = await bus.read(partition, from, READ_BYTES_MAX)
    if (!bus.partitions.includes(partition)) return []
    this.readTo.set(partition, from)
    return groups
  }

  private take(group: BusGroup): void {
    const { entries, active } = this
    const nowMs = this.options.nowMs()
    // Decodes all entries of the group first: either all of them go into the block, or a malformed one throws and none
    // does.
    let count = 0
    for (entries.open(group.bytes); entries.next(); ) count++
    assert(count === group.count && count > 0, 'a group of the bus holds the entries that it says')
    entries.open(group.bytes)
    const ruleOf = (companyId: string, serverId: string, receivedAtMs: number) => ({
      purged: this.isPurged(companyId, serverId, Math.min(receivedAtMs, nowMs)),
      lockedBeforeMs: this.lockedBeforeMs(companyId),
    })
    if (active.positions.size === 0) active.firstAtMs = nowMs
    const unseen: SeriesDefinition[] = []
    active.bytes += group.bytes.byteLength
    while (entries.next()) {
      active.receivedAtMs = Math.min(active.receivedAtMs, entries.receivedAtMs)
      this.lastReceivedAtMs = Math.max(this.lastReceivedAtMs, entries.receivedAtMs)
      const owner = active.block.add(entries, ruleOf)
      if (owner.purged) continue
      this.definitions.add(entries, owner, nowMs, unseen)
    }
    if (unseen.length > 0) this.options.onSeries?.(unseen)
    active.entries += group.count
    const last = group.firstPosition + group.count - 1
    const known = active.positions.get(group.partition)
    if (known) known.last = last
    else active.positions.set(group.partition, { first: group.firstPosition, last })
    this.readTo.set(group.partition, last)
  }

  /** Starts the insert of the active block as soon as the previous insert has ended. */
  private async send(): Promise<void> {
    await this.inserting
    assert(!this.insertingBlock, 'one block at a time is on its way to the store')
    const pending = this.active
    this.isReleased = false
    this.active = this.free ?? newPendingBlock(this.scratch)
    this.free = null
    this.insertingBlock = pending
    this.inserting = this.insert(pending).then(() => {
      this.insertingBlock = null
      this.droppedBefore.purged += pending.block.dropped.purged
      this.droppedBefore.retentionLocked += pending.block.dropped.retentionLocked
      pending.block.clear()
      pending.positions.clear()
      pending.entries = 0
      pending.bytes = 0
      pending.receivedAtMs = Number.POSITIVE_INFINITY
      this.free = pending
    })
  }

  private async insert(pending: PendingBlock): Promise<void> {
    const { bus } = this.options
    const ranges = [...pending.positions].map(([partition, { first, last }]) => `${partition}:${first}-${last}`)
    // After `readAnew` the block has no positions any more; it gets a random token.
    const token = `${this.options.tokenPrefix?.() ?? ''}${ranges.join(',') || crypto.randomUUID()}`
    this.lastSeq = Math.max(this.lastSeq + 1, this.options.nowMs())
    await this.learnRetention(pending.block)
    // The write-locked zone may have moved over samples that were buffered for long.
    for (const owner of pending.block.owners) owner.lockedBeforeMs = this.lockedBeforeMs(owner.companyId)
    await this.definitions.stored()
    for (let part = 0; !this.isAborted; part++) {
      await this.learnPurges()
      const rows = await runYielding(pending.block.writing(this.samples, this.lastSeq))
      if (rows === 0) break
      await this.insertPart(pending.block, rows, `${token}/${part}`)
    }
    if (this.isAborted) return
    for (const [partition, { last }] of pending.positions) {
      // While this is retried the bus may come back without the entries that were read; then nothing is passed.
      const isOfThisBus = (): boolean => pending.positions.has(partition)
      await this.persist(async () => {
        if (isOfThisBus()) await bus.pass(busConsumers.samples, partition, last)
      })
      if (isOfThisBus()) this.passedTo.set(partition, last)
    }
    this.blocksStored++
  }

  /** Stores the part of the block that was written last. */
  private async insertPart(block: SampleBlock, rows: number, token: string): Promise<void> {
    const { store, lateCellTracker } = this.options
    const startedMs = performance.now()
    const samples = this.samples.finish()
    await this.persist(() => store.insertBlock('samples_raw', samples, token))
    if (this.isAborted) return
    this.options.onInserted(rows, (performance.now() - startedMs) / 1000)
    this.rowsStored += rows
    await this.persist(async () => this.options.learnComputed?.())
    if (this.isAborted) return
    const late = await this.handOver(block)
    const noted = lateCellTracker?.add(late)
    if (late.length > 0) await this.persist(() => insertLateCells(store, token, late))
    if (noted && !this.isAborted) noted.isNoted = true
  }

  /**
   * Adds the stored samples of a part to the stream of open cells. Returns the late cells: those that a rollup pass may
   * have computed before these samples became visible. Runs after the insert and in one synchronous step for each
   * server, so that a pass finds each sample either in the stream or among the late cells.
   */
  private async handOver(block: SampleBlock): Promise<LateCell[]> {
    const { stream, onStored } = this.options
    const late: LateCell[] = []
    const slice = new TimeSlice()
    for (const server of block.servers()) {
      const { owner } = server
      // The server was purged meanwhile: the delete that follows removes its stored rows.
      if (owner.purged) continue
      onStored?.(server)
      const computedMs = this.computedBeforeMs()
      for (const startMs of owner.cells) {
        if (startMs + CELL_5M_MS > computedMs) continue
        late.push({ companyId: owner.companyId, serverId: owner.serverId, startMs })
        stream?.late(owner, startMs)
      }
      stream?.add(server, computedMs)
      await slice.yieldIfDue()
    }
    return late
  }

  /** Retries until it succeeds or the writer is aborted, with waits from 1 s doubling to 30 s. */
  private async persist(attempt: () => Promise<void>): Promise<void> {
    for (let failures = 1; !this.isAborted; failures++) {
      try {
        await attempt()
        return
      } catch (error) {
        this.insertErrors++
        this.options.onTrouble(error)
        const untilMs = performance.now() + backoffMs(BACKOFF, failures)
        while (!this.isAborted && performance.now() < untilMs) await Bun.sleep(50)
      }
    }
  }
}
