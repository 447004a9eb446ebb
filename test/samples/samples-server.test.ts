import { afterAll, describe, expect, test } from 'bun:test'
import {
  type SamplesClient,
  SamplesUnavailable,
  startSamples,
} from '../../apps/collector/worker/samples/samples-client.ts'
import { freePort } from '../../apps/standalone/ports.ts'
import { briefly, entryOf, freshDatabase, openTestBus } from '../support/clickhouse.ts'
import { startClickHouseServer } from '../support/clickhouse-server.ts'
import { until } from '../support/until.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const SERVER = 'aaaaaaaa-0000-4000-8000-000000000001'
const MINUTE_MS = 60_000
const NOW = Date.now()

describe('the samples store on a ClickHouse server', () => {
  const bus = openTestBus()
  const troubles: string[] = []
  let samples: SamplesClient | null = null
  let server: ReturnType<typeof startClickHouseServer> | null = null

  afterAll(async () => {
    await samples?.stop()
    await server?.stop()
    await bus.close()
  })

  const send = async (minute: number, value: number): Promise<void> => {
    const entry = entryOf(COMPANY, SERVER, [
      { metric: 'disk_used_percent', labels: { mount: "/it's" }, points: [[NOW - minute * MINUTE_MS, value]] },
    ])
    expect(await bus.writer.publish(SERVER, entry)).toBeNull()
  }

  test('[STO-001] samples wait on the bus while the server is away, and are stored, read and purged when it is there', async () => {
    const port = freePort()
    const client = await startSamples({
      onFailure: error => {
        throw error
      },
      threadUrl: new URL('../../apps/collector/worker/samples/samples-thread.ts', import.meta.url),
      bus: { kind: 'file', path: bus.path, hold: briefly },
      consumers: bus.consumers,
      clickhouse: `http://127.0.0.1:${port}`,
      database: freshDatabase(),
      onTrouble: message => troubles.push(message),
    })
    samples = client
    const read = async (sinceMs = NOW - 60 * MINUTE_MS) =>
      (await client.latestValues(COMPANY, SERVER, ['disk_used_percent'], sinceMs)).map(each => each.value)
    await send(10, 1)
    await until('a word about the server', () => troubles.length > 0)
    expect(await client.stats()).toMatchObject({ isReady: false, rowsStored: 0, lagEntries: 1 })
    expect(troubles[0]).toStartWith('cannot reach the samples store')

    server = startClickHouseServer(port)
    // The row counts once it is stored, and the entry leaves the bus a moment later.
    await until('the first sample', async () => {
      const { rowsStored, lagEntries } = await client.stats()
      return rowsStored === 1 && lagEntries === 0
    })
    expect(await client.stats()).toMatchObject({ isReady: true })
    expect(await client.latestValues(COMPANY, SERVER, ['disk_used_percent'], NOW - 60 * MINUTE_MS)).toEqual([
      { metric: 'disk_used_percent', labels: { mount: "/it's" }, value: 1, tsMs: NOW - 10 * MINUTE_MS },
    ])

    await server.stop()
    server = null
    // What this worker knows it goes on to say; for what is older it would have to ask.
    expect(await read()).toEqual([1])
    const refused = await read(NOW - 120 * MINUTE_MS).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(SamplesUnavailable)
    await send(5, 2)
    await until('a failed insert', async () => (await client.stats()).insertErrors > 0)
    expect(await client.stats()).toMatchObject({ isReady: false, lagEntries: 1 })

    server = startClickHouseServer(port)
    await client.flush()
    expect(await read()).toEqual([2])
    await client.runRollups(Date.now())
    const answer = await client.querySeries({
      companyId: COMPANY,
      serverId: SERVER,
      metric: 'disk_used_percent',
      agg: 'max',
      fromMs: NOW - 60 * MINUTE_MS,
      toMs: NOW,
      stepMs: 24 * 60 * MINUTE_MS,
      source: '5m',
      oldestMs: Number.NEGATIVE_INFINITY,
      isEmpty: false,
      fallsBackToRaw: false,
    })
    expect(answer.series.flatMap(({ points }) => points.map(([, value]) => value)).at(-1)).toBe(2)
    await client.purge(COMPANY, null)
    expect(await read()).toEqual([])
    expect(await client.companies()).toEqual([])
  }, 120_000)
})
