// The newest values of all servers of a company, from its collectors: four metrics, and any other that a page shows,
// asked once in four seconds for all viewers. A slow or unreachable collector delays nobody: what is known is shown,
// and what is not is missing.
import pTimeout from 'p-timeout'
import type { ValueColumns } from '../../../../core/admin-api/values.ts'
import type { Hub } from '../../hub-context.ts'
import type { FleetServer } from './fleet.ts'
import { RecentValues } from './recent-values.ts'

const VALUES_AGE_MS = 4_000
/** Older values are shown while the collector is slow to give the next ones. */
const VALUES_USABLE_MS = 30_000
/** How long a view waits for the collector. */
const COLLECTOR_WAIT_MS = 1_500
const KEPT_MAX = 1_000

export type CollectorState = 'ok' | 'unavailable' | 'not_configured'

/** Percent, 0 to 100; load as it is; null: not known. The disk is the fullest one, with its mount. */
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
  /** By the id of the server; one without a recent value is missing. */
  readonly values: ReadonlyMap<string, ServerValues>
  readonly collector: CollectorState
}

/** The newest value of one metric on a server: of several series the largest, with the labels of that one. */
export type NewestValue = {
  readonly value: number
  readonly labels: Readonly<Record<string, string>>
  readonly sampledAtMs: number
}

export type MetricOfCompany = {
  /** By the id of the server; one without a recent value is missing. */
  readonly values: ReadonlyMap<string, NewestValue>
  readonly collector: CollectorState
}

type Member = 'cpu' | 'memory' | 'disk' | 'load'
const metrics: Readonly<Record<Member, string>> = {
  cpu: 'cpu_usage_percent',
  memory: 'mem_used_percent',
  disk: 'disk_used_percent',
  load: 'cpu_load1',
}
const members = Object.keys(metrics) as readonly Member[]

const NOTHING: Omit<ServerValues, 'sampledAtMs'> = { cpu: null, memory: null, disk: null, mount: null, load: null }
const rounded = (value: number): number => Math.round(value * 100) / 100

function byServer(columns: ReadonlyMap<Member, ValueColumns>): Map<string, ServerValues> {
  const found = new Map<string, ServerValues>()
  for (const [member, { server_ids, values, ts_ms, labels }] of columns)
    for (const [at, id] of server_ids.entries()) {
      const known = found.get(id) ?? { ...NOTHING, sampledAtMs: 0 }
      found.set(id, {
        ...known,
        [member]: rounded(values[at] ?? 0),
        mount: member === 'disk' ? (labels[at]?.mount ?? null) : known.mount,
        sampledAtMs: Math.max(known.sampledAtMs, ts_ms[at] ?? 0),
      })
    }
  return found
}

const valuesIn = ({ server_ids, values, ts_ms, labels }: ValueColumns): Map<string, NewestValue> =>
  new Map(
    server_ids.map((id, at) => [id, { value: values[at] ?? 0, labels: labels[at] ?? {}, sampledAtMs: ts_ms[at] ?? 0 }]),
  )

export class NewestValues {
  private readonly columns: RecentValues<ValueColumns | null>
  private readonly joined: RecentValues<NewestOfCompany>
  private readonly single: RecentValues<MetricOfCompany>

  constructor(private readonly hub: Hub) {
    this.columns = new RecentValues(VALUES_AGE_MS, KEPT_MAX, hub.now)
    this.joined = new RecentValues(VALUES_AGE_MS, KEPT_MAX, hub.now)
    this.single = new RecentValues(VALUES_AGE_MS, KEPT_MAX, hub.now)
  }

  /** Null: no collector has answered in time, now or a little before. */
  private async columnsOf(companyId: string, metric: string): Promise<ValueColumns | null> {
    const key = `${companyId} ${metric}`
    const asked = this.columns.get(key, () => this.hub.collectors.valuesOfCompany(companyId, metric))
    const answered = asked.catch(error => {
      this.hub.log.warn({ err: error }, 'cannot ask the collector')
      return null
    })
    const last = () => this.columns.last(key, VALUES_USABLE_MS)
    return (await pTimeout(answered, { milliseconds: COLLECTOR_WAIT_MS, fallback: last })) ?? last()
  }

  private async read(companyId: string): Promise<NewestOfCompany> {
    const columns = new Map<Member, ValueColumns>()
    const read = async (member: Member): Promise<void> => {
      const answer = await this.columnsOf(companyId, metrics[member])
      if (answer !== null) columns.set(member, answer)
    }
    await Promise.all(members.map(read))
    if (columns.size > 0) return { values: byServer(columns), collector: 'ok' }
    return { values: new Map(), collector: await this.silence() }
  }

  /** Why there are no values. */
  private async silence(): Promise<CollectorState> {
    return (await this.hub.collectors.targets()).length === 0 ? 'not_configured' : 'unavailable'
  }

  of(companyId: string): Promise<NewestOfCompany> {
    return this.joined.get(companyId, () => this.read(companyId))
  }

  /** The newest value of one metric of the catalogue on every server that has one. */
  ofMetric(companyId: string, metric: string): Promise<MetricOfCompany> {
    return this.single.get(`${companyId} ${metric}`, async () => {
      const columns = await this.columnsOf(companyId, metric)
      if (columns === null) return { values: new Map(), collector: await this.silence() }
      return { values: valuesIn(columns), collector: 'ok' }
    })
  }
}

/** What a list shows of a server's connection: one that has just sent is heard, whatever the records say yet. */
export const connectivityNow = (
  { connectivity, lastSeenAtMs }: FleetServer,
  values: ServerValues | undefined,
  nowMs: number,
  thresholdMs: number,
): FleetServer['connectivity'] =>
  values !== undefined &&
  connectivity === 'unknown' &&
  lastSeenAtMs === null &&
  nowMs - values.sampledAtMs < thresholdMs
    ? 'online'
    : connectivity
