// The newest values of a server's key metrics: from memory where its samples pass through this worker, else from the
// store. After a start the store is read for all servers, a few at a time; until that is done, a server's first answer
// is the store's.

import type { ServerPoints } from '../../../../core/samples/block/sample-block.ts'
import type { SeriesDefinition } from '../../../../core/samples/block/series-definitions.ts'
import {
  type BufferedCompany,
  type BufferedSource,
  idOf,
  newestBuffered,
  nothingBuffered,
} from '../../../../core/samples/latest/buffered-points.ts'
import { LargestValue } from '../../../../core/samples/latest/largest-value.ts'
import { KEPT_MS, KEYS_MAX, type NewestValue, NewestValues } from '../../../../core/samples/latest/newest-values.ts'
import { keyMetrics } from '../../../../core/series/catalogue.ts'
import { parseSeriesKey, seriesId } from '../../../../core/series/series-key.ts'
import type { SamplesReader } from '../../store/clickhouse/samples-query.ts'

/** The newest value of a series. */
export type LatestValue = {
  readonly metric: string
  readonly labels: Record<string, string>
  readonly value: number
  readonly tsMs: number
}

/** One value of each server of a company, as columns. */
export type CompanyValues = {
  readonly serverIds: readonly string[]
  readonly values: readonly number[]
  readonly tsMs: readonly number[]
  readonly labels: readonly Record<string, string>[]
  /** Some series were left out. */
  readonly truncated: boolean
}

/** Servers of a company between which other work of the thread goes on. */
const SLICE_SERVERS = 500
/** Series of one metric of a company that are read from the store at once. */
const COMPANY_SERIES_MAX = 500_000

/**
 * As many servers as the store is read for at once, and how many times as long it then rests: the embedded engine runs
 * reads one after the other, so that a status which is asked for meanwhile waits for these.
 */
const LOAD_SERVERS = 10
const LOAD_REST = 3
const LOAD_RETRY_MS = 30_000

type Labels = Record<string, string>

const heldMetrics: ReadonlySet<string> = new Set(keyMetrics)

const toLatest = ({ key, value, tsMs }: NewestValue): LatestValue => ({ ...parseSeriesKey(key), value, tsMs })

type LatestValuesOptions = {
  readonly reader: Pick<
    SamplesReader,
    'newestValues' | 'newestSamples' | 'newestOfServers' | 'newestOfCompany' | 'serversOf' | 'keysOf'
  >
  readonly nowMs: () => number
  /** Points that the store does not have yet. */
  readonly buffered?: BufferedSource
  readonly bufferedCompany?: BufferedCompany
  /** No other worker stores samples. */
  readonly isOnlyWorker?: boolean
  /** Whether all samples of a server pass through this worker. */
  readonly isOwn: (serverId: string) => boolean
  readonly onTrouble: (error: unknown) => void
}

export class LatestValues {
  private readonly options: LatestValuesOptions
  private readonly buffered = new NewestValues(keyMetrics)
  /**
   * Nothing is buffered before the keys are known of series that other workers, or this one before its start, have
   * stored.
   */
  private state: 'new' | 'learning' | 'holding' | 'full' = 'new'
  private round = 0
  /** Blocks to let pass first. */
  private passing = 0

  constructor(options: LatestValuesOptions) {
    this.options = options
  }

  /**
   * Whatever series stood on the bus before what this worker reads of it are in the store: they can be learnt from
   * there before the first block is stored.
   */
  start(): void {
    if (this.state === 'new') void this.learnStored()
  }

  /** The store is asked no more on its own account. */
  stop(): void {
    this.round++
  }

  /** Series that come from now on, whose samples may not be stored yet. */
  learn(definitions: readonly SeriesDefinition[]): void {
    this.noteKeys(definitions.map(({ idLo, idHi, key }) => ({ lo: idLo, hi: idHi, key })))
  }

  private noteKeys(keys: Parameters<NewestValues['learn']>[0]): void {
    if (this.state === 'full' || this.buffered.learn(keys)) return
    this.state = 'full'
    this.buffered.forgetAll()
  }

  /** Takes samples of a server that are stored. */
  take(server: ServerPoints): void {
    const { nowMs, isOwn } = this.options
    if (this.state === 'holding') this.buffered.take(server, nowMs(), owner => isOwn(owner.serverId))
  }

  /** A block is stored. */
  blockStored(): void {
    if (this.state === 'new' && this.passing-- <= 0) void this.learnStored()
  }

  /** Learns the series of these servers that the store holds, from whichever process stored them. */
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
      return
    }
    await this.loadStored(round)
  }

  /** Reads what the store has of all servers. What is stored meanwhile comes here, too. */
  private async loadStored(round: number): Promise<void> {
    while (round === this.round && this.state === 'holding') {
      try {
        await this.loadAll(round)
        return
      } catch (error) {
        if (round !== this.round) return
        this.options.onTrouble(error)
        await Bun.sleep(LOAD_RETRY_MS)
      }
    }
  }

  private async loadAll(round: number): Promise<void> {
    const { buffered } = this
    const { reader, nowMs, isOwn } = this.options
    const sinceMs = nowMs() - KEPT_MS
    const servers = (await reader.serversOf(keyMetrics)).filter(({ serverId }) => isOwn(serverId))
    for (let at = 0; at < servers.length; ) {
      if (round !== this.round || this.state !== 'holding') return
      const ticket = buffered.loadTicket()
      const beganMs = performance.now()
      const found = await reader.newestOfServers(servers.slice(at, at + LOAD_SERVERS), sinceMs)
      if (round !== this.round) return
      const outcome = buffered.load(ticket, found, nowMs())
      if (outcome === 'full') return
      if (outcome === 'taken') at += LOAD_SERVERS
      await Bun.sleep(LOAD_REST * (performance.now() - beganMs))
    }
    if (round === this.round && this.state === 'holding') buffered.loaded(sinceMs)
  }

  /**
   * Other servers are this worker's now. Two blocks may have been read before; the one after them begins where another
   * worker ended, whose series are stored by then.
   */
  restart(): void {
    this.round++
    this.passing = 2
    if (this.state !== 'full') this.state = 'new'
    this.buffered.forgetAll()
  }

  /** Samples of a company, or of one server of it, were deleted. */
  forget(companyId: string, serverId: string | null): void {
    this.buffered.forget(companyId, serverId, this.options.nowMs())
  }

  /**
   * The newest value of every series of `metrics` on a server, of those that have one since `sinceMs`, in the order of
   * their keys.
   */
  async read(companyId: string, serverId: string, metrics: readonly string[], sinceMs: number): Promise<LatestValue[]> {
    // Before the store is asked: what is stored meanwhile is in both.
    const buffered = newestBuffered((this.options.buffered ?? nothingBuffered)(companyId, serverId))
    const stored = await this.readStored(companyId, serverId, metrics, sinceMs)
    const byKey = new Map(stored.map(each => [each.key, each]))
    for (const each of this.buffered.named(buffered, metrics, sinceMs)) {
      const known = byKey.get(each.key)
      if (!known || each.tsMs >= known.tsMs) byKey.set(each.key, each)
    }
    return [...byKey.values()].sort((a, b) => (a.key < b.key ? -1 : 1)).map(toLatest)
  }

  /**
   * The largest newest value of a metric since `sinceMs` on each server of a company. From memory where that is whole,
   * else from the store; with what is buffered in both cases. `isOwnOnly` leaves out servers whose samples pass through
   * other workers.
   */
  async readCompany(
    companyId: string,
    metric: string,
    sinceMs: number,
    isOwnOnly: boolean = this.options.isOnlyWorker ?? false,
  ): Promise<CompanyValues> {
    const { reader, isOwn, bufferedCompany } = this.options
    const isHeld = isOwnOnly && this.state === 'holding' && heldMetrics.has(metric)
    const held = isHeld ? this.buffered.serversOf(companyId, sinceMs) : null
    // Before the store is asked: what is stored meanwhile is in both.
    const unstored = held ? null : bufferedCompany?.unstoredKeys(companyId, metric)
    const stored = held ? null : await reader.newestOfCompany(companyId, metric, sinceMs, COMPANY_SERIES_MAX)
    const keyOf = stored
      ? (lo: number, hi: number) => {
          const id = idOf({ lo: lo >>> 0, hi: hi >>> 0 })
          return stored.keys.get(id) ?? unstored?.get(id)
        }
      : this.buffered.keyOf(metric)
    const storedOf = Map.groupBy(stored?.samples ?? [], sample => sample.serverId)
    const serverIds = new Set([...(held ?? storedOf.keys()), ...(bufferedCompany?.serversOf(companyId) ?? [])])
    const columns = { serverIds: [] as string[], values: [] as number[], tsMs: [] as number[], labels: [] as Labels[] }
    let slice = 0
    for (const serverId of serverIds) {
      if (++slice % SLICE_SERVERS === 0) await Bun.sleep(0)
      if (isOwnOnly && !isOwn(serverId)) continue
      const found = new LargestValue()
      const take = (key: string, value: number, tsMs: number) => found.take(key, value, tsMs)
      if (held) this.buffered.eachNewest({ companyId, serverId }, keyOf, take)
      for (const { lo, hi, value, tsMs } of storedOf.get(serverId) ?? []) take(keyOf(lo, hi) ?? '', value, tsMs)
      bufferedCompany?.eachBuffered(companyId, serverId, (lo, hi, tsMs, value) => {
        const key = keyOf(lo, hi)
        if (key !== undefined) take(key, value, tsMs)
      })
      const largest = found.since(sinceMs)
      if (!largest) continue
      columns.serverIds.push(serverId)
      columns.values.push(largest.value)
      columns.tsMs.push(largest.tsMs)
      columns.labels.push(parseSeriesKey(largest.key).labels)
    }
    return { ...columns, truncated: stored?.truncated ?? false }
  }

  private async readStored(
    companyId: string,
    serverId: string,
    metrics: readonly string[],
    sinceMs: number,
  ): Promise<readonly NewestValue[]> {
    const { reader, isOwn } = this.options
    // Of what others store not even the keys are known here.
    if (this.state !== 'holding' || !isOwn(serverId) || metrics.some(metric => !heldMetrics.has(metric)))
      return reader.newestValues(companyId, serverId, metrics, sinceMs)
    const name = { companyId, serverId }
    const known = this.buffered.values(name, metrics, sinceMs)
    if (known) return known
    const ticket = this.buffered.ticket(name)
    const read = await reader.newestSamples(companyId, serverId, sinceMs)
    this.buffered.fill(name, ticket, sinceMs, read)
    return this.buffered.named(read, metrics, sinceMs)
  }
}
