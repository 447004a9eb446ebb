import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { workerKeys } from '../../apps/collector/config.ts'
import { RetentionSweeper } from '../../apps/collector/worker/samples/retention-sweep.ts'
import { type SamplesClient, startSamples } from '../../apps/collector/worker/samples/samples-client.ts'
import type { RetentionSettings } from '../../core/retention/readable-and-deletable.ts'
import { briefly, engineCluster, engineUrl, entryOf, freshDatabase, openTestBus } from '../support/clickhouse.ts'
import { until } from '../support/until.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const OTHER_COMPANY = '22222222-2222-4222-8222-222222222222'
const SERVER = 'aaaaaaaa-0000-4000-8000-000000000001'
const DAY_MS = 86_400_000
const TODAY = Math.floor(Date.now() / DAY_MS) * DAY_MS
const NOON = TODAY + DAY_MS / 2
const DAYS = 8

describe('the retention sweep', () => {
  const bus = openTestBus()
  const retention = new Map<string, RetentionSettings>()
  const asked: string[] = []
  let clockMs = NOON
  let daysDeleted = 0
  let samples: SamplesClient

  const limited = (retentionDays: number | null, previousDays: number | null = null): RetentionSettings => ({
    retentionDays,
    previousDays,
    graceUntilMs: previousDays === null ? null : NOON + 10 * DAY_MS,
  })
  const sweeper = (isDryRun = false) =>
    new RetentionSweeper({
      samples,
      askRetention: async companyId => {
        asked.push(companyId)
        return retention.get(companyId)
      },
      nowMs: () => clockMs,
      sweepEveryMs: 3_600_000,
      newCompanyWaitMs: DAY_MS,
      isDryRun,
      onDaysDeleted: days => {
        daysDeleted += days
      },
      onError: (what, error) => {
        throw new Error(what, { cause: error })
      },
    })
  /** How many UTC days of samples are left, by what a query of each store finds. */
  const daysLeft = async (companyId: string): Promise<Record<string, number>> => {
    const left: Record<string, number> = {}
    for (const source of ['raw', '5m', '1h'] as const) {
      const answer = await samples.querySeries({
        companyId,
        serverId: SERVER,
        metric: 'cpu_usage_percent',
        agg: 'last',
        fromMs: TODAY - 40 * DAY_MS,
        toMs: TODAY - 1,
        stepMs: DAY_MS,
        source,
        oldestMs: Number.NEGATIVE_INFINITY,
        isEmpty: false,
        fallsBackToRaw: false,
      })
      left[source] = answer.series[0]?.points.length ?? 0
    }
    return left
  }

  beforeAll(async () => {
    samples = await startSamples({
      onFailure: error => {
        throw error
      },
      threadUrl: new URL('../../apps/collector/worker/samples/samples-thread.ts', import.meta.url),
      bus: { kind: 'file', path: bus.path, hold: briefly },
      consumers: bus.consumers,
      clickhouse: engineUrl,
      database: freshDatabase(),
      cluster: engineCluster,
    })
    const points = Array.from({ length: DAYS }, (_, day) => [TODAY - (day + 1) * DAY_MS, day] as const)
    for (const companyId of [COMPANY, OTHER_COMPANY]) {
      const entry = entryOf(companyId, SERVER, [{ metric: 'cpu_usage_percent', points }])
      expect(await bus.writer.publish(SERVER, entry)).toBeNull()
    }
    await samples.flush()
    await samples.runRollups(NOON)
  }, 120_000)
  beforeEach(() => {
    retention.clear()
    asked.length = 0
    daysDeleted = 0
  })
  afterAll(async () => {
    await samples.stop()
    await bus.close()
  })
  const all = { raw: DAYS, '5m': DAYS, '1h': DAYS }

  test('[RET-005] [RET-006] [RET-009] [RET-011] [RET-012] [RET-007] [RET-015] what a sweep keeps and what it deletes', async () => {
    expect(await daysLeft(COMPANY)).toEqual(all)

    // The hub does not answer.
    expect(await sweeper().sweep()).toMatchObject({ companies: 2, skipped: 2, daysDeleted: 0, errors: 0 })

    // Both companies are new to this collector.
    retention.set(COMPANY, limited(6)).set(OTHER_COMPANY, limited(null))
    expect(await sweeper().sweep()).toMatchObject({ companies: 2, skipped: 2, daysDeleted: 0 })

    clockMs = NOON + DAY_MS
    // The smaller retention is there, but the larger one was seen within 30 days.
    retention.set(COMPANY, limited(3))
    expect(await sweeper(true).sweep()).toMatchObject({ skipped: 1, daysDeleted: 3, dryRun: true })
    expect(await daysLeft(COMPANY)).toEqual(all)
    expect(await sweeper().sweep()).toMatchObject({
      companies: 2,
      skipped: 1,
      daysDeleted: 3,
      errors: 0,
      dryRun: false,
    })
    expect(daysDeleted).toBe(3)
    expect(await daysLeft(COMPANY)).toEqual({ raw: 5, '5m': 5, '1h': 5 })
    expect(await daysLeft(OTHER_COMPANY)).toEqual(all)

    // 31 days later the larger one is forgotten; the grace keeps what could be read before.
    clockMs = NOON
    asked.length = 0
    const again = sweeper()
    await again.sweep()
    await again.sweep()
    expect(asked.sort()).toEqual([COMPANY, COMPANY, OTHER_COMPANY, OTHER_COMPANY])
    expect(again.last).toMatchObject({ companies: 2, daysDeleted: 0 })
    expect(await daysLeft(COMPANY)).toEqual({ raw: 5, '5m': 5, '1h': 5 })
  }, 120_000)

  test('[RET-007] [RET-014] in a grace nothing inside previous_days is deleted, and what is deleted does not come back', async () => {
    clockMs = NOON + 40 * DAY_MS
    retention.set(COMPANY, { ...limited(3), previousDays: 44, graceUntilMs: clockMs + DAY_MS })
    // 44 days before the clock's day lie 4 days before today.
    expect(await sweeper().sweep()).toMatchObject({ daysDeleted: 1 })
    expect(await daysLeft(COMPANY)).toEqual({ raw: 4, '5m': 4, '1h': 4 })
    retention.set(COMPANY, limited(365))
    await sweeper().sweep()
    expect(await daysLeft(COMPANY)).toEqual({ raw: 4, '5m': 4, '1h': 4 })
    expect(await daysLeft(OTHER_COMPANY)).toEqual(all)
  }, 120_000)

  test('[RET-004] it sweeps every hour, by itself', async () => {
    expect(workerKeys['retention.sweep'].default).toBe(3_600_000)
    let sweeps = 0
    const countSweep = async (): Promise<string[]> => {
      sweeps++
      return []
    }
    const alone = new RetentionSweeper({
      samples: { ...samples, companies: countSweep },
      askRetention: async () => undefined,
      nowMs: () => clockMs,
      sweepEveryMs: 10,
      newCompanyWaitMs: DAY_MS,
      isDryRun: false,
      onDaysDeleted: () => undefined,
      onError: (what, error) => {
        throw new Error(what, { cause: error })
      },
    })
    alone.start()
    await until('three sweeps', () => sweeps >= 3)
    await alone.stop()
    const stopped = sweeps
    expect(alone.last).toMatchObject({ companies: 0, errors: 0, dryRun: false })
    await alone.sweep()
    expect(sweeps).toBe(stopped + 1)
  })
})
