import { ptr } from 'bun:ffi'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { basename } from 'node:path'
import { type SamplesClient, startSamples } from '../../apps/collector/worker/samples/samples-client.ts'
import { cLibrary } from '../../apps/process/c-library.ts'
import type { SeriesPlan } from '../../core/query/query-plan.ts'
import { engineCluster, engineUrl, entryOf, freshDatabase, openTestBus, openTestStore } from '../support/clickhouse.ts'
import { until } from '../support/until.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const OTHER_COMPANY = '11111111-1111-4111-8111-222222222222'
const SERVER = 'aaaaaaaa-0000-4000-8000-000000000001'
const NOW = Date.now()
const START = NOW - 600_000 - (NOW % 60_000)

const plan = (over: Partial<SeriesPlan>): SeriesPlan => ({
  companyId: COMPANY,
  serverId: SERVER,
  metric: 'disk_used_percent',
  agg: 'avg',
  fromMs: START,
  toMs: NOW,
  stepMs: 60_000,
  source: 'raw',
  oldestMs: Number.NEGATIVE_INFINITY,
  isEmpty: false,
  fallsBackToRaw: false,
  ...over,
})

describe('the samples thread', () => {
  const bus = openTestBus()
  let samples: SamplesClient

  beforeAll(async () => {
    samples = await startSamples({
      onFailure: error => {
        throw error
      },
      threadUrl: new URL('../../apps/collector/worker/samples/samples-thread.ts', import.meta.url),
      bus: { kind: 'file', path: bus.path, hold: { ms: 300_000, bytes: 1024 ** 3 } },
      consumers: bus.consumers,
      clickhouse: engineUrl,
      database: freshDatabase(),
      cluster: engineCluster,
    })
  })
  afterAll(async () => {
    await samples.stop()
    await bus.close()
  })

  test('it steps back behind the threads that answer agents and judge samples', () => {
    // The nice value is the nineteenth field, the seventeenth behind the name.
    const niceOf = (task: string): number =>
      Number(readFileSync(`/proc/self/task/${task}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[16])
    const own = niceOf(String(process.pid))
    const tasks = readdirSync('/proc/self/task').filter(task => task !== String(process.pid))
    expect(Math.max(...tasks.map(niceOf))).toBe(Math.min(19, own + 5))
    expect(niceOf(String(process.pid))).toBe(own)
  })

  test('[STO-001] samples of the bus are stored under company and server, and read back by metric with their labels', async () => {
    const entry = entryOf(COMPANY, SERVER, [
      {
        metric: 'disk_used_percent',
        labels: { mount: '/' },
        points: [
          [START, 10],
          [START + 30_000, 20],
        ],
      },
      { metric: 'disk_used_percent', labels: { mount: '/var "x"' }, points: [[START + 60_000, 5]] },
      { metric: 'cpu_usage_percent', points: [[START, 99]] },
    ])
    expect(await bus.writer.publish(SERVER, entry)).toBeNull()
    await samples.flush()

    const answer = await samples.querySeries(plan({}))
    expect(answer.series).toEqual([
      { labels: { mount: '/' }, points: [[START, 15]] },
      { labels: { mount: '/var "x"' }, points: [[START + 60_000, 5]] },
    ])
    expect((await samples.querySeries(plan({ companyId: OTHER_COMPANY }))).series).toEqual([])
    const latest = await samples.latestValues(COMPANY, SERVER, ['cpu_usage_percent', 'disk_used_percent'], START)
    expect(latest).toEqual([
      { metric: 'cpu_usage_percent', labels: {}, value: 99, tsMs: START },
      { metric: 'disk_used_percent', labels: { mount: '/' }, value: 20, tsMs: START + 30_000 },
      { metric: 'disk_used_percent', labels: { mount: '/var "x"' }, value: 5, tsMs: START + 60_000 },
    ])
    const stats = await samples.stats()
    expect(stats).toMatchObject({ isReady: true, rowsStored: 4, lagEntries: 0, insertErrors: 0, lastError: null })
  })

  test('[STO-009] [QRY-023] a late point shows in the cells at once: while it is held, once it is stored, and when its cell is computed again', async () => {
    const owner = { companyId: COMPANY, serverId: 'aaaaaaaa-0000-4000-8000-000000000002' }
    const hour = NOW - (NOW % 3_600_000) - 3 * 3_600_000
    const send = async (points: readonly (readonly [number, number])[]): Promise<void> => {
      const entry = entryOf(owner.companyId, owner.serverId, [{ metric: 'cpu_load1', points }])
      expect(await bus.writer.publish(owner.serverId, entry)).toBeNull()
    }
    const highest = async (source: '5m' | '1h') => {
      const range = { fromMs: hour - 3_600_000, toMs: NOW, stepMs: 3_600_000 }
      const answer = await samples.querySeries(
        plan({ ...owner, ...range, metric: 'cpu_load1', agg: 'max', source, fallsBackToRaw: true }),
      )
      return { source: answer.source, points: answer.series.flatMap(({ points }) => points) }
    }
    const both = async () => [await highest('5m'), await highest('1h')]
    const shown = (value: number) =>
      (['5m', '1h'] as const).map(source => ({
        source,
        points: [[hour - 3_600_000, 1] as [number, number], [hour, value] as [number, number]],
      }))
    await send([
      [hour - 3_600_000, 1],
      [hour + 301_000, 3],
      [hour + 900_000, 2],
    ])
    await samples.flush()
    await samples.runRollups(NOW)
    expect(await both()).toEqual(shown(3))
    await send([[hour + 302_000, 50]])
    await until('it is read', async () => (await samples.stats()).bufferRows > 0)
    expect(await both()).toEqual(shown(50))
    await samples.flush()
    expect(await both()).toEqual(shown(50))
    await samples.runRollups(NOW)
    expect(await both()).toEqual(shown(50))
  })
})

describe('a samples thread that dies', () => {
  test('what is asked of it fails, and the worker is told, once, so that it ends and does not fill the bus', async () => {
    const bus = openTestBus()
    const failures: string[] = []
    const samples = await startSamples({
      threadUrl: new URL('./dying-samples-thread.ts', import.meta.url),
      bus: { kind: 'file', path: bus.path, hold: { ms: 300_000, bytes: 1024 ** 3 } },
      consumers: bus.consumers,
      // A server that is away: the embedded engine would take the whole process along.
      clickhouse: 'http://127.0.0.1:9',
      database: freshDatabase(),
      onFailure: error => void failures.push(error.message),
    })
    try {
      expect((await samples.stats()).isReady).toBe(false)
      expect(failures).toEqual([])
      samples.release()
      await until('the failure', () => failures.length > 0)
      expect(failures[0]).toMatch(/^the samples thread failed: .*out of order/s)
      await expect(samples.stats()).rejects.toThrow(/^the samples thread failed/)
      expect(failures.length).toBe(1)
    } finally {
      await samples.stop()
      await bus.close()
    }
  })

  test('a thread that is stopped has not failed', async () => {
    const bus = openTestBus()
    const failures: string[] = []
    const samples = await startSamples({
      threadUrl: new URL('../../apps/collector/worker/samples/samples-thread.ts', import.meta.url),
      bus: { kind: 'file', path: bus.path, hold: { ms: 300_000, bytes: 1024 ** 3 } },
      consumers: bus.consumers,
      clickhouse: engineUrl,
      database: freshDatabase(),
      cluster: engineCluster,
      onFailure: error => void failures.push(error.message),
    })
    await samples.stop()
    await bus.close()
    expect(failures).toEqual([])
  })
})

const cLibraryOfSignals = cLibrary({ sigaction: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' } })

/** The libraries whose code the process runs when it gets one of these signals; what it ignores or dies of has none. */
function librariesOfHandlers(signals: readonly (keyof typeof constants.signals)[]): string[] {
  const ranges = readFileSync('/proc/self/maps', 'utf8')
    .split('\n')
    .map(line => /^(\w+)-(\w+) .*?(\/\S+)$/.exec(line))
    .flatMap(found => (found ? [{ from: BigInt(`0x${found[1]}`), to: BigInt(`0x${found[2]}`), path: found[3]! }] : []))
  return signals.flatMap(signal => {
    // The handler comes first in the structure, whose size is the library's own.
    const action = new BigUint64Array(64)
    expect(cLibraryOfSignals?.symbols.sigaction(constants.signals[signal], null, ptr(action))).toBe(0)
    const handler = action[0]!
    return ranges.filter(({ from, to }) => from <= handler && handler < to).map(({ path }) => basename(path))
  })
}

test.skipIf(cLibraryOfSignals === null)(
  'faults by which the runtime stops a thread in the middle of compiled code are no crash of the engine',
  async () => {
    const store = await openTestStore()
    expect(await store.rows('SELECT 1')).toEqual([[1]])
    const libraries = librariesOfHandlers(['SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGABRT', 'SIGTRAP', 'SIGTSTP'])
    expect(libraries).not.toBeEmpty()
    expect(libraries.filter(name => /chdb/.test(name))).toEqual([])
    await store.close()
  },
)
