// Several metrics in one query are what single queries give, and a large answer names what it leaves out.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { SamplesReader } from '../../apps/collector/store/clickhouse/samples-query.ts'
import { readCompleteness, runRollups } from '../../apps/collector/store/clickhouse/samples-rollups.ts'
import { SampleWriter } from '../../apps/collector/worker/samples/sample-writer.ts'
import type { RangePlan, SeriesSource } from '../../core/query/query-plan.ts'
import { entryOf, openTestBus, openTestStore, type TestSeries } from '../support/clickhouse.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const OTHER_COMPANY = '11111111-1111-4111-8111-222222222222'
const SERVER = 'aaaaaaaa-0000-4000-8000-000000000001'
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const END = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS
const START = END - 4 * HOUR_MS
const [DISK, LOAD, CPU, MEMORY] = ['disk_used_percent', 'cpu_load1', 'cpu_usage_percent', 'mem_used_percent'] as const
const ALL = [DISK, LOAD, CPU, MEMORY]

describe('several metrics in one query', () => {
  const bus = openTestBus()
  const busReader = bus.openReader()
  let clockMs = END + MINUTE_MS
  let store: ClickHouse
  let writer: SampleWriter
  let reader: SamplesReader
  let running: Promise<void>
  const troubles: unknown[] = []

  const send = async (series: readonly TestSeries[]): Promise<void> => {
    expect(await bus.writer.publish(SERVER, entryOf(COMPANY, SERVER, series, clockMs))).toBeNull()
    await writer.flush()
  }
  beforeAll(async () => {
    store = await openTestStore()
    reader = new SamplesReader(store, () => Date.now())
    writer = new SampleWriter({
      store,
      bus: busReader,
      nowMs: () => clockMs,
      onInserted: () => undefined,
      onDefinitions: () => reader.forgetDefinitions(),
      onTrouble: error => troubles.push(error),
    })
    running = writer.run()
    const points = Array.from({ length: 240 }, (_, at): [number, number] => [START + at * MINUTE_MS, (at * 37) % 101])
    await send([
      { metric: DISK, labels: { mount: '/' }, points },
      { metric: DISK, labels: { mount: '/var' }, points: points.map(([tsMs, value]) => [tsMs, value / 2]) },
      { metric: LOAD, points },
      { metric: CPU, points: points.slice(0, 30) },
    ])
    await runRollups(store, clockMs)
    // Of this metric no cell is computed: it is read from the samples.
    clockMs = END + 2 * MINUTE_MS
    await send([{ metric: MEMORY, points }])
  })
  afterAll(async () => {
    writer.stop()
    await running
    await busReader.close()
    await bus.close()
    await store.close()
  })

  const planOf = (source: SeriesSource, over: Partial<RangePlan> = {}): RangePlan => ({
    companyId: COMPANY,
    serverId: SERVER,
    agg: 'avg',
    fromMs: START,
    toMs: END,
    stepMs: source === '1h' ? HOUR_MS : 5 * MINUTE_MS,
    source,
    oldestMs: Number.NEGATIVE_INFINITY,
    isEmpty: false,
    fallsBackToRaw: source !== 'raw',
    ...over,
  })
  const completeOf = async (source: SeriesSource): Promise<number> =>
    source === 'raw' ? 0 : (await readCompleteness(store))[source]

  test('the answer has, in the order of the metrics, what each of them gives alone, from cells and from samples', async () => {
    for (const source of ['raw', '5m', '1h'] as const)
      for (const agg of ['avg', 'max'] as const) {
        const [plan, completeMs] = [planOf(source, { agg }), await completeOf(source)]
        const together = await reader.queryMetrics(plan, [...ALL].reverse(), completeMs, 100_000)
        const alone = []
        for (const metric of [...ALL].reverse())
          for (const series of (await reader.querySeries({ ...plan, metric }, completeMs)).series)
            alone.push({ metric, ...series })
        expect(alone.map(({ metric }) => metric)).toEqual([MEMORY, CPU, LOAD, DISK, DISK])
        expect([source, agg, together.leftOut, together.series]).toEqual([source, agg, [], alone])
      }
    expect(troubles).toEqual([])
  })

  test('[QRY-018] a company has the series of its own servers only', async () => {
    const answer = await reader.queryMetrics(planOf('raw', { companyId: OTHER_COMPANY }), ALL, 0, 100_000)
    expect(answer.series).toEqual([])
    expect(await reader.keysOfServer(OTHER_COMPANY, SERVER, ALL)).toEqual([])
    expect(await reader.keysOfServer(COMPANY, SERVER, ALL)).toEqual([
      LOAD,
      CPU,
      `${DISK}{mount="/"}`,
      `${DISK}{mount="/var"}`,
      MEMORY,
    ])
  })

  test('beyond the bound on points metrics are left out whole and named; the first never is', async () => {
    // Every series is a statement of its own: over 64 days one is read at a time.
    const plan = planOf('raw', { fromMs: END - 64 * 24 * HOUR_MS, stepMs: MINUTE_MS })
    const some = await reader.queryMetrics(plan, ALL, 0, 500)
    expect(some.leftOut).toEqual([CPU, MEMORY])
    expect(some.series.map(({ metric }) => metric)).toEqual([DISK, DISK, LOAD])
    const first = await reader.queryMetrics(plan, ALL, 0, 1)
    expect(first.leftOut).toEqual([LOAD, CPU, MEMORY])
    expect(first.series.map(({ points }) => points.length)).toEqual([240, 240])
  })
})
