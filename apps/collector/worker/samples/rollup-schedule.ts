// When passes over the rollups run: once a minute, and never while samples are being deleted, so that a pass cannot
// bring back cells of a tenant that is being purged. Of several workers one computes them, so that no pass overtakes
// another. Which cells a pass takes: core/samples/rollup/computable-before.ts.
import type { CellStream } from '../../../../core/samples/rollup/cell-stream.ts'
import { computableBeforeMs } from '../../../../core/samples/rollup/computable-before.ts'
import type { ClickHouse } from '../../store/clickhouse/clickhouse.ts'
import {
  type Completeness,
  lateCells,
  newestStored,
  readClaim,
  readCompleteness,
  runRollups,
  writeClaim,
} from '../../store/clickhouse/samples-rollups.ts'
import type { LateCellTracker } from './late-cell-tracker.ts'

const PERIOD_MS = 60_000

type RollupScheduleOptions = {
  readonly store: ClickHouse
  readonly nowMs: () => number
  /** Whether this worker computes the rollups; otherwise it only reads how far the leader is. */
  readonly isLeader: () => boolean
  /** Everything received before this instant is stored. */
  readonly arrivedBeforeMs: () => number | Promise<number>
  /** Other workers store samples too: what is claimed is told to them by the store. */
  readonly isShared?: boolean
  /** The open cells; only when one worker stores all samples. */
  readonly stream?: CellStream
  /** The late cells whose samples this worker stores. */
  readonly lateCellTracker?: LateCellTracker
  readonly onTrouble: (error: unknown) => void
}

export class RollupSchedule {
  private readonly options: RollupScheduleOptions
  private queue: Promise<unknown> = Promise.resolve()
  private timer: ReturnType<typeof setInterval> | null = null
  private isPassWaiting = false
  /** Up to where cells are computed; queries read raw samples from there. */
  complete: Completeness = { '5m': 0, '1h': 0 }
  /**
   * Cells that end by this instant are computed, or a pass is about to compute them: samples stored for them from now
   * on are late.
   */
  claimedBeforeMs = 0
  errors = 0

  constructor(options: RollupScheduleOptions) {
    this.options = options
  }

  async start(): Promise<void> {
    this.complete = await readCompleteness(this.options.store)
    this.claimedBeforeMs = this.complete['5m']
    const { lateCellTracker, store } = this.options
    // Late cells that an earlier process recorded.
    if (lateCellTracker) lateCellTracker.add(await lateCells(store)).isNoted = true
    this.options.stream?.start((await newestStored(this.options.store)).ms)
    this.timer = setInterval(() => void this.pass(), PERIOD_MS)
  }

  /** Runs `act` while no pass runs and no other act does. */
  exclusively<T>(act: () => Promise<T>): Promise<T> {
    const result = this.queue.then(act)
    this.queue = result.catch(() => undefined)
    return result
  }

  /** One pass, as of `nowMs`. */
  runNow(nowMs: number): Promise<void> {
    return this.exclusively(async () => {
      const { store, arrivedBeforeMs, isShared = false, stream, lateCellTracker } = this.options
      const noted = lateCellTracker?.noted() ?? []
      const arrivedMs = await arrivedBeforeMs()
      const claimedMs = computableBeforeMs(nowMs, arrivedMs)
      // Before the pass reads: whoever stores a sample afterwards finds the claim, and knows that the sample is late.
      if (isShared && claimedMs > this.claimedBeforeMs) await writeClaim(store, claimedMs)
      this.claimedBeforeMs = Math.max(this.claimedBeforeMs, claimedMs)
      this.complete = await runRollups(store, nowMs, arrivedMs, stream ?? null)
      lateCellTracker?.forget(noted)
    })
  }

  /** Learns what another worker has claimed. What was stored before this call is in the pass of a later claim. */
  async learnClaim(): Promise<void> {
    this.claimedBeforeMs = Math.max(this.claimedBeforeMs, await readClaim(this.options.store))
  }

  private async pass(): Promise<void> {
    // A pass that takes longer than a minute is not queued a second time.
    if (this.isPassWaiting) return
    this.isPassWaiting = true
    const { store, nowMs, isLeader } = this.options
    try {
      if (isLeader()) await this.runNow(nowMs())
      else {
        this.complete = await readCompleteness(store)
        await this.learnClaim()
      }
    } catch (error) {
      this.errors++
      this.options.onTrouble(error)
    } finally {
      this.isPassWaiting = false
    }
  }

  async stop(): Promise<void> {
    if (this.timer !== null) clearInterval(this.timer)
    await this.queue
  }
}
