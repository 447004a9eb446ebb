import { describe, expect, test } from 'bun:test'
import { EntryReader } from '../../../core/bus/entry.ts'
import { limits } from '../../../core/limits.ts'
import { NativeWriter } from '../../../core/samples/block/native-writer.ts'
import { SampleBlock } from '../../../core/samples/block/sample-block.ts'
import { KEPT_MS, KEYS_MAX, type NewestValue, NewestValues } from '../../../core/samples/latest/newest-values.ts'
import { fullSeriesKey, seriesId } from '../../../core/series/series-key.ts'
import { entryOf, type TestSeries } from '../../support/clickhouse.ts'
import { randomFrom } from '../../support/random.ts'

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
const COMPANY = '11111111-1111-4111-8111-111111111111'
const OTHER = '22222222-2222-4222-8222-222222222222'
const server = (index: number): string => `aaaaaaaa-0000-4000-8000-${String(index).padStart(12, '0')}`
const NOW = 1_800_000_000_000
const MINUTE_MS = 60_000
const METRICS = ['cpu_load1', 'disk_used_percent']
/** From here on a server that was seen at NOW is whole without the store. */
const WHOLE_MS = NOW + 2 * limits.pointAheadMaxMs

const knownOf = (metric: string, labels: Record<string, string> = {}) => {
  const key = fullSeriesKey(metric, labels)
  return { ...seriesId(key), key }
}
const stored = (key: string, value: number, tsMs: number) => ({ ...seriesId(key), value, tsMs })

describe(`newest values (SEED=${seed})`, () => {
  const reader = new EntryReader()
  const writer = new NativeWriter()
  function take(
    held: NewestValues,
    batches: readonly { companyId?: string; serverId: string; series: readonly TestSeries[] }[],
    nowMs = NOW,
  ): void {
    const block = new SampleBlock()
    for (const { companyId = COMPANY, serverId, series } of batches) {
      reader.open(entryOf(companyId, serverId, series))
      while (reader.next()) block.add(reader, () => ({ purged: false, lockedBeforeMs: Number.NEGATIVE_INFINITY }))
    }
    block.write(writer, 1)
    for (const server of block.servers()) held.take(server, nowMs, () => true)
  }
  const cpu = (value: number, tsMs = WHOLE_MS): TestSeries => ({ metric: 'cpu_load1', points: [[tsMs, value]] })

  test('of every series of these metrics the newest sample is held, whatever else a server sends, in whatever order', () => {
    const random = randomFrom(seed)
    const pick = (count: number): number => Math.floor(random() * count)
    const held = new NewestValues(METRICS)
    // More keys than the filter begins with, so that it grows.
    held.learn(Array.from({ length: 3_000 }, (_, mount) => knownOf('disk_used_percent', { mount: `/${mount}` })))
    held.learn([knownOf('cpu_load1')])
    const wanted = new Map<string, Map<string, NewestValue>>()
    for (let turn = 0; turn < 40; turn++) {
      const batches = Array.from({ length: 8 }, () => ({
        serverId: server(pick(4)),
        series: [
          ...new Map(
            Array.from({ length: 1 + pick(12) }, (): [string, TestSeries] => {
              const kind = pick(3)
              const metric = kind === 0 ? 'cpu_load1' : kind === 1 ? 'disk_used_percent' : 'net_rx_bytes_per_sec'
              const labels: Record<string, string> = kind === 0 ? {} : { mount: `/${pick(20)}` }
              const points = Array.from(
                { length: 1 + pick(2) },
                () => [WHOLE_MS + pick(10) * 1_000, [-0, 0.25, 1 / 3, 7][pick(4)]!] as const,
              )
              return [fullSeriesKey(metric, labels), { metric, labels, points }]
            }),
          ).values(),
        ],
      }))
      take(held, batches)
      for (const { serverId, series } of batches) {
        const values = wanted.get(serverId) ?? new Map<string, NewestValue>()
        wanted.set(serverId, values)
        for (const { metric, labels = {}, points } of series)
          if (METRICS.includes(metric))
            for (const [tsMs, value] of points) {
              const key = fullSeriesKey(metric, labels)
              if (tsMs >= (values.get(key)?.tsMs ?? 0)) values.set(key, { key, value: value + 0, tsMs })
            }
      }
      for (const [serverId, values] of wanted) {
        const ordered = [...values.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
        expect([turn, held.values({ companyId: COMPANY, serverId }, METRICS, WHOLE_MS)]).toEqual([turn, ordered])
      }
    }
  })

  test('nothing is answered from before the server was seen, until the store has said what there was', () => {
    const held = new NewestValues(METRICS)
    held.learn([knownOf('cpu_load1'), knownOf('disk_used_percent', { mount: '/' })])
    const name = { companyId: COMPANY, serverId: server(1) }
    const since = NOW - limits.statusValueAgeMs
    expect(held.values(name, METRICS, since)).toBeNull()
    expect(held.ticket(name)).toBeNull()
    take(held, [{ serverId: server(1), series: [cpu(5, NOW)] }])
    expect(held.values(name, METRICS, since)).toBeNull()
    expect(held.values(name, METRICS, WHOLE_MS - 1)).toBeNull()
    expect(held.values(name, METRICS, WHOLE_MS)).toEqual([])
    expect(held.values(name, ['mem_total_bytes'], WHOLE_MS)).toBeNull()

    const disk = { key: 'disk_used_percent{mount="/"}', value: 40, tsMs: NOW - MINUTE_MS }
    held.fill(name, held.ticket(name), since, [
      stored('cpu_load1', 4, NOW - MINUTE_MS),
      stored('uptime_seconds', 1, NOW - MINUTE_MS),
      stored(disk.key, disk.value, disk.tsMs),
    ])
    expect(held.values(name, METRICS, since)).toEqual([{ key: 'cpu_load1', value: 5, tsMs: NOW }, disk])
    expect(held.values(name, ['disk_used_percent'], since)).toEqual([disk])
    expect(held.values(name, METRICS, since - 1)).toBeNull()
    // What is not shown any more is let go, and not missed by who asks for newer values.
    take(held, [{ serverId: server(1), series: [cpu(6, NOW)] }], NOW + 2 * limits.statusValueAgeMs)
    expect(held.values(name, METRICS, since)).toBeNull()
    expect(held.values(name, METRICS, NOW)).toEqual([{ key: 'cpu_load1', value: 6, tsMs: NOW }])
  })

  test('what the store said before samples were deleted is not taken for what is there', () => {
    const held = new NewestValues(METRICS)
    held.learn([knownOf('cpu_load1')])
    const name = { companyId: COMPANY, serverId: server(1) }
    const others = [
      { companyId: COMPANY, serverId: server(2) },
      { companyId: OTHER, serverId: server(1) },
    ]
    const sendAll = () =>
      take(
        held,
        [name, ...others].map(owner => ({ ...owner, series: [cpu(1)] })),
      )
    const isHeld = () => [name, ...others].map(owner => held.values(owner, METRICS, WHOLE_MS) !== null)
    sendAll()
    const ticket = held.ticket(name)
    held.forget(COMPANY, server(1), NOW)
    expect(isHeld()).toEqual([false, true, true])
    sendAll()
    held.fill(name, ticket, NOW, [stored('cpu_load1', 9, WHOLE_MS + 1)])
    expect(held.values(name, METRICS, WHOLE_MS)).toEqual([{ key: 'cpu_load1', value: 1, tsMs: WHOLE_MS }])
    held.forget(COMPANY, null, NOW)
    expect(isHeld()).toEqual([false, false, true])
    held.forgetAll()
    expect(isHeld()).toEqual([false, false, false])
  })

  describe('once the store was read for all servers', () => {
    const since = NOW - limits.statusValueAgeMs
    const [sends, rests, isNew] = [1, 2, 3].map(index => ({ companyId: COMPANY, serverId: server(index) })) as [
      { companyId: string; serverId: string },
      { companyId: string; serverId: string },
      { companyId: string; serverId: string },
    ]
    function loaded(): NewestValues {
      const held = new NewestValues(METRICS)
      held.learn([knownOf('cpu_load1')])
      const ticket = held.loadTicket()
      take(held, [{ ...sends, series: [cpu(5, NOW)] }])
      const found = [
        { ...sends, ...stored('cpu_load1', 4, NOW) },
        { ...rests, ...stored('cpu_load1', 2, NOW - MINUTE_MS) },
      ]
      expect(held.load(ticket, found, NOW)).toBe('taken')
      expect(held.values(rests, METRICS, since)).toBeNull()
      expect(held.values(isNew, METRICS, since)).toBeNull()
      held.loaded(NOW - KEPT_MS)
      return held
    }
    const shown = (held: NewestValues, name: typeof sends, sinceMs = since) =>
      held.values(name, METRICS, sinceMs)?.map(({ value }) => value) ?? null

    test('each server is answered, also one that does not send and one of which nothing is stored', () => {
      const held = loaded()
      expect([sends, rests, isNew].map(name => shown(held, name))).toEqual([[5], [2], []])
      expect([sends, rests, isNew].map(name => shown(held, name, NOW - KEPT_MS - 1))).toEqual([null, null, null])
      take(held, [{ ...isNew, series: [cpu(7, NOW)] }])
      expect(shown(held, isNew)).toEqual([7])
    })

    test('a server that has long been silent has nothing any more, but for what was ahead of the clock', () => {
      const held = loaded()
      const laterMs = NOW + KEPT_MS + MINUTE_MS
      take(held, [{ ...sends, series: [cpu(8, laterMs + MINUTE_MS)] }], NOW + 2 * MINUTE_MS)
      take(held, [{ ...isNew, series: [cpu(7, laterMs)] }], laterMs)
      expect(shown(held, rests, laterMs - limits.statusValueAgeMs)).toEqual([])
      expect(shown(held, rests, since)).toBeNull()
      take(held, [{ ...isNew, series: [cpu(7, laterMs)] }], laterMs + 2 * MINUTE_MS)
      expect(shown(held, sends, laterMs - limits.statusValueAgeMs)).toEqual([8])
    })

    test('of what was deleted, or was to be, the store is asked until all that was there before is too old', () => {
      const held = loaded()
      const ticket = held.loadTicket()
      held.forget(COMPANY, rests.serverId, NOW)
      expect(held.load(ticket, [{ ...rests, ...stored('cpu_load1', 2, NOW) }], NOW)).toBe('again')
      expect([sends, rests, isNew].map(name => shown(held, name))).toEqual([[5], null, []])
      take(held, [{ ...rests, series: [cpu(3, NOW)] }])
      held.loaded(NOW - KEPT_MS)
      expect(shown(held, rests)).toBeNull()
      held.forget(COMPANY, null, NOW)
      expect([sends, rests, isNew].map(name => shown(held, name))).toEqual([null, null, null])
      const laterMs = NOW + KEPT_MS + 2 * limits.pointAheadMaxMs + MINUTE_MS
      take(held, [{ companyId: OTHER, serverId: server(1), series: [cpu(1, laterMs)] }], laterMs)
      expect(shown(held, isNew, laterMs - limits.statusValueAgeMs)).toEqual([])
    })
  })

  test('more keys than it may know are told of, and not kept', () => {
    const held = new NewestValues(METRICS)
    const keys = (count: number) =>
      Array.from({ length: count }, (_, index) => ({
        lo: index,
        hi: index >>> 4,
        key: `disk_used_percent{mount="/${index}"}`,
      }))
    expect(held.learn(keys(KEYS_MAX))).toBe(true)
    expect(held.learn(keys(KEYS_MAX + 1))).toBe(false)
    const more = { lo: 1, hi: 1, key: 'disk_used_percent{mount="more"}' }
    expect(held.learn([more])).toBe(false)
    expect(held.named([{ ...more, value: 1, tsMs: 1 }], METRICS, 0)).toEqual([])
  })
})
