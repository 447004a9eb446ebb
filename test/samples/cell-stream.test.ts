import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { ClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { purgeSamples } from '../../apps/collector/store/clickhouse/samples-delete.ts'
import { newestStored, readCompleteness, runRollups } from '../../apps/collector/store/clickhouse/samples-rollups.ts'
import { RollupSchedule } from '../../apps/collector/worker/samples/rollup-schedule.ts'
import { SampleWriter } from '../../apps/collector/worker/samples/sample-writer.ts'
import type { Tombstone } from '../../core/retention/tombstone.ts'
import { CellStream } from '../../core/samples/rollup/cell-stream.ts'
import { entryOf, openTestBus, openTestStore, type TestSeries } from '../support/clickhouse.ts'
import { randomFrom } from '../support/random.ts'

const COMPANIES = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222']
const TURNS_OF_TRUST = 20
const SERVERS = 14
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const TURNS = 160
const START = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 5 * HOUR_MS + 7 * MINUTE_MS
const CELL_COLUMNS =
  'company_id, server_id, series_id, ts, count, last_after, decimals, last_digits, below, above, beside'

/**
 * What the samples of a server look like: the last two have values whose sums depend on the order, and are read again.
 */
const kinds: readonly ((random: () => number) => number)[] = [
  random => Math.floor(random() * 1000),
  random => Math.floor(random() * 10_000) / 100 - 50,
  random => (random() < 0.5 ? Math.floor(random() * 100) : Math.floor(random() * 1e6) / 1e4),
  random => Math.floor(random() * 1e9) * 4096,
  random => (random() < 0.2 ? -0 : Math.floor(random() * 1e9) / 1e6),
  () => 12.5,
  random => Math.floor(random() * 2 ** 48) / 4 + (random() < 0.1 ? 2 ** 50 : 0),
  random => (random() < 0.9 ? 1 : random() / 3),
]

const isCells = (table: string): boolean => table === 'rollup_5m' || table === 'rollup_1h'
const serverOf = (index: number): string => `aaaaaaaa-0000-4000-8000-0000000000${index + 10}`
const kindOf = (server: number) => kinds[server < kinds.length ? server : server - kinds.length]!
const companyOf = (index: number): string => COMPANIES[index % 2]!

describe('cells of samples as they come', () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
  const random = randomFrom(seed)
  const below = (bound: number): number => Math.floor(random() * bound)
  const bus = openTestBus()
  const troubles: unknown[] = []
  /** Rows of cells that came from the stream. */
  let streamedRows = 0
  let failNext = false
  let clockMs = START
  let store: ClickHouse
  let worker: ReturnType<typeof openWorker>
  const tombstones = new Map<number, number>()
  /** The time that a server sent last, in a turn before: to be sent again with another value. */
  const sentBefore: number[][] = []
  /** What was sent last for each time, by server and series. */
  const truth = new Map<string, Map<number, number>>()

  /** A worker as after a start: it knows what is stored and nothing else. */
  function openWorker() {
    const stream = new CellStream()
    const reader = bus.openReader()
    const watched: ClickHouse = {
      ...store,
      insertBlock: async (table, block, token) => {
        if (isCells(table) && failNext) {
          failNext = false
          throw new Error('the store is away')
        }
        await store.insertBlock(table, block, token)
        if (isCells(table) && token.startsWith('cells-')) streamedRows += Number(token.split('-')[1])
      },
    }
    const writer = new SampleWriter({
      store: watched,
      bus: reader,
      nowMs: () => clockMs,
      onInserted: () => undefined,
      onDefinitions: () => undefined,
      onTrouble: error => troubles.push(error),
      computedBeforeMs: () => rollups.claimedBeforeMs,
      stream,
    })
    const rollups: RollupSchedule = new RollupSchedule({
      store: watched,
      nowMs: () => clockMs,
      isLeader: () => true,
      arrivedBeforeMs: () => writer.arrivedBeforeMs(),
      stream,
      onTrouble: error => troubles.push(error),
    })
    let running: Promise<void> = Promise.resolve()
    return {
      writer,
      rollups,
      stream,
      start: async () => {
        await rollups.start()
        running = writer.run()
      },
      stop: async () => {
        writer.abort()
        await running
        await rollups.stop()
        await reader.close()
      },
    }
  }

  const living = (): Tombstone[] =>
    [...tombstones].map(([server, untilMs]) => ({
      companyId: companyOf(server),
      serverId: serverOf(server),
      untilMs,
    }))

  async function restart(): Promise<void> {
    await worker.stop()
    worker = openWorker()
    worker.writer.setTombstones(living())
    await worker.start()
  }

  async function send(server: number, times: readonly number[], seriesCount: number): Promise<void> {
    if (times.length === 0) return
    const series = Array.from({ length: seriesCount }, (_, index): TestSeries => {
      const points = times.map(tsMs => [tsMs, kindOf(server)(random)] as const)
      return { metric: 'disk_used_percent', labels: { mount: `/${index}` }, points }
    })
    const isDropped = (tombstones.get(server) ?? 0) > clockMs
    series.forEach(({ points }, index) => {
      const key = `${serverOf(server)} ${index}`
      const known = truth.get(key) ?? new Map<number, number>()
      truth.set(key, known)
      if (!isDropped) for (const [tsMs, value] of points) known.set(tsMs, value)
    })
    const entry = entryOf(companyOf(server), serverOf(server), series, clockMs)
    expect(await bus.writer.publish(serverOf(server), entry)).toBeNull()
  }

  async function purge(server: number): Promise<void> {
    tombstones.set(server, clockMs + 4 * MINUTE_MS)
    worker.writer.setTombstones(living())
    await worker.writer.flush()
    await worker.writer.drained()
    for (const [key, points] of truth) if (key.startsWith(serverOf(server))) points.clear()
    await worker.rollups.exclusively(async () => {
      worker.stream.invalidateAll()
      await purgeSamples(store, companyOf(server), serverOf(server))
      worker.stream.invalidateAll()
    })
  }

  let distrustedTurn = 0

  async function turnOf(turn: number): Promise<void> {
    clockMs = START + turn * MINUTE_MS
    for (let server = 0; server < SERVERS; server++) {
      // Servers 3 and 5 send one sample a cell; the clock of server 2 is ahead.
      if ((server === 3 || server === 5) && turn % 5 !== 0) continue
      const atMs = clockMs - below(2_000) + (server === 2 ? 4 * MINUTE_MS : 0)
      if (random() < 0.03) continue
      await send(server, server === 3 || server === 5 ? [atMs] : [atMs - 30_000, atMs], 3 + (turn % 40 < 20 ? 2 : 0))
      if (random() < 0.003) await send(server, [atMs], 2)
      if (random() < 0.004) await send(server, sentBefore[server] ?? [], 2)
      if (random() < 0.004) await send(server, [atMs - 10_000 - below(4) * MINUTE_MS], 2)
      if (random() < 0.005) await send(server, [atMs - below(60) * MINUTE_MS], 2)
      sentBefore[server] = [atMs]
    }
    // After each of these every open cell is read from raw: with some turns between them the others come from the
    // stream.
    const mayDistrust = turn - distrustedTurn >= TURNS_OF_TRUST
    const [isPurge, isRestart] = [random() < 0.05, random() < 0.03]
    if (mayDistrust && (isPurge || isRestart)) distrustedTurn = turn
    if (mayDistrust && isPurge) await purge(below(SERVERS))
    // What is sent under a tombstone is read under it, too.
    if ([...tombstones.values()].some(untilMs => untilMs > clockMs)) await worker.writer.flush()
    if (mayDistrust && isRestart) await restart()
    if (random() < 0.02) failNext = true
    if (random() < 0.4) await worker.writer.flush()
    if (turn % 2 === 0) await worker.rollups.runNow(clockMs).catch(() => undefined)
  }

  beforeAll(async () => {
    console.log(`seed ${seed}: repeat with SEED=${seed}`)
    store = await openTestStore()
    worker = openWorker()
    await worker.start()
    for (let turn = 0; turn < TURNS; turn++) await turnOf(turn)
    await worker.writer.flush()
    failNext = false
    await worker.rollups.runNow(clockMs)
  }, 120_000)
  afterAll(async () => {
    await worker.stop()
    await bus.close()
    await store.close()
  })

  test('[STO-004] they are the cells that the raw samples give, to the bit, whatever was sent again, late or purged, and whenever the worker began anew', async () => {
    const other = await openTestStore()
    await store.command(
      `INSERT INTO ${other.database}.samples_raw (company_id, server_id, series_id, ts, seq, shape, first, points)
       SELECT company_id, server_id, series_id, ts, seq, shape, first, points FROM ${store.database}.samples_raw`,
    )
    await runRollups(other, clockMs)
    for (const cell of ['5m', '1h'] as const) {
      const completeMs = (await readCompleteness(store))[cell]
      const cellsOf = (database: string): Promise<unknown[][]> =>
        store.rows(
          `SELECT ${CELL_COLUMNS} FROM ${database}.rollup_${cell} FINAL
           WHERE toUnixTimestamp64Milli(ts) < ${completeMs} ORDER BY company_id, server_id, series_id, ts`,
        )
      const wanted = await cellsOf(other.database)
      expect(wanted.length).toBeGreaterThan(cell === '5m' ? 100 : 20)
      expect([seed, cell, await cellsOf(store.database)]).toEqual([seed, cell, wanted])
    }
    await other.close()
  })

  test('[STO-004] they hold what a computation over all points gives', async () => {
    const completeMs = (await readCompleteness(store))['5m']
    const wanted = new Map<string, [number, number, number, number]>()
    for (const [key, points] of truth)
      for (const [tsMs, value] of [...points].sort(([a], [b]) => a - b)) {
        const startMs = Math.floor(tsMs / 300_000) * 300_000
        if (startMs >= completeMs) continue
        const name = `${key} ${startMs}`
        const [count, low, high] = wanted.get(name) ?? [0, value, value]
        wanted.set(name, [count + 1, Math.min(low, value), Math.max(high, value), value])
      }
    const rows = await store.rows(
      `SELECT toString(server_id), extract(key, 'mount="/([0-9]+)'), toFloat64(toUnixTimestamp64Milli(ts)), count, min, max, last
       FROM (SELECT server_id, series_id, ts, count, min, max, last FROM ${store.database}.rollup_5m FINAL) AS cells
       INNER JOIN (SELECT DISTINCT series_id, key FROM ${store.database}.series) AS names USING series_id`,
    )
    // Minus zero is stored as zero.
    const plain = (cell: readonly unknown[]): number[] => cell.map(value => Number(value) + 0)
    const found = new Map(rows.map(([server, index, ts, ...cell]) => [`${server} ${index} ${ts}`, plain(cell)]))
    expect([seed, found.size]).toEqual([seed, wanted.size])
    for (const [name, cell] of wanted) expect([seed, name, found.get(name)]).toEqual([seed, name, plain(cell)])
  })

  test('[STO-004] most of them are not read from the disk', async () => {
    const [row] = await store.rows(`SELECT count() FROM ${store.database}.rollup_5m`)
    expect([seed, streamedRows / Number(row?.[0]) > 1 / 4]).toEqual([seed, true])
    expect((await newestStored(store)).ms).toBeGreaterThan(clockMs - MINUTE_MS)
    expect(troubles).toEqual([])
  })
})

test('[STO-009] a sample that was noted as late and then left to the regular pass is in its cell, whenever the clock was set back', async () => {
  const bus = openTestBus()
  const reader = bus.openReader()
  const store = await openTestStore()
  const startMs = START - (START % 3_600_000)
  let clockMs = startMs
  let isAway = false
  const watched: ClickHouse = {
    ...store,
    insertBlock: async (table, block, token) => {
      if (isAway && isCells(table)) throw new Error('the store is away')
      await store.insertBlock(table, block, token)
    },
  }
  const stream = new CellStream()
  const writer: SampleWriter = new SampleWriter({
    store: watched,
    bus: reader,
    nowMs: () => clockMs,
    onInserted: () => undefined,
    onDefinitions: () => undefined,
    onTrouble: error => {
      throw error
    },
    computedBeforeMs: () => rollups.claimedBeforeMs,
    stream,
  })
  const rollups: RollupSchedule = new RollupSchedule({
    store: watched,
    nowMs: () => clockMs,
    isLeader: () => true,
    arrivedBeforeMs: () => clockMs,
    stream,
    onTrouble: error => {
      throw error
    },
  })
  await rollups.start()
  const running = writer.run()
  const ids = [1, 2, 3, 4].map(serverOf)
  const send = async (serverId: string, offsetMs: number): Promise<void> => {
    const points = [[startMs + offsetMs, 1]] as const
    await bus.writer.publish(
      serverId,
      entryOf(companyOf(0), serverId, [{ metric: 'swap_used_percent', points }], clockMs),
    )
    await writer.flush()
  }
  const passAt = (minutes: number): Promise<void> => {
    clockMs = startMs + minutes * MINUTE_MS
    return rollups.runNow(clockMs)
  }
  for (const id of ids) await send(id, 1_000)
  await passAt(6)
  for (const id of ids) await send(id, 11 * MINUTE_MS)
  isAway = true
  await expect(passAt(16)).rejects.toThrow('away')
  isAway = false
  clockMs = startMs + 7 * MINUTE_MS
  await send(ids[0]!, 11 * MINUTE_MS + 30_000)
  await passAt(7)
  await passAt(20)
  const cells = await store.rows(
    `SELECT server_id, count FROM ${store.database}.rollup_5m FINAL WHERE ts = fromUnixTimestamp64Milli(${startMs + 10 * MINUTE_MS}, 'UTC') ORDER BY server_id`,
  )
  expect(cells).toEqual(ids.map((id, index) => [id, index === 0 ? 2 : 1]))
  writer.stop()
  await running
  await rollups.stop()
  await reader.close()
  await bus.close()
  await store.close()
})
