import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type { ClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { purgeSamples } from '../../apps/collector/store/clickhouse/samples-delete.ts'
import { SamplesReader } from '../../apps/collector/store/clickhouse/samples-query.ts'
import { LatestValues } from '../../apps/collector/worker/samples/latest-values.ts'
import { SampleWriter } from '../../apps/collector/worker/samples/sample-writer.ts'
import { limits } from '../../core/limits.ts'
import { keyMetrics } from '../../core/series/catalogue.ts'
import { emptyTable, entryOf, openTestBus, openTestStore, type TestSeries } from '../support/clickhouse.ts'
import { randomFrom } from '../support/random.ts'
import { until } from '../support/until.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const server = (index: number): string => `aaaaaaaa-0000-4000-8000-${String(index).padStart(12, '0')}`
const MINUTE_MS = 60_000
/** Whole, so that a value since then is one that the store finds too. */
const NOW = Math.floor(Date.now() / 1_000) * 1_000
const SINCE = NOW - limits.statusValueAgeMs

describe('newest values of a server', () => {
  let store: ClickHouse
  const ends: (() => Promise<void>)[] = []

  beforeAll(async () => {
    store = await openTestStore()
  })
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
    for (const table of ['samples_raw', 'series', 'rollup_late']) await emptyTable(store, table)
  })
  afterAll(() => store.close())

  /** A worker on a bus of its own, and how often its store was asked. */
  function startWorker(
    isOwn: (serverId: string) => boolean = () => true,
    onLoad: () => Promise<void> = async () => undefined,
    isOnlyWorker = false,
  ) {
    const bus = openTestBus()
    const reader = new SamplesReader(store, () => Date.now())
    const asked = { values: 0, keys: 0 }
    const latest = new LatestValues({
      reader: {
        newestValues: (...args) => {
          asked.values++
          return reader.newestValues(...args)
        },
        newestSamples: (...args) => {
          asked.values++
          return reader.newestSamples(...args)
        },
        newestOfServers: async (...args) => {
          const found = await reader.newestOfServers(...args)
          await onLoad()
          return found
        },
        newestOfCompany: (...args) => {
          asked.values++
          return reader.newestOfCompany(...args)
        },
        serversOf: metrics => reader.serversOf(metrics),
        keysOf: (...args) => reader.keysOf(...args).finally(() => asked.keys++),
      },
      nowMs: () => NOW,
      isOwn,
      isOnlyWorker,
      bufferedCompany: {
        serversOf: companyId => writer.bufferedCompany.serversOf(companyId),
        eachBuffered: (...args) => writer.bufferedCompany.eachBuffered(...args),
        unstoredKeys: (...args) => writer.bufferedCompany.unstoredKeys(...args),
      },
      onTrouble: error => {
        throw error
      },
    })
    const troubles: unknown[] = []
    const writer = new SampleWriter({
      store,
      bus: bus.openReader(),
      nowMs: () => Date.now(),
      onInserted: () => latest.blockStored(),
      onSeries: definitions => latest.learn(definitions),
      onDefinitions: () => reader.forgetDefinitions(),
      onStored: server => latest.take(server),
      onTrouble: error => troubles.push(error),
    })
    const running = writer.run()
    ends.push(async () => {
      latest.stop()
      writer.abort()
      await running
      await bus.close()
      expect(troubles).toEqual([])
    })
    const send = async (serverId: string, series: readonly TestSeries[]): Promise<void> => {
      expect(await bus.writer.publish(serverId, entryOf(COMPANY, serverId, series))).toBeNull()
    }
    const read = (serverId: string, sinceMs = SINCE) => latest.read(COMPANY, serverId, keyMetrics, sinceMs)
    /** The first block tells the worker that there is something to learn. */
    const settle = async (): Promise<void> => {
      await send(server(999), [{ metric: 'cpu_usage_percent', points: [[NOW, 1]] }])
      await writer.flush()
      await until('the keys are known', () => asked.keys > 0)
    }
    /** Once all servers are known, one that never was is answered without the store. */
    const loaded = () =>
      until('the store was read', async () => {
        const before = asked.values
        await read(server(888))
        return asked.values === before
      })
    return { latest, writer, send, read, asked, settle, loaded }
  }
  const fromStore = async (serverId: string) => {
    const values = await new SamplesReader(store, () => Date.now()).newestValues(COMPANY, serverId, keyMetrics, SINCE)
    return values.map(({ value, tsMs }) => ({ value, tsMs }))
  }

  const values = [-0, 12.38, 0.1 + 0.2, 1e300, -5, 2 ** 40, 1 / 3]
  /** Samples of some series, some of them of metrics that no status shows. */
  const someOf = (random: () => number): TestSeries[] => {
    const pick = (count: number): number => Math.floor(random() * count)
    return Array.from({ length: 1 + pick(6) }, (_, index) => ({
      metric: index % 3 === 2 ? 'mem_total_bytes' : keyMetrics[index % keyMetrics.length]!,
      labels: { mount: `/${pick(3)}` },
      points: Array.from(
        { length: 1 + pick(3) },
        () => [NOW - pick(30) * MINUTE_MS, random() < 0.5 ? pick(100) : values[pick(values.length)]!] as const,
      ),
    }))
  }
  const seeded = () => {
    const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
    console.log(`seed ${seed}: repeat with SEED=${seed}`)
    return { seed, random: randomFrom(seed) }
  }

  test('whatever comes, in whatever order, they are what the store says, which is asked once a server', async () => {
    const { seed, random } = seeded()
    const worker = startWorker()
    await worker.settle()
    for (let turn = 0; turn < 12; turn++) {
      for (let batch = 0; batch < 6; batch++) await worker.send(server(Math.floor(random() * 3)), someOf(random))
      await worker.writer.flush()
      for (let index = 0; index < 3; index++) {
        const held = await worker.read(server(index))
        const plain = held.map(({ value, tsMs }) => ({ value, tsMs }))
        expect([seed, plain]).toEqual([seed, await fromStore(server(index))])
      }
    }
    expect(worker.asked.values).toBeLessThanOrEqual(6)
  })

  test('[ADM-017] after a start they are known of every server, whether it sends or not, and the store is not asked', async () => {
    const { seed, random } = seeded()
    const before = startWorker()
    for (let batch = 0; batch < 40; batch++) await before.send(server(batch % 10), someOf(random))
    await before.writer.flush()

    // What comes while the store is read is neither lost nor overridden by it.
    const sendMore = async (): Promise<void> => {
      for (let index = 5; index < 10; index++) await worker.send(server(index), someOf(random))
      await worker.writer.flush()
    }
    const worker = startWorker(() => true, sendMore)
    worker.latest.start()
    await worker.loaded()
    await worker.send(server(9), someOf(random))
    await worker.writer.flush()
    const asked = worker.asked.values
    for (let index = 0; index < 12; index++) {
      const plain = (await worker.read(server(index))).map(({ value, tsMs }) => ({ value, tsMs }))
      expect([seed, index, plain]).toEqual([seed, index, await fromStore(server(index))])
    }
    expect(worker.asked.values).toBe(asked)
  })

  test('[ADM-017] a purge while they are read, or one that deletes nothing, leaves what the store says', async () => {
    const before = startWorker()
    for (const index of [1, 2, 3]) await before.send(server(index), [{ metric: 'cpu_load1', points: [[NOW, index]] }])
    await before.writer.flush()
    let purges = 0
    const worker = startWorker(
      () => true,
      async () => {
        if (purges++ > 0) return
        worker.latest.forget(COMPANY, server(1))
        await purgeSamples(store, COMPANY, server(1))
        worker.latest.forget(COMPANY, server(1))
      },
    )
    worker.latest.start()
    await worker.loaded()
    expect(purges).toBe(2)
    expect(await worker.read(server(1))).toEqual([])
    expect(await worker.read(server(2))).toMatchObject([{ value: 2 }])
    worker.latest.forget(COMPANY, server(2))
    expect(await worker.read(server(2))).toMatchObject([{ value: 2 }])
    worker.latest.forget(COMPANY, null)
    expect(await worker.read(server(3))).toMatchObject([{ value: 3 }])
    await worker.send(server(3), [{ metric: 'cpu_usage_percent', points: [[NOW, 5]] }])
    await worker.writer.flush()
    expect(await worker.read(server(3))).toMatchObject([{ value: 3 }, { value: 5 }])
  })

  test('a series that another worker has stored is known when its samples come here', async () => {
    const disk = { metric: 'disk_used_percent', labels: { mount: '/srv' }, points: [[NOW - MINUTE_MS, 40]] } as const
    const other = startWorker()
    await other.send(server(1), [disk])
    await other.writer.flush()

    let isMine = false
    const worker = startWorker(serverId => isMine || serverId !== server(1))
    await worker.settle()
    await worker.send(server(1), [{ ...disk, points: [[NOW - 2 * MINUTE_MS, 1]] }])
    await worker.writer.flush()
    // Not this worker's: whoever stores its samples does so elsewhere, so that each answer is the store's.
    for (let turn = 1; turn <= 2; turn++) {
      expect(await worker.read(server(1))).toMatchObject([{ labels: { mount: '/srv' }, value: 40 }])
      expect(worker.asked.values).toBe(turn)
    }
    isMine = true
    worker.latest.restart()
    const keysBefore = worker.asked.keys
    for (let block = 0; block < 3; block++) {
      expect(worker.asked.keys).toBe(keysBefore)
      await worker.send(server(1), [{ metric: 'cpu_load1', points: [[NOW, block]] }])
      await worker.writer.flush()
    }
    await until('the keys are read again', () => worker.asked.keys > keysBefore)
    await worker.send(server(1), [{ metric: 'cpu_load1', points: [[NOW, 7]] }])
    await worker.writer.flush()
    await worker.loaded()
    const asked = worker.asked.values
    for (let turn = 0; turn < 2; turn++)
      expect(await worker.read(server(1))).toMatchObject([{ value: 7 }, { labels: { mount: '/srv' }, value: 40 }])
    expect(worker.asked.values).toBe(asked)
  })

  test('after a purge nothing is left of what was there before, and older values than are held are asked for', async () => {
    const worker = startWorker()
    await worker.settle()
    await worker.send(server(2), [{ metric: 'cpu_load1', points: [[NOW, 3]] }])
    await worker.writer.flush()
    await worker.loaded()
    const asked = worker.asked.values
    expect(await worker.read(server(2))).toMatchObject([{ value: 3 }])
    expect(worker.asked.values).toBe(asked)
    const older = NOW - 3 * limits.statusValueAgeMs
    expect(await worker.read(server(2), older)).toMatchObject([{ value: 3 }])
    expect(worker.asked.values).toBe(asked + 1)
    await purgeSamples(store, COMPANY, null)
    worker.latest.forget(COMPANY, null)
    expect(await worker.read(server(2))).toEqual([])
  })

  test('of a whole company they are the largest of each server, from memory as from the store, stored or not', async () => {
    const { seed, random } = seeded()
    const worker = startWorker(() => true, undefined, true)
    const plain = startWorker()
    worker.latest.start()
    await worker.settle()
    await worker.loaded()
    /** Newest value of each series, by server and series; of two of one time the later one. */
    const sent = new Map<string, Map<string, readonly [tsMs: number, value: number]>>()
    const send = async () => {
      const serverId = server(Math.floor(random() * 4))
      const series = someOf(random)
      await worker.send(serverId, series)
      const ofServer = sent.get(serverId) ?? new Map()
      sent.set(serverId, ofServer)
      for (const { metric, labels, points } of series)
        for (const [tsMs, value] of points) {
          const key = `${metric} ${labels?.mount}`
          if (tsMs >= (ofServer.get(key)?.[0] ?? SINCE)) ofServer.set(key, [tsMs, value])
        }
    }
    const expected = (metric: string) =>
      Object.fromEntries(
        [...sent].flatMap(([serverId, series]) => {
          const values = [...series].filter(([key]) => key.startsWith(`${metric} `)).map(([, [, value]]) => value + 0)
          return values.length > 0 ? [[serverId, Math.max(...values)]] : []
        }),
      )
    const held = async (by: typeof worker, metric: string, companyId = COMPANY) => {
      const { serverIds, values, truncated } = await by.latest.readCompany(companyId, metric, SINCE)
      expect(truncated).toBe(false)
      return Object.fromEntries(
        serverIds.map((id, at) => [id, values[at]!] as const).filter(([id]) => id !== server(999)),
      )
    }
    for (let turn = 0; turn < 4; turn++) {
      for (let batch = 0; batch < 6; batch++) await send()
      await worker.writer.flush()
      const asked = worker.asked.values
      for (const metric of keyMetrics) expect([seed, await held(worker, metric)]).toEqual([seed, expected(metric)])
      expect(worker.asked.values).toBe(asked)
      for (const metric of [...keyMetrics, 'mem_total_bytes'])
        expect([seed, await held(plain, metric)]).toEqual([seed, expected(metric)])
      expect(await held(worker, 'cpu_usage_percent', '22222222-2222-4222-8222-222222222222')).toEqual({})
    }
    // Read from the bus and not stored yet; larger than any that was drawn.
    const point = [NOW, Number.MAX_VALUE] as const
    await worker.send(server(1), [{ metric: 'cpu_load1', labels: { mount: '/0' }, points: [point] }])
    await until('it is read', async () => (await held(worker, 'cpu_load1'))[server(1)] === Number.MAX_VALUE)
  })
})
