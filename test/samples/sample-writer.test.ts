import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import type { BusReader } from '../../apps/collector/bus/bus.ts'
import type { ClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { storedTable } from '../../apps/collector/store/clickhouse/cluster.ts'
import { SamplesReader } from '../../apps/collector/store/clickhouse/samples-query.ts'
import { newestStored } from '../../apps/collector/store/clickhouse/samples-rollups.ts'
import { migrateSamples, SamplesStoreRefused } from '../../apps/collector/store/clickhouse/samples-schema.ts'
import { SampleWriter } from '../../apps/collector/worker/samples/sample-writer.ts'
import { emptyTable, entryOf, openTestBus, openTestStore } from '../support/clickhouse.ts'
import { randomFrom } from '../support/random.ts'
import { until } from '../support/until.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const OTHER_COMPANY = '22222222-2222-4222-8222-222222222222'
const server = (index: number): string => `aaaaaaaa-0000-4000-8000-${String(index).padStart(12, '0')}`
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 86_400_000
const NOW = Date.now()

describe('the sample writer', () => {
  let store: ClickHouse
  const ends: (() => Promise<void>)[] = []
  const troubles: unknown[] = []

  beforeAll(async () => {
    store = await openTestStore()
  })
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
    for (const table of ['samples_raw', 'series', 'rollup_late']) await emptyTable(store, table)
    troubles.length = 0
  })
  afterAll(() => store.close())

  function openBus() {
    const bus = openTestBus([`evaluation`])
    ends.push(() => bus.close())
    return bus
  }
  function start(bus: BusReader, askRetention?: (companyIds: readonly string[]) => void): SampleWriter {
    const writer = new SampleWriter({
      ...(askRetention && { askRetention }),
      store,
      bus,
      nowMs: () => Date.now(),
      onInserted: () => undefined,
      onDefinitions: () => undefined,
      onTrouble: error => troubles.push(error),
    })
    const running = writer.run()
    ends.push(async () => {
      writer.abort()
      await running
      await bus.close()
    })
    return writer
  }
  const contents = async (): Promise<unknown[][]> => [
    ...(await store.rows(
      `SELECT count(), sum(cityHash64(company_id, server_id, series_id, ts, value)) FROM ${store.database}.samples`,
    )),
    ...(await store.rows(`SELECT count(), sum(cityHash64(*)) FROM ${store.database}.series FINAL`)),
  ]

  test('a group that does not hold the entries that it says is told of, and nothing of it is stored or passed', async () => {
    const bus = openBus()
    const reader = bus.openReader()
    const lying: BusReader = {
      partitions: reader.partitions,
      read: async (...args) => (await reader.read(...args)).map(group => ({ ...group, count: group.count + 1 })),
      lastPosition: () => reader.lastPosition(),
      passed: consumer => reader.passed(consumer),
      pass: (...args) => reader.pass(...args),
      close: () => reader.close(),
    }
    await bus.writer.publish(
      server(1),
      entryOf(COMPANY, server(1), [{ metric: 'cpu_usage_percent', points: [[NOW, 1]] }]),
    )
    start(lying)
    await until('the trouble', () => troubles.length > 0)
    expect(String(troubles[0])).toContain('a group of the bus holds the entries that it says')
    expect(await store.rows(`SELECT count() FROM ${store.database}.samples_raw`)).toEqual([[0]])
    expect(await reader.passed('samples')).toBe(0)
  })

  test('[STO-001] reading the same bus again, in other portions, leaves the same rows', async () => {
    const bus = openBus()
    const random = randomFrom(7)
    const writer = start(bus.openReader())
    for (let turn = 0; turn < 30; turn++) {
      const points = Array.from(
        { length: 5 },
        () => [NOW - Math.floor(random() * 100) * MINUTE_MS, Math.floor(random() * 100)] as const,
      )
      const entry = entryOf(COMPANY, server(turn % 4), [
        { metric: 'cpu_usage_percent', points },
        { metric: 'disk_used_percent', labels: { mount: `/${turn % 3}` }, points },
      ])
      expect(await bus.writer.publish(server(turn % 4), entry)).toBeNull()
      if (turn % 7 === 0) await writer.flush()
    }
    await writer.flush()
    const once = await contents()
    expect(Number(once[0]?.[0])).toBeGreaterThan(100)

    // A writer that stored everything and was killed before it could say so.
    const forgetful = bus.openReader()
    forgetful.passed = async () => 0
    await start(forgetful).flush()
    expect(await contents()).toEqual(once)
    expect(troubles).toEqual([])
  })

  test('[STO-001] of a point that was sent twice the last value counts, inside one block and across blocks', async () => {
    const bus = openBus()
    const writer = start(bus.openReader())
    const send = async (value: number): Promise<void> => {
      const entry = entryOf(COMPANY, server(1), [{ metric: 'cpu_usage_percent', points: [[NOW - MINUTE_MS, value]] }])
      expect(await bus.writer.publish(server(1), entry)).toBeNull()
    }
    const read = () =>
      new SamplesReader(store, () => Date.now()).newestValues(COMPANY, server(1), ['cpu_usage_percent'], NOW - DAY_MS)
    await send(3)
    await send(9)
    await send(5)
    await writer.flush()
    expect(await read()).toMatchObject([{ value: 5 }])
    for (const value of [1, 8, 2]) {
      await send(value)
      await writer.flush()
    }
    expect(await read()).toMatchObject([{ value: 2 }])
    await store.command(`OPTIMIZE TABLE ${storedTable(store, 'samples_raw')} FINAL`)
    expect(await store.rows(`SELECT value FROM ${store.database}.samples`)).toEqual([[2]])
    expect(await read()).toMatchObject([{ value: 2 }])
  })

  test('[STO-001] of a point that was sent twice the last value counts, also where the clock was set back and the worker began anew', async () => {
    const bus = openTestBus()
    const storedBy = async (clockMs: number, value: number): Promise<unknown> => {
      const reader = bus.openReader()
      const writer = new SampleWriter({
        store,
        bus: reader,
        nowMs: () => clockMs,
        onInserted: () => undefined,
        onDefinitions: () => undefined,
        onTrouble: error => {
          throw error
        },
      })
      writer.continueAfter((await newestStored(store)).seq)
      const running = writer.run()
      await bus.writer.publish(
        server(9),
        entryOf(COMPANY, server(9), [{ metric: 'swap_used_percent', points: [[NOW, value]] }]),
      )
      await writer.flush()
      writer.stop()
      await running
      await reader.close()
      return store.rows(`SELECT value FROM ${store.database}.samples WHERE server_id = '${server(9)}'`)
    }
    expect(await storedBy(NOW + DAY_MS, 1)).toEqual([[1]])
    expect(await storedBy(NOW, 2)).toEqual([[2]])
    await bus.close()
  })

  test('a point is not lost while the store refuses: it stays on the bus, and is stored once the store is back', async () => {
    const bus = openBus()
    const reader = bus.openReader()
    const db = store.database
    await store.command(`RENAME TABLE ${db}.samples_raw TO ${db}.samples_away`)
    const writer = start(reader)
    const entry = entryOf(COMPANY, server(2), [{ metric: 'cpu_usage_percent', points: [[NOW - MINUTE_MS, 4]] }])
    expect(await bus.writer.publish(server(2), entry)).toBeNull()
    writer.wake()
    await until('a failed insert', () => writer.insertErrors > 0)
    expect(await reader.passed('samples')).toBe(0)
    expect(await writer.lagEntries()).toBe(1)
    await store.command(`RENAME TABLE ${db}.samples_away TO ${db}.samples_raw`)
    await writer.flush()
    expect(await reader.passed('samples')).toBe(1)
    expect(await writer.lagEntries()).toBe(0)
    expect(
      await new SamplesReader(store, () => Date.now()).newestValues(
        COMPANY,
        server(2),
        ['cpu_usage_percent'],
        NOW - DAY_MS,
      ),
    ).toMatchObject([{ value: 4 }])
  })

  test('[RET-003] samples in the write-locked zone of the plan are dropped and counted', async () => {
    const bus = openBus()
    const writer = start(bus.openReader())
    writer.setRetentionDays(new Map([[COMPANY, 1]]))
    const points = [
      [NOW - DAY_MS - HOUR_MS, 1],
      [NOW - DAY_MS + HOUR_MS, 2],
    ] as const
    for (const companyId of [COMPANY, OTHER_COMPANY])
      expect(
        await bus.writer.publish(server(3), entryOf(companyId, server(3), [{ metric: 'cpu_usage_percent', points }])),
      ).toBeNull()
    await writer.flush()
    const counted = await store.rows(
      `SELECT toString(company_id), count() FROM ${store.database}.samples GROUP BY company_id ORDER BY 1`,
    )
    expect(counted).toEqual([
      [COMPANY, 1],
      [OTHER_COMPANY, 2],
    ])
    expect(writer.dropped.retentionLocked).toBe(1)
  })

  test('[RET-003] where samples may be locked, the retention of a company that nobody has named is asked for before they are stored', async () => {
    const bus = openBus()
    const asked: string[][] = []
    const writer: SampleWriter = start(bus.openReader(), companyIds => {
      asked.push([...companyIds])
      writer.setRetentionDays(new Map(companyIds.map(id => [id, id === COMPANY ? 3 : null])))
    })
    for (const companyId of [COMPANY, OTHER_COMPANY])
      for (const days of [0, 2, 4]) {
        const points = [[NOW - days * DAY_MS, days]] as const
        await bus.writer.publish(server(3), entryOf(companyId, server(3), [{ metric: 'cpu_usage_percent', points }]))
      }
    await writer.flush()
    expect(asked.flat().sort()).toEqual([COMPANY, OTHER_COMPANY])
    expect(await store.rows(`SELECT value FROM ${store.database}.samples ORDER BY company_id, value`)).toEqual([
      [0],
      [2],
      [0],
      [2],
      [4],
    ])
  })

  test('[STO-007] [PUR-010] what a tenant under a tombstone has in the buffer and on the bus is dropped and counted', async () => {
    const bus = openBus()
    const writer = start(bus.openReader())
    const untilMs = Date.now() + MINUTE_MS
    const send = async (companyId: string, serverId: string): Promise<void> => {
      const entry = entryOf(companyId, serverId, [{ metric: 'cpu_usage_percent', points: [[NOW - MINUTE_MS, 1]] }])
      expect(await bus.writer.publish(serverId, entry)).toBeNull()
    }
    await send(COMPANY, server(4))
    await send(COMPANY, server(5))
    await send(OTHER_COMPANY, server(6))
    await until('rows in the buffer', () => writer.bufferRows === 3)
    writer.setTombstones([
      { companyId: COMPANY, serverId: server(4), untilMs },
      { companyId: OTHER_COMPANY, serverId: null, untilMs },
      { companyId: COMPANY, serverId: server(5), untilMs: NOW - MINUTE_MS },
    ])
    await send(COMPANY, server(4))
    await writer.flush()
    const stored = await store.rows(`SELECT toString(server_id) FROM ${store.database}.samples_raw`)
    expect(stored).toEqual([[server(5)]])
    expect(await store.rows(`SELECT toString(server_id) FROM ${store.database}.series`)).toEqual([[server(5)]])
    expect(writer.dropped.purged).toBe(3)
  })

  describe('a writer that reads tombstones before it stores', () => {
    /** Samples are held until a flush; `cut`: tombstones cannot be read, and server 4 is purged meanwhile. */
    function openCut() {
      const bus = openBus()
      const state = { isCut: false, asked: 0, purgedUntilMs: 0 }
      const writer = new SampleWriter({
        store,
        bus: bus.openReader(),
        nowMs: () => Date.now(),
        onInserted: () => undefined,
        onDefinitions: () => undefined,
        onTrouble: error => troubles.push(error),
        hold: { ms: HOUR_MS, bytes: Number.POSITIVE_INFINITY },
        readTombstones: async () => {
          state.asked++
          if (state.isCut) throw new Error('the connection was closed')
          return [{ companyId: COMPANY, serverId: server(4), untilMs: state.purgedUntilMs }]
        },
      })
      const run = (): void => {
        const running = writer.run()
        ends.push(async () => {
          writer.abort()
          await running
        })
      }
      const publish = async (): Promise<void> => {
        for (const index of [4, 5]) {
          const series = [{ metric: 'cpu_usage_percent', points: [[NOW - MINUTE_MS, 1]] as const }]
          expect(await bus.writer.publish(server(index), entryOf(COMPANY, server(index), series))).toBeNull()
        }
        // It will have ended when it is read, and is known still.
        state.purgedUntilMs = Date.now() + 1
      }
      const count = async (table: string): Promise<number> =>
        Number((await store.rows(`SELECT count() FROM ${store.database}.${table}`))[0]?.[0])
      const serversIn = (table: string) =>
        store.rows(`SELECT DISTINCT toString(server_id) FROM ${store.database}.${table} ORDER BY 1`)
      return { writer, state, run, publish, count, serversIn }
    }

    test('[PUR-010] what is purged while they cannot be read is never stored, and the rest once they can be', async () => {
      const { writer, state, run, publish, count, serversIn } = openCut()
      state.isCut = true
      await publish()
      run()
      const flushed = writer.flush()
      await until('definitions and samples to have been kept back', () => state.asked > 2, 30_000)
      expect([await count('samples_raw'), await count('series')]).toEqual([0, 0])
      expect(writer.bufferedOf(COMPANY, server(4))).toHaveLength(1)
      state.isCut = false
      await flushed
      for (const table of ['samples_raw', 'series']) expect(await serversIn(table)).toEqual([[server(5)]])
      expect(writer.dropped.purged).toBe(1)
    })

    test('[PUR-010] so are samples whose definitions are stored already', async () => {
      const { writer, state, run, publish, count, serversIn } = openCut()
      run()
      await publish()
      const untilMs = state.purgedUntilMs
      state.purgedUntilMs = 0
      await until('the definitions to be stored', async () => (await count('series')) === 2, 30_000)
      state.isCut = true
      const askedBefore = state.asked
      // What was read lately is known.
      const oldAt = performance.now() + 2_100
      await until('the last reading to be old', () => performance.now() > oldAt)
      const flushed = writer.flush()
      await until('samples to have been kept back', () => state.asked > askedBefore + 1, 30_000)
      expect(await count('samples_raw')).toBe(0)
      state.isCut = false
      state.purgedUntilMs = untilMs
      await flushed
      expect(await serversIn('samples_raw')).toEqual([[server(5)]])
      expect(writer.dropped.purged).toBe(1)
    })
  })

  test('definitions that no two servers share are stored in blocks of bounded size, and while too many wait the bus is not read', async () => {
    const bus = openBus()
    const blocks: number[] = []
    let turns = 0
    const gate = Promise.withResolvers<void>()
    const watched: ClickHouse = {
      ...store,
      insertBlock: async (table, block, token) => {
        // The second byte of a block is the number of its rows.
        if (table === 'series') blocks.push(block[1]!)
        if (table === 'series') await gate.promise
        await store.insertBlock(table, block, token)
      },
    }
    const reader = bus.openReader()
    const writer = new SampleWriter({
      store: watched,
      bus: reader,
      nowMs: () => {
        turns++
        return Date.now()
      },
      onInserted: () => undefined,
      onDefinitions: () => undefined,
      onTrouble: error => troubles.push(error),
      definitionsMax: 30,
    })
    const publish = async (from: number, to: number): Promise<void> => {
      for (let index = from; index < to; index++) {
        const series = Array.from({ length: 7 }, (_, mount) => ({
          metric: 'disk_used_percent',
          labels: { mount: `/${index}/${mount}` },
          points: [[NOW, 1]] as const,
        }))
        await bus.writer.publish(server(index), entryOf(COMPANY, server(index), series))
      }
    }
    // All that lies on the bus is read at once.
    await publish(0, 10)
    const running = writer.run()
    ends.push(async () => {
      writer.abort()
      await running
      await reader.close()
    })
    await until('the first block', () => blocks.length === 1)
    const waiting = (index: number): number => [...writer.pendingDefinitions(COMPANY, server(index))].length
    expect([waiting(0), waiting(9)]).toEqual([7, 7])
    const read = reader.read.bind(reader)
    let reads = 0
    reader.read = (...args) => {
      reads++
      return read(...args)
    }
    await publish(10, 20)
    const flushed = writer.flush()
    const before = turns
    await until('some turns', () => turns > before + 10)
    expect([reads, waiting(10)]).toEqual([0, 0])
    gate.resolve()
    await flushed
    expect(blocks.reduce((sum, rows) => sum + rows, 0)).toBe(140)
    expect(Math.max(...blocks)).toBe(10)
    const [row] = await store.rows(`SELECT count() FROM ${store.database}.series FINAL`)
    expect([Number(row?.[0]), troubles]).toEqual([140, []])
  })

  test('definitions that the servers of a fleet share do not keep the bus from being read, and wait until it is', async () => {
    const bus = openBus()
    const blocks: number[] = []
    let readToEnd = false
    const wasRead: boolean[] = []
    const reader = bus.openReader()
    const read = reader.read.bind(reader)
    let asked = 0
    reader.read = async (...args) => {
      // A little at a time: more than WAIT_MS go by before all is read.
      asked += 40
      const groups = await read(args[0], args[1], 1)
      readToEnd = groups.length === 0
      return groups
    }
    const writer = new SampleWriter({
      store: {
        ...store,
        insertBlock: async (table, block, token) => {
          if (table === 'series') {
            wasRead.push(readToEnd)
            blocks.push(block[1]!)
          }
          await store.insertBlock(table, block, token)
        },
      },
      bus: reader,
      nowMs: () => NOW + asked,
      onInserted: () => undefined,
      onDefinitions: () => undefined,
      onTrouble: error => troubles.push(error),
      definitionsMax: 210,
    })
    const series = Array.from({ length: 7 }, (_, mount) => ({
      metric: 'disk_used_percent',
      labels: { mount: `/shared/${mount}` },
      points: [[NOW, 1]] as const,
    }))
    for (let index = 0; index < 100; index++)
      await bus.writer.publish(server(1_000 + index), entryOf(COMPANY, server(1_000 + index), series))
    const running = writer.run()
    ends.push(async () => {
      writer.abort()
      await running
      await reader.close()
    })
    await until('the definitions to be stored', () => blocks.reduce((sum, rows) => sum + rows, 0) === 700)
    expect([wasRead.includes(false), Math.max(...blocks), troubles]).toEqual([false, 70, []])
  })

  test('a block larger than any other is stored whole and in order', async () => {
    const bus = openBus()
    const writer = start(bus.openReader())
    const times = Array.from({ length: 20_000 }, (_, index) => [NOW - index * 1000, index] as const)
    for (let index = 0; index < 10; index++) {
      const entry = entryOf(COMPANY, server(100 + index), [{ metric: 'cpu_usage_percent', points: times }])
      expect(await bus.writer.publish(server(100 + index), entry)).toBeNull()
    }
    await writer.flush()
    const rows = await store.rows(
      `SELECT count(), sum(value), uniqExact(server_id), max(ts) = fromUnixTimestamp64Milli({now:Int64}, 'UTC')
       FROM ${store.database}.samples`,
      { now: NOW },
    )
    expect(rows).toEqual([[200_000, 1_999_900_000, 10, 1]])
  })

  test('a store of a later schema is refused with what to do', async () => {
    const db = store.database
    await migrateSamples(store)
    await store.command(`INSERT INTO ${db}.schema_version SELECT 999, now64(3, 'UTC')`)
    try {
      await expect(migrateSamples(store)).rejects.toThrow(SamplesStoreRefused)
      await expect(migrateSamples(store)).rejects.toThrow('schema is version 999')
    } finally {
      await store.command(`DELETE FROM ${storedTable(store, 'schema_version')} WHERE version = 999`)
    }
  })
})
