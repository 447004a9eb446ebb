// The newest values of all servers of a company, from its collectors: four metrics, and any other that a page shows,
// asked once in four seconds for all viewers. A slow or unreachable collector delays nobody: what is known is shown,
// and what is not is missing. The next values are written over the former ones, so that reading them leaves no garbage
// of ten thousand servers: who looks at them for longer than a moment may see newer ones.
import { LRUCache } from 'lru-cache'
import pTimeout from 'p-timeout'
import { type PackedValues, packedId } from '../../../../core/admin-api/values.ts'
import type { Hub } from '../../hub-context.ts'
import { type Freshness, RecentValues } from './recent-values.ts'

const VALUES_AGE_MS = 4_000
/** Older values are shown while the collector is slow to give the next ones. */
const VALUES_USABLE_MS = 30_000
/** How long a view waits for the collector. */
const COLLECTOR_WAIT_MS = 1_500
const KEPT_MAX = 1_000

export type CollectorState = 'ok' | 'unavailable' | 'not_configured'

/**
 * Of the largest series each. Percent, 0 to 100; load as it is; null: not known. The disk is the fullest one, with its
 * mount.
 */
export type ServerValues = {
  readonly cpu: number | null
  readonly memory: number | null
  readonly disk: number | null
  readonly mount: string | null
  readonly load: number | null
  /** When the newest of them was sampled. */
  readonly sampledAtMs: number
}

export type NewestOfCompany = {
  readonly values: ServersValues
  readonly collector: CollectorState
}

type MetricOfCompany = {
  readonly values: MetricValues
  readonly collector: CollectorState
}

type Labels = Readonly<Record<string, string>>

const NO_LABELS: Labels = {}

/** The newest values of one metric: columns by the places of servers, NaN where a server has no recent value. */
export class MetricValues {
  private values = new Float64Array()
  private tsMs = new Float64Array()
  private labelAt = new Uint32Array()
  private labelSets: readonly Labels[] = []

  constructor(readonly places: ReadonlyMap<string, number>) {}

  /** Takes the values of an answer instead. `placeOf`: where each of them belongs. */
  fill(answer: PackedValues, placeOf: Int32Array): void {
    if (this.values.length < this.places.size) {
      this.values = new Float64Array(this.places.size)
      this.tsMs = new Float64Array(this.places.size)
      this.labelAt = new Uint32Array(this.places.size)
    }
    this.values.fill(Number.NaN)
    this.labelSets = answer.label_sets
    for (let at = 0; at < placeOf.length; at++) {
      const place = placeOf[at]!
      this.values[place] = answer.values[at]!
      this.tsMs[place] = answer.ts_ms[at]!
      this.labelAt[place] = answer.label_at[at]!
    }
  }

  valueOf(serverId: string): number | null {
    const value = this.values[this.places.get(serverId) ?? -1]
    return value === undefined || Number.isNaN(value) ? null : value
  }

  labelsOf(serverId: string): Labels {
    return this.labelSets[this.labelAt[this.places.get(serverId) ?? -1] ?? -1] ?? NO_LABELS
  }

  /** When the value was sampled; 0 where there is none. */
  sampledAtMs(serverId: string): number {
    return this.valueOf(serverId) === null ? 0 : (this.tsMs[this.places.get(serverId) ?? -1] ?? 0)
  }

  /** The values that are known, the smallest first. */
  sorted(): Float64Array {
    return this.values.filter(value => !Number.isNaN(value)).sort()
  }
}

const NO_METRIC = new MetricValues(new Map())

/** By the id of the server; one without a recent value is missing. */
type ServersValues = ReadonlyMap<string, ServerValues>

type Member = 'cpu' | 'memory' | 'disk' | 'load'
const metrics: Readonly<Record<Member, string>> = {
  cpu: 'cpu_usage_percent',
  memory: 'mem_used_percent',
  disk: 'disk_used_percent',
  load: 'cpu_load1',
}
const members = ['cpu', 'memory', 'disk', 'load'] as const

const rounded = (value: number | null): number | null => (value === null ? null : Math.round(value * 100) / 100)

type Columns = Readonly<Record<Member, MetricValues>>
type KeptValues = { -readonly [K in keyof ServerValues]: ServerValues[K] }

const noValues = (): KeptValues => ({ cpu: null, memory: null, disk: null, mount: null, load: null, sampledAtMs: 0 })

/** Writes the values of each server into the object that it has already. */
function updateValues(kept: Map<string, KeptValues>, columns: Columns): void {
  const all = new Set(members.map(member => columns[member].places))
  for (const places of all)
    for (const id of places.keys()) {
      const values = kept.get(id) ?? noValues()
      values.sampledAtMs = 0
      for (const member of members) {
        values[member] = rounded(columns[member].valueOf(id))
        values.sampledAtMs = Math.max(values.sampledAtMs, columns[member].sampledAtMs(id))
      }
      values.mount = columns.disk.labelsOf(id).mount ?? null
      if (values.sampledAtMs > 0) kept.set(id, values)
      else kept.delete(id)
    }
  for (const id of kept.keys()) if (![...all].some(places => places.has(id))) kept.delete(id)
}

/** Places of servers that are gone are given up when they are most of them. */
const PLACES_PER_SERVER = 2
const PLACES_MIN = 1_000

type Placed = {
  readonly ids: string
  /** Where the columns of all metrics of the company have a server: by its id. */
  readonly places: Map<string, number>
  /** By the place in `ids`. */
  readonly placeOf: Int32Array
}

/** No change of a viewer's own shows in measured values. */
const unhurried = (wanted: Freshness): Freshness => (wanted === 'now' ? 'recent' : wanted)

export class NewestValues {
  private readonly columns: RecentValues<MetricValues | null>
  private readonly joined: RecentValues<NewestOfCompany>
  private readonly placed: LRUCache<string, Placed>
  /** By company, and by the id of the server. */
  private readonly kept: LRUCache<string, Map<string, KeptValues>>

  constructor(private readonly hub: Hub) {
    this.columns = new RecentValues(VALUES_AGE_MS, KEPT_MAX, hub.now)
    this.joined = new RecentValues(VALUES_AGE_MS, KEPT_MAX, hub.now)
    this.placed = new LRUCache({ max: KEPT_MAX })
    this.kept = new LRUCache({ max: KEPT_MAX })
  }

  /** Where each value of an answer belongs. Most answers name the same servers as the one before. */
  private placesIn(companyId: string, ids: string, count: number): Placed {
    const before = this.placed.get(companyId)
    if (before?.ids === ids) return before
    const known = before?.places
    const isMostlyGone = known && known.size > PLACES_MIN + count * PLACES_PER_SERVER
    const places = known && !isMostlyGone ? known : new Map<string, number>()
    const placeOf = new Int32Array(count)
    for (let at = 0; at < count; at++) {
      const id = packedId(ids, at)
      const place = places.get(id) ?? places.size
      places.set(id, place)
      placeOf[at] = place
    }
    const placed = { ids, places, placeOf }
    this.placed.set(companyId, placed)
    return placed
  }

  /** The columns with the values of an answer, the former ones where they have the same places. */
  private filled(companyId: string, answer: PackedValues, before: MetricValues | null): MetricValues {
    const { places, placeOf } = this.placesIn(companyId, answer.ids, answer.values.length)
    const columns = before?.places === places ? before : new MetricValues(places)
    columns.fill(answer, placeOf)
    return columns
  }

  /** Null: no collector has answered in time, now or a little before. */
  private async columnsOf(companyId: string, metric: string, wanted: Freshness): Promise<MetricValues | null> {
    const key = `${companyId} ${metric}`
    const asked = this.columns.of(key, unhurried(wanted), async () => {
      const answer = await this.hub.collectors.valuesOfCompany(companyId, metric)
      return answer && this.filled(companyId, answer, this.columns.last(key, Number.POSITIVE_INFINITY))
    })
    const answered = asked.catch(error => {
      this.hub.log.warn({ err: error }, 'cannot ask the collector')
      return null
    })
    const last = () => this.columns.last(key, VALUES_USABLE_MS)
    return (await pTimeout(answered, { milliseconds: COLLECTOR_WAIT_MS, fallback: last })) ?? last()
  }

  private async read(companyId: string): Promise<NewestOfCompany> {
    const answers = await Promise.all(members.map(member => this.columnsOf(companyId, metrics[member], 'recent')))
    if (answers.every(answer => answer === null)) return { values: new Map(), collector: await this.silence() }
    const [cpu, memory, disk, load] = answers.map(answer => answer ?? NO_METRIC)
    const kept = this.kept.get(companyId) ?? new Map<string, KeptValues>()
    this.kept.set(companyId, kept)
    updateValues(kept, { cpu: cpu!, memory: memory!, disk: disk!, load: load! })
    return { values: kept, collector: 'ok' }
  }

  /** Why there are no values. */
  private async silence(): Promise<CollectorState> {
    return (await this.hub.collectors.targets()).length === 0 ? 'not_configured' : 'unavailable'
  }

  of(companyId: string, wanted: Freshness): Promise<NewestOfCompany> {
    return this.joined.of(companyId, unhurried(wanted), () => this.read(companyId))
  }

  /** The newest value of one metric of the catalogue on every server that has one. */
  async ofMetric(companyId: string, metric: string, wanted: Freshness): Promise<MetricOfCompany> {
    const values = await this.columnsOf(companyId, metric, wanted)
    return values === null ? { values: NO_METRIC, collector: await this.silence() } : { values, collector: 'ok' }
  }
}
