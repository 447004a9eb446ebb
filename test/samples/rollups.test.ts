import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { SamplesReader } from '../../apps/collector/store/clickhouse/samples-query.ts'
import { readCompleteness, runRollups } from '../../apps/collector/store/clickhouse/samples-rollups.ts'
import { RollupSchedule } from '../../apps/collector/worker/samples/rollup-schedule.ts'
import { SampleWriter } from '../../apps/collector/worker/samples/sample-writer.ts'
import type { SeriesPlan, SeriesSource } from '../../core/query/query-plan.ts'
import { type Aggregate, aggregates } from '../../core/query/series-request.ts'
import { cellMs } from '../../core/samples/rollup/cell-width.ts'
import { computableBeforeMs } from '../../core/samples/rollup/computable-before.ts'
import { entryOf, openTestBus, openTestStore, type TestSeries } from '../support/clickhouse.ts'
import { randomFrom } from '../support/random.ts'
import { until } from '../support/until.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const SERVERS = ['aaaaaaaa-0000-4000-8000-000000000001', 'aaaaaaaa-0000-4000-8000-000000000002']
const METRIC = 'disk_used_percent'
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
// The store drops samples that are older than 30 days, so the data must be of now.
const END = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 25 * MINUTE_MS + 4_000
const START = END - 26 * HOUR_MS

/** What was sent last for each time, by server and label. */
type Truth = Map<string, Map<number, number>>

describe('samples that are sent in any order', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
  const random = randomFrom(seed)
  const below = (bound: number): number => Math.floor(random() * bound)
  const bus = openTestBus()
  const reader = bus.openReader()
  const truth: Truth = new Map()
  let clockMs = START
  let store: ClickHouse
  let writer: SampleWriter
  let running: Promise<void>
  const troubles: unknown[] = []

  beforeAll(async () => {
    console.log(`seed ${seed}: repeat with SEED=${seed}`)
    store = await openTestStore()
    writer = new SampleWriter({
      store,
      bus: reader,
      nowMs: () => clockMs,
      onInserted: () => undefined,
      onDefinitions: () => undefined,
      onTrouble: error => troubles.push(error),
    })
    running = writer.run()
    await sendAll()
  }, 120_000)
  afterAll(async () => {
    writer.stop()
    await running
    await reader.close()
    await bus.close()
    await store.close()
  })

  /** Sends some points of a server and notes what must be read from now on. */
  async function send(serverId: string, mounts: readonly string[], times: readonly number[]): Promise<void> {
    const series: TestSeries[] = mounts.map(mount => {
      const values = new Map<number, number>(times.map(tsMs => [tsMs, below(1000) / 8]))
      const key = `${serverId} ${mount}`
      const known = truth.get(key) ?? new Map<number, number>()
      truth.set(key, known)
      for (const [tsMs, value] of values) known.set(tsMs, value)
      return { metric: METRIC, labels: { mount }, points: [...values] }
    })
    expect(await bus.writer.publish(serverId, entryOf(COMPANY, serverId, series, clockMs))).toBeNull()
  }

  /** A day of samples every minute, with some of every time left out, given late, twice, and with another value. */
  async function sendAll(): Promise<void> {
    for (let hour = 0; hour < 26; hour++) {
      clockMs = START + hour * HOUR_MS
      const minutes = Array.from({ length: 60 }, (_, minute) => clockMs - HOUR_MS + minute * MINUTE_MS + below(900))
      for (const serverId of SERVERS) {
        await send(
          serverId,
          ['/', '/var'],
          minutes.filter(() => random() < 0.7),
        )
        const past = Array.from({ length: below(40) }, () => clockMs - below(24 * HOUR_MS))
        if (past.length > 0) await send(serverId, ['/'], past)
        const resent = [...(truth.get(`${serverId} /var`)?.keys() ?? [])].filter(() => random() < 0.05)
        if (resent.length > 0) await send(serverId, ['/var'], resent)
      }
      if (random() < 0.5) {
        await writer.flush()
        await runRollups(store, clockMs + below(2) * 2 * MINUTE_MS)
      }
    }
    clockMs = END
    await writer.flush()
    await runRollups(store, END)
  }

  const plan = (over: Partial<SeriesPlan>): SeriesPlan => ({
    companyId: COMPANY,
    serverId: SERVERS[0]!,
    metric: METRIC,
    agg: 'avg',
    fromMs: START,
    toMs: END,
    stepMs: HOUR_MS,
    source: 'raw',
    oldestMs: Number.NEGATIVE_INFINITY,
    isEmpty: false,
    fallsBackToRaw: false,
    ...over,
  })

  /** The samples that a plan covers: cells are read whole, raw samples one by one. */
  function covered(each: SeriesPlan, completeMs: number, points: ReadonlyMap<number, number>): [number, number][] {
    const width = each.source === 'raw' ? 1 : cellMs[each.source]
    const fromMs = Math.floor(each.fromMs / width) * width
    return [...points]
      .filter(([tsMs]) => {
        const isInCell = each.source !== 'raw' && tsMs < completeMs
        return tsMs >= fromMs && (isInCell ? Math.floor(tsMs / width) * width <= each.toMs : tsMs <= each.toMs)
      })
      .sort(([a], [b]) => a - b)
  }

  const naive: Readonly<Record<Aggregate, (values: readonly number[]) => number>> = {
    avg: values => values.reduce((sum, value) => sum + value, 0) / values.length,
    min: values => Math.min(...values),
    max: values => Math.max(...values),
    last: values => values[values.length - 1]!,
  }

  function expected(each: SeriesPlan, completeMs: number) {
    const series: { labels: { mount: string }; points: [number, number][] }[] = []
    for (const [key, points] of [...truth].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const [serverId, mount] = key.split(' ')
      if (serverId !== each.serverId || mount === undefined) continue
      const buckets = new Map<number, number[]>()
      for (const [tsMs, value] of covered(each, completeMs, points)) {
        const bucket = Math.floor(tsMs / each.stepMs) * each.stepMs
        buckets.set(bucket, [...(buckets.get(bucket) ?? []), value])
      }
      if (buckets.size > 0)
        series.push({
          labels: { mount },
          points: [...buckets].map(([bucket, values]) => [bucket, naive[each.agg](values)]),
        })
    }
    return series
  }

  async function check(each: SeriesPlan): Promise<void> {
    const complete = await readCompleteness(store)
    const completeMs = each.source === 'raw' ? 0 : complete[each.source]
    const answer = await new SamplesReader(store, () => Date.now()).querySeries(each, completeMs)
    const wanted = expected(each, completeMs)
    const context = JSON.stringify({ seed, each, completeMs })
    expect([context, answer.series.map(({ labels }) => labels)]).toEqual([context, wanted.map(({ labels }) => labels)])
    answer.series.forEach((series, index) => {
      const points = wanted[index]!.points
      expect([context, series.points.map(([tsMs]) => tsMs)]).toEqual([context, points.map(([tsMs]) => tsMs)])
      series.points.forEach(([tsMs, value], at) => {
        const difference = Math.abs(value - points[at]![1])
        if (difference > 1e-9 * Math.max(1, Math.abs(value)))
          throw new Error(`${context}: ${tsMs} is ${value}, expected ${points[at]![1]}`)
      })
    })
  }

  const sources: readonly SeriesSource[] = ['raw', '5m', '1h']
  async function checkMany(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn++) {
      const source = sources[turn % 3]!
      const unit = source === 'raw' ? 1000 : cellMs[source]
      const fromMs = START + below(20 * HOUR_MS)
      await check(
        plan({
          source,
          serverId: SERVERS[below(2)]!,
          agg: aggregates[below(4)]!,
          fromMs,
          toMs: fromMs + 1 + below(END - fromMs),
          stepMs: source === 'raw' ? 30_000 + below(3000) * 1000 : unit * (1 + below(5)),
        }),
      )
    }
  }

  test('[STO-002] [STO-003] [STO-004] [STO-009] [QRY-023] cells and queries equal a computation over the last value of every point', async () => {
    await checkMany(60)
    expect(troubles).toEqual([])
  }, 120_000)

  test('[STO-004] every cell holds what the de-duplicated samples give', async () => {
    const rows = await store.rows(
      `SELECT toString(server_id), toFloat64(toUnixTimestamp64Milli(ts)), sum(count) FROM ${store.database}.rollup_5m FINAL
       GROUP BY server_id, ts`,
    )
    const counts = new Map(rows.map(([server, ts, count]) => [`${server} ${ts}`, Number(count)]))
    const wanted = new Map<string, number>()
    const complete = await readCompleteness(store)
    for (const [key, points] of truth)
      for (const tsMs of points.keys()) {
        const cell = Math.floor(tsMs / cellMs['5m']) * cellMs['5m']
        if (cell >= complete['5m']) continue
        const name = `${key.split(' ')[0]} ${cell}`
        wanted.set(name, (wanted.get(name) ?? 0) + 1)
      }
    expect(counts).toEqual(wanted)
  })

  test('[STO-009] a point that comes 24 hours late is in the rollups after the next pass', async () => {
    const lateMs = clockMs - 24 * HOUR_MS + 1
    await send(SERVERS[0]!, ['/late'], [lateMs])
    await writer.flush()
    await runRollups(store, clockMs)
    for (const source of ['5m', '1h'] as const) await check(plan({ source, fromMs: lateMs, toMs: lateMs + 1 }))
    expect(await store.rows(`SELECT count() FROM ${store.database}.rollup_late`)).toEqual([[0]])
  })

  test('[QRY-024] where the rollup is empty raw is read, with the step of the rollup', async () => {
    const times = [END - 5 * HOUR_MS, END - 4 * HOUR_MS, END - HOUR_MS]
    const serverId = 'aaaaaaaa-0000-4000-8000-000000000009'
    await send(serverId, ['/'], times)
    await writer.flush()
    // Noted as late, and not computed yet: up to here the cells of other servers are complete, of this one there are
    // none.
    const complete = await readCompleteness(store)
    const each = plan({ serverId, source: '1h', stepMs: 2 * HOUR_MS, toMs: END - 2 * HOUR_MS })
    expect((await new SamplesReader(store, () => Date.now()).querySeries(each, complete['1h'])).series).toEqual([])
    const answer = await new SamplesReader(store, () => Date.now()).querySeries(
      { ...each, fallsBackToRaw: true },
      complete['1h'],
    )
    expect(answer).toEqual({ source: 'raw', series: expected({ ...each, source: 'raw' }, 0) })
    expect(answer.series).toHaveLength(1)
  })

  test('[STO-004] the same batches in another order and some of them twice give the same cells, to the bit', async () => {
    const serverId = 'aaaaaaaa-0000-4000-8000-00000000000a'
    const hour = Math.floor(START / HOUR_MS) * HOUR_MS
    const batches = Array.from({ length: 120 }, (_, index): TestSeries[] =>
      ['/', '/var', '/third'].map((mount, unit) => ({
        metric: METRIC,
        labels: { mount },
        points: [0, 1].map(
          point =>
            [
              hour + index * MINUTE_MS + point * 30_000 + unit,
              unit === 0 ? below(1000) / 100 : unit === 1 ? below(1e9) * 4096 : random() / 3,
            ] as const,
        ),
      })),
    )
    const cellsOf = async (order: readonly number[]): Promise<unknown[][]> => {
      const own = await openTestStore()
      const ownBus = openTestBus()
      const ownReader = ownBus.openReader()
      const ownWriter = new SampleWriter({
        store: own,
        bus: ownReader,
        nowMs: () => END,
        onInserted: () => undefined,
        onDefinitions: () => undefined,
        onTrouble: error => troubles.push(error),
      })
      const ended = ownWriter.run()
      for (const [turn, index] of order.entries()) {
        const entry = entryOf(COMPANY, serverId, batches[index]!, hour + index * MINUTE_MS)
        expect(await ownBus.writer.publish(serverId, entry)).toBeNull()
        if (turn % 50 === 49) {
          await ownWriter.flush()
          await runRollups(own, END)
        }
      }
      await ownWriter.flush()
      await runRollups(own, END)
      const cells: unknown[][] = []
      for (const cell of ['5m', '1h'])
        cells.push(
          ...(await own.rows(
            `SELECT series_id, ts, count, sum, min, max, last, last_ts FROM ${own.database}.rollup_${cell} FINAL ORDER BY series_id, ts`,
          )),
        )
      ownWriter.stop()
      await ended
      await ownReader.close()
      await ownBus.close()
      await own.close()
      return cells
    }
    const straight = batches.map((_, index) => index)
    const mixed = [...straight, ...straight.filter(() => random() < 0.4)].sort(() => random() - 0.5)
    const cells = await cellsOf(straight)
    expect(cells).toHaveLength(3 * (24 + 2))
    expect([seed, await cellsOf(mixed)]).toEqual([seed, cells])
  }, 120_000)
})

test('[STO-009] a late point counts although the clock was set back since another one came late', async () => {
  const store = await openTestStore()
  const bus = openTestBus()
  const reader = bus.openReader()
  const hour = END - (END % HOUR_MS) - 3 * HOUR_MS
  let clockMs = hour
  const writer = new SampleWriter({
    store,
    bus: reader,
    nowMs: () => clockMs,
    onInserted: () => undefined,
    onDefinitions: () => undefined,
    onTrouble: error => {
      throw error
    },
    computedBeforeMs: () => hour + HOUR_MS,
  })
  const running = writer.run()
  // Ahead by two hours, then right.
  for (const [turn, passMs] of [hour + 4 * HOUR_MS, hour + 5 * HOUR_MS, hour + 2 * HOUR_MS].entries()) {
    clockMs = passMs
    const points = [[hour + turn * 1_000, turn]] as const
    await bus.writer.publish(SERVERS[0]!, entryOf(COMPANY, SERVERS[0]!, [{ metric: METRIC, points }], clockMs))
    await writer.flush()
    await runRollups(store, passMs)
    for (const cell of ['5m', '1h'])
      expect(await store.rows(`SELECT count, max FROM ${store.database}.rollup_${cell} FINAL`)).toEqual([
        [turn + 1, turn],
      ])
  }
  writer.stop()
  await running
  await reader.close()
  await bus.close()
  await store.close()
})

test('of two versions of a cell the higher counts, and of one version the one that was stored later', async () => {
  const store = await openTestStore()
  const { database } = store
  const id = 'bbbbbbbb-0000-4000-8000-000000000001'
  await store.command(
    `INSERT INTO ${database}.series SELECT '${COMPANY}', '${id}', '${METRIC}', 7, '${METRIC}', now64(3), now64(3)`,
  )
  const hour = END - (END % HOUR_MS) - 3 * HOUR_MS
  const put = (atMs: number, value: number, version: number): Promise<void> =>
    store.command(
      `INSERT INTO ${database}.rollup_1h (company_id, server_id, series_id, ts, count, last_after, decimals, last_digits, version)
       SELECT '${COMPANY}', '${id}', 7, fromUnixTimestamp64Milli(toInt64(${atMs}), 'UTC'), 1, 0, 0, ${value}, ${version}`,
    )
  for (const value of [1, 2, 3]) await put(hour, value, 0)
  for (const [value, version] of [
    [5, 9],
    [4, 8],
  ] as const)
    await put(hour + HOUR_MS, value, version)
  for (const agg of aggregates) {
    const answer = await new SamplesReader(store, () => END).querySeries(
      {
        companyId: COMPANY,
        serverId: id,
        metric: METRIC,
        agg,
        fromMs: hour,
        toMs: END,
        stepMs: HOUR_MS,
        source: '1h',
        oldestMs: 0,
        isEmpty: false,
        fallsBackToRaw: false,
      },
      END,
    )
    expect(answer.series.map(({ points }) => points)).toEqual([
      [
        [hour, 3],
        [hour + HOUR_MS, 5],
      ],
    ])
  }
  await store.close()
})

describe('an hour without the store', () => {
  const bus = openTestBus()
  const reader = bus.openReader()
  const end = Math.floor(Date.now() / HOUR_MS) * HOUR_MS
  const servers = 4
  const points = 20
  let store: ClickHouse
  beforeAll(async () => {
    store = await openTestStore()
  })
  afterAll(async () => {
    await reader.close()
    await bus.close()
    await store.close()
  })

  test('[STO-001] what was acknowledged is stored afterwards, and its cells are computed once, as if nothing had been', async () => {
    const db = store.database
    await store.command(`RENAME TABLE ${db}.samples_raw TO ${db}.samples_away`)
    let schedule: RollupSchedule | null = null
    const writer = new SampleWriter({
      store,
      bus: reader,
      nowMs: () => end + 5 * MINUTE_MS,
      onInserted: () => undefined,
      onDefinitions: () => undefined,
      onTrouble: () => undefined,
      computedBeforeMs: () => schedule?.claimedBeforeMs ?? 0,
    })
    schedule = new RollupSchedule({
      store,
      nowMs: () => end + 5 * MINUTE_MS,
      isLeader: () => true,
      arrivedBeforeMs: () => writer.arrivedBeforeMs(),
      onTrouble: error => {
        throw error
      },
    })
    const running = writer.run()
    for (let turn = 0; turn < 120; turn++)
      for (let server = 0; server < servers; server++) {
        const serverId = `aaaaaaaa-0000-4000-8000-0000000001${server}0`
        const tsMs = end - HOUR_MS + turn * 30_000
        const series = Array.from({ length: points }, (_, disk) => ({
          metric: METRIC,
          labels: { mount: `/${disk}` },
          points: [[tsMs, turn]] as const,
        }))
        expect(await bus.writer.publish(serverId, entryOf(COMPANY, serverId, series, tsMs))).toBeNull()
      }
    const stored = writer.flush()
    await until('a failed insert', () => writer.insertErrors > 0)
    expect(await writer.lagEntries()).toBe(120 * servers)
    // A pass that came now would leave the cells of the hour for later.
    expect(writer.arrivedBeforeMs()).toBe(end - HOUR_MS)
    expect(computableBeforeMs(end + 5 * MINUTE_MS, writer.arrivedBeforeMs())).toBeLessThan(end - HOUR_MS)

    await store.command(`RENAME TABLE ${db}.samples_away TO ${db}.samples_raw`)
    await stored
    await writer.drained()
    expect(await store.rows(`SELECT count() FROM ${db}.samples`)).toEqual([[120 * servers * points]])
    expect(await store.rows(`SELECT count() FROM ${db}.rollup_late`)).toEqual([[0]])
    await schedule.runNow(end + 5 * MINUTE_MS)
    for (const [cell, count] of [
      ['5m', 12],
      ['1h', 1],
    ] as const)
      expect(await store.rows(`SELECT count(), sum(count) FROM ${db}.rollup_${cell}`)).toEqual([
        [count * servers * points, 120 * servers * points],
      ])
    writer.stop()
    await running
  }, 120_000)
})
