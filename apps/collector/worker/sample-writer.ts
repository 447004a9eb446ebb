// From the bus to the samples store: at least once, and because a point is unique by series and time, in effect once. An entry
// is passed on the bus only when its samples, the definitions of its series and its late cells are stored. While the store
// is down nothing more is read: the bus is the buffer, and it is bounded (decisions G-135 and G-142).
import { EntryReader } from '../../../core/bus/entry.ts'
import { writeLockedBeforeMs } from '../../../core/retention/window.ts'
import type { CellStream } from '../../../core/samples/cell-stream.ts'
import type { LateCell } from '../../../core/samples/late-block.ts'
import { NativeWriter } from '../../../core/samples/native-block.ts'
import { CELL_5M_MS, SampleBlock } from '../../../core/samples/sample-block.ts'
import { type SeriesDefinition, writeSeriesBlock } from '../../../core/samples/series-block.ts'
import { type BusGroup, type BusReader, busConsumers } from '../bus/bus.ts'
import type { ClickHouse } from '../store/clickhouse.ts'
import { insertLateCells } from '../store/samples-rollups.ts'
import type { Tombstone } from './samples-messages.ts'

/** A block goes out after a second or at this many rows: larger blocks are merged fewer times afterwards, which costs more
 * than the insert itself. */
const BLOCK_ROWS = 400_000
const BLOCK_WAIT_MS = 1_000
const POLL_MS = 100
const REST_MIN_MS = 50
const READ_BYTES_MAX = 2 * 1024 * 1024
const BACKOFF_START_MS = 1_000
const BACKOFF_CAP_MS = 30_000

/** A block with what belongs to it; two are enough, one fills while the other is being inserted. */
type Load = {
  readonly block: SampleBlock
  readonly definitions: SeriesDefinition[]
  /** First and last position of each partition in the block. */
  readonly positions: Map<number, { first: number; last: number }>
  firstAtMs: number
  /** When the oldest of its entries was received. */
  receivedAtMs: number
}

const newLoad = (): Load => ({
  block: new SampleBlock(),
  definitions: [],
  positions: new Map(),
  firstAtMs: 0,
  receivedAtMs: Number.POSITIVE_INFINITY,
})

export type SampleWriterOptions = {
  readonly store: ClickHouse
  readonly bus: BusReader
  readonly nowMs: () => number
  readonly onInserted: (rows: number, seconds: number) => void
  /** Series were stored that may be new; their samples are not stored yet. */
  readonly onDefinitions: (definitions: readonly SeriesDefinition[]) => void
  /** Stands before the positions in the tokens by which the store knows a block again. Another one where positions may begin anew. */
  readonly tokenPrefix?: () => string
  /** Cells that end by here may have been computed: samples for them are noted as late. Without it, every cell that has ended. */
  readonly computedBeforeMs?: () => number
  /** Is given every sample that is stored. */
  readonly stream?: CellStream
  /** A block is stored, and what the store answers from now on has its samples. */
  readonly onStored?: (block: SampleBlock) => void
  /** Each failed try, with its cause. */
  readonly onTrouble: (error: unknown) => void
}

export class SampleWriter {
  private readonly options: SampleWriterOptions
  private readonly entries = new EntryReader()
  private readonly samples = new NativeWriter()
  private readonly series = new NativeWriter()
  private filling = newLoad()
  private spare: Load | null = newLoad()
  private inserting: Promise<void> | null = null
  private insertingLoad: Load | null = null
  /** Whether the last read found nothing more, and when the newest entry so far was received. */
  private isCaughtUp = false
  private lastReceivedAtMs = 0
  /** Read so far, and passed for good, by partition. */
  private readonly readTo = new Map<number, number>()
  private readonly passedTo = new Map<number, number>()
  private tombstones: readonly Tombstone[] = []
  private readonly locks = new Map<string, number>()
  private wakeUp: (() => void) | null = null
  private isAwake = false
  private isStopping = false
  private isAborted = false
  private isFlushing = 0
  rowsStored = 0
  blocksStored = 0
  insertErrors = 0
  droppedPurged = 0
  droppedRetentionLocked = 0

  constructor(options: SampleWriterOptions) {
    this.options = options
  }

  /** Rows that are read and not stored. */
  get bufferRows(): number {
    return this.filling.block.rows
  }

  /** Everything that was received before this instant, as far as this worker reads the bus, is stored. */
  arrivedBeforeMs(): number {
    const pending = this.insertingLoad ?? (this.filling.positions.size > 0 ? this.filling : null)
    if (pending) return pending.receivedAtMs
    return this.isCaughtUp ? this.options.nowMs() : this.lastReceivedAtMs
  }

  /** There is something new on the bus, or something to do. */
  wake(): void {
    this.isAwake = true
    this.wakeUp?.()
  }

  /** The plan retention of some companies, null for none: where their write-locked zone begins. */
  setRetentionDays(retentionDays: ReadonlyMap<string, number | null>): void {
    for (const [companyId, days] of retentionDays)
      if (days === null) this.locks.delete(companyId)
      else this.locks.set(companyId, days)
  }

  /** Drops what tenants under a tombstone have in the buffers and will have on the bus until then. */
  setTombstones(tombstones: readonly Tombstone[]): void {
    this.tombstones = tombstones
    const load = this.filling
    for (const owner of load.block.owners) owner.purged ||= this.isPurged(owner.companyId, owner.serverId)
    const kept = load.definitions.filter(definition => !this.isPurged(definition.companyId, definition.serverId))
    load.definitions.length = 0
    load.definitions.push(...kept)
  }

  private isPurged(companyId: string, serverId: string): boolean {
    const nowMs = this.options.nowMs()
    return this.tombstones.some(
      tombstone =>
        tombstone.companyId === companyId &&
        (tombstone.serverId === null || tombstone.serverId === serverId) &&
        tombstone.untilMs > nowMs,
    )
  }

  /** Partitions that are not among these are another worker's: where they come back, reading goes on after what was passed. */
  forgetPartitions(kept: readonly number[]): void {
    for (const position of [this.readTo, this.passedTo])
      for (const partition of position.keys()) if (!kept.includes(partition)) position.delete(partition)
  }

  /** Resolves when no block is on its way to the store: what was inserted before can be deleted now. */
  async settled(): Promise<void> {
    await this.inserting
  }

  async lagEntries(): Promise<number> {
    const { bus } = this.options
    const lags = await Promise.all(
      bus.partitions.map(
        async partition => (await bus.lastPosition(partition)) - (await this.passedPosition(partition)),
      ),
    )
    return Math.max(
      0,
      lags.reduce((sum, lag) => sum + lag, 0),
    )
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

  /** Ends `run` after the block at hand; what is not stored stays on the bus. */
  stop(): void {
    this.isStopping = true
    this.wake()
  }

  /** Ends `run` even in the middle of its tries. */
  abort(): void {
    this.isAborted = true
    this.stop()
  }

  /** Consumes until stopped. */
  async run(): Promise<void> {
    while (!this.isStopping) {
      const readCount = this.filling.block.rows < BLOCK_ROWS ? await this.readOnce() : 0
      if (this.isDue()) await this.send()
      else if (readCount === 0) await this.rest()
    }
    await this.inserting
  }

  private isDue(): boolean {
    const { positions, block, firstAtMs } = this.filling
    if (positions.size === 0) return false
    const waitedMs = this.options.nowMs() - firstAtMs
    return block.rows >= BLOCK_ROWS || waitedMs >= BLOCK_WAIT_MS || waitedMs < 0 || this.isFlushing > 0
  }

  /** Waits for the bus, a flush or the end. The bus commits every few milliseconds; a few reads a second are enough for it. */
  private async rest(): Promise<void> {
    const sinceMs = performance.now()
    if (!this.isAwake) {
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, POLL_MS)
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

  /** Reads a little of each partition into the block that fills. Returns the number of groups. */
  private async readOnce(): Promise<number> {
    const { bus } = this.options
    let groupCount = 0
    try {
      for (const partition of bus.partitions) {
        const from = this.readTo.get(partition) ?? (await this.passedPosition(partition))
        for (const group of await bus.read(partition, from, READ_BYTES_MAX)) {
          this.take(group)
          groupCount++
        }
      }
      this.isCaughtUp = groupCount === 0
    } catch (error) {
      this.options.onTrouble(error)
      await Bun.sleep(BACKOFF_START_MS)
    }
    return groupCount
  }

  private take(group: BusGroup): void {
    const { entries, filling } = this
    const nowMs = this.options.nowMs()
    if (filling.positions.size === 0) filling.firstAtMs = nowMs
    entries.open(group.bytes)
    const ruleOf = (companyId: string, serverId: string) => ({
      purged: this.isPurged(companyId, serverId),
      lockedBeforeMs: writeLockedBeforeMs(this.locks.get(companyId) ?? null, nowMs),
    })
    while (entries.next()) {
      filling.receivedAtMs = Math.min(filling.receivedAtMs, entries.receivedAtMs)
      this.lastReceivedAtMs = Math.max(this.lastReceivedAtMs, entries.receivedAtMs)
      const owner = filling.block.add(entries, ruleOf)
      if (owner.purged) continue
      entries.eachDefinition((seriesIndex, key) => {
        const at = entries.idsAt + seriesIndex * 2
        filling.definitions.push({
          companyId: owner.companyId,
          serverId: owner.serverId,
          idLo: entries.u32[at]!,
          idHi: entries.u32[at + 1]!,
          key,
          seenAtMs: entries.receivedAtMs,
        })
      })
    }
    const last = group.firstPosition + group.count - 1
    const known = filling.positions.get(group.partition)
    if (known) known.last = last
    else filling.positions.set(group.partition, { first: group.firstPosition, last })
    this.readTo.set(group.partition, last)
  }

  /** Hands the full block over as soon as the one before it is stored. */
  private async send(): Promise<void> {
    await this.inserting
    const load = this.filling
    this.filling = this.spare ?? newLoad()
    this.spare = null
    this.insertingLoad = load
    this.inserting = this.insert(load).then(() => {
      this.insertingLoad = null
      load.block.clear()
      load.definitions.length = 0
      load.positions.clear()
      load.receivedAtMs = Number.POSITIVE_INFINITY
      this.spare = load
    })
  }

  private async insert(load: Load): Promise<void> {
    const { store, bus } = this.options
    const ranges = [...load.positions].map(([partition, { first, last }]) => `${partition}:${first}-${last}`)
    const token = `${this.options.tokenPrefix?.() ?? ''}${ranges.join(',')}`
    const rows = load.block.write(this.samples)
    if (load.definitions.length > 0) {
      writeSeriesBlock(this.series, load.definitions)
      const definitions = this.series.finish()
      await this.persist(() => store.insertBlock('series', definitions, token))
      if (!this.isAborted) this.options.onDefinitions(load.definitions)
    }
    if (rows > 0) {
      const startedMs = performance.now()
      const samples = this.samples.finish()
      await this.persist(() => store.insertBlock('samples_raw', samples, token))
      if (!this.isAborted) this.options.onInserted(rows, (performance.now() - startedMs) / 1000)
    }
    if (this.isAborted) return
    this.options.onStored?.(load.block)
    const late = this.toCells(load)
    if (late.length > 0) await this.persist(() => insertLateCells(store, token, late))
    if (this.isAborted) return
    for (const [partition, { last }] of load.positions) {
      await this.persist(() => bus.pass(busConsumers.samples, partition, last))
      this.passedTo.set(partition, last)
    }
    this.rowsStored += rows
    this.blocksStored++
    this.droppedPurged += load.block.dropped.purged
    this.droppedRetentionLocked += load.block.dropped.retentionLocked
  }

  /**
   * Samples of cells that are open go into the stream. Returns the cells that a pass may have stored before these samples became
   * visible. Asked for after the insert, and in one step, so that a pass finds a sample in the stream or among the late ones.
   */
  private toCells({ block }: Load): LateCell[] {
    const { stream } = this.options
    const computedMs = (this.options.computedBeforeMs ?? this.options.nowMs)()
    const late: LateCell[] = []
    for (const owner of block.owners)
      if (!owner.purged)
        for (const startMs of owner.cells) {
          if (startMs + CELL_5M_MS > computedMs) continue
          late.push({ companyId: owner.companyId, serverId: owner.serverId, startMs })
          stream?.late(owner, startMs)
        }
    stream?.add(block, computedMs)
    return late
  }

  /** Tries for ever: 1 s doubling to 30 s between the tries. */
  private async persist(attempt: () => Promise<void>): Promise<void> {
    let waitMs = BACKOFF_START_MS
    while (!this.isAborted) {
      try {
        await attempt()
        return
      } catch (error) {
        this.insertErrors++
        this.options.onTrouble(error)
        const untilMs = performance.now() + waitMs
        while (!this.isAborted && performance.now() < untilMs) await Bun.sleep(50)
        waitMs = Math.min(waitMs * 2, BACKOFF_CAP_MS)
      }
    }
  }
}
