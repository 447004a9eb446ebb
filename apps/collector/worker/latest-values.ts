// The newest values of a machine's key metrics: from memory while its samples pass through this worker, else from the store. The first
// answer after a start is the store's, and fills the memory; 25 minutes later what came since is enough.

import { KEYS_MAX, type NewestValue, NewestValues } from '../../../core/samples/newest-values.ts'
import type { SampleBlock } from '../../../core/samples/sample-block.ts'
import type { SeriesDefinition } from '../../../core/samples/series-block.ts'
import { keyMetrics } from '../../../core/series/catalogue.ts'
import { parseSeriesKey, seriesId } from '../../../core/series/series-key.ts'
import type { SamplesReader } from '../store/samples-query.ts'

/** The newest value of a series. */
export type LatestValue = {
  readonly metric: string
  readonly labels: Record<string, string>
  readonly value: number
  readonly tsMs: number
}

const toLatest = ({ key, value, tsMs }: NewestValue): LatestValue => ({ ...parseSeriesKey(key), value, tsMs })

export type LatestValuesOptions = {
  readonly reader: Pick<SamplesReader, 'newestValues' | 'keysOf'>
  readonly nowMs: () => number
  /** Whether all samples of a machine pass through this worker. */
  readonly isOwn: (serverId: string) => boolean
  readonly onTrouble: (error: unknown) => void
}

export class LatestValues {
  private readonly options: LatestValuesOptions
  private readonly held = new NewestValues(keyMetrics)
  /** Nothing is held before the keys are known of series that other workers, or this one before its start, have stored. */
  private state: 'new' | 'learning' | 'holding' | 'full' = 'new'
  private round = 0
  /** Blocks to let pass first. */
  private passing = 0

  constructor(options: LatestValuesOptions) {
    this.options = options
  }

  /** Series that are stored from now on. */
  learn(definitions: readonly SeriesDefinition[]): void {
    this.noteKeys(definitions.map(({ idLo, idHi, key }) => ({ lo: idLo, hi: idHi, key })))
  }

  private noteKeys(keys: Parameters<NewestValues['learn']>[0]): void {
    if (this.held.learn(keys)) return
    this.state = 'full'
    this.held.forgetAll()
  }

  /** Takes a block that is stored. */
  take(block: SampleBlock): void {
    const { nowMs, isOwn } = this.options
    if (this.state === 'holding') this.held.take(block, nowMs(), owner => isOwn(owner.serverId))
    else if (this.state === 'new' && this.passing-- <= 0) void this.learnStored()
  }

  /** Whoever stored samples of these machines before has told the store of their series. */
  private async learnStored(): Promise<void> {
    this.state = 'learning'
    const round = this.round
    try {
      const keys = await this.options.reader.keysOf(keyMetrics, KEYS_MAX + 1)
      if (round !== this.round) return
      this.state = 'holding'
      this.noteKeys(keys.map(key => ({ ...seriesId(key), key })))
    } catch (error) {
      if (round !== this.round) return
      this.state = 'new'
      this.options.onTrouble(error)
    }
  }

  /**
   * Other machines are this worker's now. Two blocks may have been read before; the one after them begins where another worker ended,
   * whose series are stored by then.
   */
  restart(): void {
    this.round++
    this.passing = 2
    if (this.state !== 'full') this.state = 'new'
    this.held.forgetAll()
  }

  /** Samples of a company, or of one machine of it, were deleted. */
  forget(companyId: string, serverId: string | null): void {
    this.held.forget(companyId, serverId)
  }

  /** The newest value of every series of `metrics` on a machine, of those that have one since `sinceMs`, in the order of their keys. */
  async read(companyId: string, serverId: string, metrics: readonly string[], sinceMs: number): Promise<LatestValue[]> {
    const name = { companyId, serverId }
    const held = this.held.values(name, metrics, sinceMs)
    if (held) return held.map(toLatest)
    const ticket = this.held.ticket(name)
    const read = await this.options.reader.newestValues(companyId, serverId, metrics, sinceMs)
    if (keyMetrics.every(metric => metrics.includes(metric))) this.held.fill(name, ticket, sinceMs, read)
    return read.map(toLatest)
  }
}
