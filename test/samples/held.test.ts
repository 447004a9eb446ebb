import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type { ClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { purgeSamples } from '../../apps/collector/store/clickhouse/samples-delete.ts'
import { SamplesReader } from '../../apps/collector/store/clickhouse/samples-query.ts'
import { LatestValues } from '../../apps/collector/worker/samples/latest-values.ts'
import { SampleWriter } from '../../apps/collector/worker/samples/sample-writer.ts'
import { EntryReader } from '../../core/bus/entry.ts'
import type { SeriesPlan } from '../../core/query/query-plan.ts'
import { aggregates } from '../../core/query/series-request.ts'
import { SampleBlock } from '../../core/samples/block/sample-block.ts'
import { CELL_5M_MS, cellMs } from '../../core/samples/rollup/cell-width.ts'
import { emptyTable, entryOf, openTestBus, openTestStore, type TestSeries } from '../support/clickhouse.ts'
import { randomFrom } from '../support/random.ts'
import { until } from '../support/until.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const server = (index: number): string => `aaaaaaaa-0000-4000-8000-${String(index).padStart(12, '0')}`
const METRIC = 'disk_used_percent'
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const NOW = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOUR_MS / 2

describe('samples that are held before they are stored', () => {
  let store: ClickHouse
  let clockMs = NOW
  let computedMs = 0
  const ends: (() => Promise<void>)[] = []

  beforeAll(async () => {
    store = await openTestStore()
  })
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
    for (const table of ['samples_raw', 'series', 'rollup_late']) await emptyTable(store, table)
    clockMs = NOW
    computedMs = 0
  })
  afterAll(() => store.close())

  function openBus() {
    const bus = openTestBus()
    ends.push(() => bus.close())
    return bus
  }
  type TestBus = ReturnType<typeof openBus>

  const throwTrouble = (error: unknown): void => {
    throw error
  }

  function start(
    bus: TestBus,
    hold = { ms: 300_000, bytes: 2 ** 30 },
    startedAtMs = NOW - HOUR_MS,
    onTrouble = throwTrouble,
  ) {
    const busReader = bus.openReader()
    clockMs = startedAtMs
    const writer = new SampleWriter({
      store,
      bus: busReader,
      nowMs: () => clockMs,
      hold,
      computedBeforeMs: () => computedMs,
      onInserted: () => undefined,
      onDefinitions: () => reader.forgetDefinitions(),
      onTrouble,
    })
    const reader = new SamplesReader(
      store,
      () => Date.now(),
      (...server) => writer.bufferedOf(...server),
      (...server) => writer.pendingDefinitions(...server),
    )
    clockMs = NOW
    const running = writer.run()
    const abort = async (): Promise<void> => {
      writer.abort()
      await running
      await busReader.close()
    }
    ends.push(abort)
    const send = async (serverId: string, series: readonly TestSeries[]): Promise<void> => {
      const seen = (): number => [...writer.bufferedOf(COMPANY, serverId)].length + writer.rowsStored
      const before = seen()
      expect(await bus.writer.publish(serverId, entryOf(COMPANY, serverId, series, clockMs))).toBeNull()
      writer.wake()
      await until('the samples are read', () => seen() !== before)
    }
    return { writer, reader, send, abort }
  }
  const seriesStored = async (): Promise<number> =>
    Number((await store.rows(`SELECT count() FROM ${store.database}.series`))[0]?.[0])
  const definitionsAreStored = (): Promise<unknown> => {
    clockMs += 1_000
    return until('the series are known', async () => (await seriesStored()) > 0)
  }
  const countStored = async (): Promise<number> =>
    Number((await store.rows(`SELECT count() FROM ${store.database}.samples`))[0]?.[0])

  const plan = (over: Partial<SeriesPlan>): SeriesPlan => ({
    companyId: COMPANY,
    serverId: server(1),
    metric: METRIC,
    agg: 'avg',
    fromMs: NOW - 6 * HOUR_MS,
    toMs: NOW + HOUR_MS,
    stepMs: 7 * MINUTE_MS,
    source: 'raw',
    oldestMs: Number.NEGATIVE_INFINITY,
    isEmpty: false,
    fallsBackToRaw: false,
    ...over,
  })

  test('[QRY-001] [STO-001] a query answers the same before they are stored and after, whatever was sent again', async () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
    console.log(`seed ${seed}: repeat with SEED=${seed}`)
    const random = randomFrom(seed)
    const below = (bound: number): number => Math.floor(random() * bound)
    const bus = openBus()
    const { writer, reader, send } = start(bus)
    const truth = new Map<string, Map<number, number>>()
    const sendSome = async (mount = `/${below(3)}`): Promise<void> => {
      const points = Array.from(
        { length: 1 + below(30) },
        () => [NOW - below(5 * 60) * MINUTE_MS, below(10_000) / 100] as const,
      )
      const known = truth.get(mount) ?? new Map<number, number>()
      truth.set(mount, known)
      for (const [tsMs, value] of points) known.set(tsMs, value)
      await send(server(1), [{ metric: METRIC, labels: { mount }, points }])
    }
    const plans = aggregates.flatMap(agg => [
      plan({ agg }),
      plan({ agg, fromMs: NOW - 2 * HOUR_MS, toMs: NOW - HOUR_MS, stepMs: MINUTE_MS }),
      plan({ agg, source: '5m', stepMs: cellMs['5m'] }),
    ])
    const answers = async () => {
      const found = []
      for (const each of plans) found.push((await reader.querySeries(each, NOW - 3 * HOUR_MS)).series)
      return found
    }
    for (let turn = 0; turn < 4; turn++) {
      if (turn === 0) for (const mount of ['/0', '/1', '/2']) await sendSome(mount)
      for (let batch = 0; batch < 6; batch++) await sendSome()
      if (turn === 0) await definitionsAreStored()
      const before = await answers()
      expect(writer.bufferRows).toBeGreaterThan(0)
      const points = before[0]!.flatMap(each => each.points)
      expect([seed, points.length > 10]).toEqual([seed, true])
      await writer.flush()
      expect(writer.bufferRows).toBe(0)
      const after = await answers()
      for (const [index, series] of before.entries()) {
        expect(series.map(each => each.labels)).toEqual(after[index]!.map(each => each.labels))
        for (const [at, { points }] of series.entries()) {
          const others = after[index]![at]!.points
          expect(points.map(([tsMs]) => tsMs)).toEqual(others.map(([tsMs]) => tsMs))
          for (const [place, [, value]] of points.entries()) expect(value).toBeCloseTo(others[place]![1], 9)
        }
      }
    }
    // And that is what was sent last.
    for (const { labels, points } of (await reader.querySeries(plan({ agg: 'last', stepMs: 1 }), 0)).series)
      expect([seed, points]).toEqual([seed, [...truth.get(labels.mount!)!].sort(([a], [b]) => a - b)])
    expect(await countStored()).toBe([...truth.values()].reduce((sum, points) => sum + points.size, 0))
  })

  test('a sample of a series that the store was not told of yet is read at once, beside those that it knows', async () => {
    const { reader, send } = start(openBus())
    const labels = async () =>
      (await reader.querySeries(plan({ agg: 'last', stepMs: 1 }), 0)).series.map(series => series.labels.mount)
    const point = (mount: string) => [{ metric: METRIC, labels: { mount }, points: [[NOW, 5]] as const }]
    // The clock stands: the store is told of no series before it has gone on.
    await send(server(1), point('/b'))
    expect(await labels()).toEqual(['/b'])
    expect(await seriesStored()).toBe(0)
    await send(server(2), point('/other'))
    await definitionsAreStored()
    await until('both to be known', async () => (await seriesStored()) === 2)
    expect(await labels()).toEqual(['/b'])
    for (const mount of ['/c', '/a']) await send(server(1), point(mount))
    expect(await labels()).toEqual(['/a', '/b', '/c'])
    expect(await seriesStored()).toBe(2)
  })

  test('the values of a company have those of a series that the store was not told of yet', async () => {
    const { writer, reader, send } = start(openBus())
    await send(server(1), [{ metric: METRIC, points: [[NOW, 7]] }])
    const latest = new LatestValues({
      reader,
      nowMs: () => clockMs,
      isOwn: () => true,
      bufferedCompany: writer.bufferedCompany,
      onTrouble: throwTrouble,
    })
    const found = await latest.readCompany(COMPANY, METRIC, NOW - HOUR_MS)
    expect(found).toMatchObject({ serverIds: [server(1)], values: [7] })
    expect(await seriesStored()).toBe(0)
  })

  test('[STO-001] what is held when the worker dies is read from the bus again', async () => {
    const bus = openBus()
    const first = start(bus)
    await first.send(server(1), [{ metric: METRIC, points: [[NOW, 5]] }])
    await definitionsAreStored()
    await first.abort()
    expect(await countStored()).toBe(0)
    const second = start(bus)
    await until('they are read', () => second.writer.bufferRows === 1)
    expect((await second.reader.querySeries(plan({ agg: 'last', stepMs: 1 }), 0)).series).toMatchObject([
      { points: [[NOW, 5]] },
    ])
    await second.writer.flush()
    expect(await countStored()).toBe(1)
  })

  test('they are stored when they were held for long enough, and are no lag once they are read', async () => {
    const { writer, send } = start(openBus())
    await send(server(1), [{ metric: METRIC, points: [[NOW - MINUTE_MS, 0]] }])
    expect([await writer.lagEntries(), await seriesStored()]).toEqual([0, 0])
    await definitionsAreStored()
    expect(await writer.lagEntries()).toBe(0)
    for (let minute = 0; minute < 5; minute++) {
      clockMs = NOW + minute * MINUTE_MS
      await send(server(1), [{ metric: METRIC, points: [[clockMs, minute]] }])
    }
    expect(writer.blocksStored).toBe(0)
    clockMs = NOW + 5 * MINUTE_MS
    await until('they are stored', () => writer.blocksStored === 1)
    expect(await store.rows(`SELECT count() FROM ${store.database}.samples_raw`)).toEqual([[1]])
    expect(await countStored()).toBe(6)
  })

  test('they are stored at once when they take more of the bus than they may', async () => {
    const { writer, send } = start(openBus(), { ms: 300_000, bytes: 2_000 })
    const points = Array.from({ length: 300 }, (_, index) => [NOW - index * 1_000, index] as const)
    await send(server(1), [{ metric: METRIC, points: points.slice(0, 3) }])
    expect(writer.blocksStored).toBe(0)
    await send(server(1), [{ metric: METRIC, points }])
    await until('they are stored', () => writer.blocksStored > 0)
  })

  test('[STO-009] samples for a cell that is computed already are held for a minute at most', async () => {
    const { writer, send } = start(openBus())
    computedMs = NOW
    await send(server(1), [{ metric: METRIC, points: [[NOW, 1]] }])
    clockMs = NOW + MINUTE_MS / 2
    await send(server(2), [{ metric: METRIC, points: [[NOW - CELL_5M_MS, 1]] }])
    expect(writer.blocksStored).toBe(0)
    clockMs = NOW + MINUTE_MS
    await until('they are stored', () => writer.blocksStored === 1)
  })

  test('[STO-007] [PUR-010] what is held of a purged server is answered no more, and never stored', async () => {
    const { writer, reader, send } = start(openBus())
    for (const index of [1, 2]) await send(server(index), [{ metric: METRIC, points: [[NOW, index]] }])
    await definitionsAreStored()
    const read = async (index: number) =>
      (await reader.newestValues(COMPANY, server(index), [METRIC], NOW - HOUR_MS)).map(({ value }) => value)
    expect([await read(1), await read(2)]).toEqual([[1], [2]])
    writer.setTombstones([{ companyId: COMPANY, serverId: server(1), untilMs: clockMs + HOUR_MS }])
    await writer.drained()
    await purgeSamples(store, COMPANY, server(1))
    reader.forgetDefinitions()
    expect([await read(1), await read(2)]).toEqual([[], [2]])
    await writer.flush()
    expect(writer.dropped.purged).toBe(1)
    expect(await countStored()).toBe(1)
  })

  test('[PUR-010] what comes once the tombstone is over is kept, and what came before is not', async () => {
    const { writer, send } = start(openBus())
    await send(server(1), [{ metric: METRIC, points: [[NOW, 1]] }])
    writer.setTombstones([{ companyId: COMPANY, serverId: server(1), untilMs: NOW + MINUTE_MS }])
    const held = () => [...writer.bufferedOf(COMPANY, server(1))].map(({ value }) => value)
    expect(held()).toEqual([])
    clockMs = NOW + MINUTE_MS + 1
    await send(server(1), [{ metric: METRIC, points: [[clockMs, 2]] }])
    expect(held()).toEqual([2])
    await writer.flush()
    expect(writer.dropped.purged).toBe(1)
    expect(await store.rows(`SELECT value FROM ${store.database}.samples`)).toEqual([[2]])
  })

  test('[RET-003] what falls into the locked zone while it is held is dropped and counted', async () => {
    const { writer, send } = start(openBus())
    writer.setRetentionDays(new Map([[COMPANY, 1]]))
    const dayMs = 24 * HOUR_MS
    await send(server(1), [
      { metric: METRIC, points: [-MINUTE_MS, MINUTE_MS, 2 * MINUTE_MS].map(ms => [NOW - dayMs + ms, 1] as const) },
    ])
    expect([writer.bufferRows, writer.dropped.retentionLocked]).toEqual([2, 1])
    clockMs = NOW + 90_000
    await writer.flush()
    expect(writer.dropped.retentionLocked).toBe(2)
    expect(await countStored()).toBe(1)
  })

  test('a group of entries that cannot be read leaves nothing of itself', async () => {
    const bus = openBus()
    const troubles: unknown[] = []
    const { writer } = start(bus, undefined, undefined, error => troubles.push(error))
    const good = entryOf(COMPANY, server(1), [{ metric: METRIC, points: [[NOW, 1]] }])
    const later = good.slice()
    // The version of the format.
    later[4] = 2
    await bus.writer.publishGroup(Buffer.concat([good, later]), 2)
    await until('it is tried', () => troubles.length > 0)
    expect([writer.bufferRows, String(troubles[0])]).toEqual([0, expect.stringContaining('format version 2')])
  })

  test('after a start that finds nothing on the bus they are held as long as ever', async () => {
    const { writer, send } = start(openBus(), undefined, NOW)
    await send(server(1), [{ metric: METRIC, points: [[NOW, 1]] }])
    clockMs = NOW + 5 * MINUTE_MS - 1
    await send(server(1), [{ metric: METRIC, points: [[clockMs, 2]] }])
    clockMs = NOW + 5 * MINUTE_MS
    await until('they are stored', () => writer.blocksStored === 1)
    // Both in one run: neither was stored before the other came.
    expect(await store.rows(`SELECT count() FROM ${store.database}.samples_raw`)).toEqual([[1]])
  })

  test('after the death of a worker that held some they are held no longer than this one has been there', async () => {
    const bus = openBus()
    const first = start(bus)
    await first.send(server(1), [{ metric: METRIC, points: [[NOW, 0]] }])
    await first.abort()
    const { writer, send } = start(bus, undefined, NOW)
    await until('they are read', () => writer.bufferRows === 1)
    await send(server(1), [{ metric: METRIC, points: [[NOW, 1]] }])
    clockMs = NOW + 1_000
    await until('they are stored', () => writer.blocksStored === 1)
    clockMs = NOW + MINUTE_MS
    await send(server(1), [{ metric: METRIC, points: [[clockMs, 2]] }])
    clockMs = NOW + 2 * MINUTE_MS - 1
    await send(server(1), [{ metric: METRIC, points: [[clockMs, 3]] }])
    expect(writer.blocksStored).toBe(1)
    clockMs = NOW + 2 * MINUTE_MS
    await until('the next are stored', () => writer.blocksStored === 2)
  })
})

test('[PUR-010] a server that came back after its purge is found, however many others there are', () => {
  const block = new SampleBlock()
  const entries = new EntryReader()
  const add = (serverId: string, value: number): void => {
    entries.open(entryOf(COMPANY, serverId, [{ metric: METRIC, points: [[NOW + value, value]] }]))
    entries.next()
    block.add(entries, () => ({ purged: false, lockedBeforeMs: Number.NEGATIVE_INFINITY }))
  }
  add(server(1), 1)
  block.purge(block.owners[0]!)
  add(server(1), 2)
  for (let other = 0; other < 1_100; other++) add(server(100 + other), 1)
  add(server(1), 3)
  expect([...block.bufferedOf(COMPANY, server(1))].map(({ value }) => value)).toEqual([2, 3])
  expect(block.dropped.purged).toBe(1)
})
