// A company's retention on a virtual calendar: limited, downgraded, upgraded inside the grace, the end of the grace,
// upgraded again. Real samples in the real engine, the rule of the hub that decides on graces, the cache that asks it
// over HTTP, and the query of the admin API.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import pino from 'pino'
import { CompanySettingsCache } from '../../apps/collector/hub-link/company-settings.ts'
import { HubClient } from '../../apps/collector/hub-link/hub-client.ts'
import type { ClickHouse } from '../../apps/collector/store/clickhouse/clickhouse.ts'
import { companiesWithSamples, rememberRetention } from '../../apps/collector/store/clickhouse/retention-memory.ts'
import { expireSamples, reclaim } from '../../apps/collector/store/clickhouse/samples-delete.ts'
import { SamplesReader } from '../../apps/collector/store/clickhouse/samples-query.ts'
import { readCompleteness, runRollups } from '../../apps/collector/store/clickhouse/samples-rollups.ts'
import { RetentionSweeper } from '../../apps/collector/worker/samples/retention-sweep.ts'
import { SampleWriter } from '../../apps/collector/worker/samples/sample-writer.ts'
import { planSeries } from '../../core/query/query-plan.ts'
import { changeRetention, type RetentionState } from '../../core/retention/plan-change.ts'
import { readWindow } from '../../core/retention/readable-and-deletable.ts'
import { hubToken, ScriptedHub } from '../ingest/scripted-hub.ts'
import { entryOf, openTestBus, openTestStore } from '../support/clickhouse.ts'

const COMPANY = '11111111-1111-4111-8111-111111111111'
const SERVER = 'aaaaaaaa-0000-4000-8000-000000000001'
const METRIC = 'cpu_usage_percent'
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
// The calendar runs into the future, since the engine itself forgets raw samples by the real clock.
const START = Math.floor(Date.now() / DAY_MS) * DAY_MS
const TABLES = ['samples_raw', 'rollup_5m', 'rollup_1h']

describe('retention on a virtual calendar', () => {
  const bus = openTestBus()
  const busReader = bus.openReader()
  const hub = new ScriptedHub()
  let clockMs = START + 12 * HOUR_MS
  let state: RetentionState = { effectiveDays: 20, previousDays: null, graceUntilMs: null, changedAtMs: null }
  let store: ClickHouse
  let writer: SampleWriter
  let running: Promise<void>
  let settings: CompanySettingsCache
  let sweeper: RetentionSweeper
  const day = (): number => (clockMs - START - 12 * HOUR_MS) / DAY_MS

  beforeAll(async () => {
    store = await openTestStore()
    hub.script = ({ path }) =>
      path.startsWith('/settings/')
        ? hub.ok({
            metrics_retention_days: state.effectiveDays,
            metrics_retention_previous_days: state.previousDays,
            metrics_retention_grace_until:
              state.graceUntilMs === null ? null : new Date(state.graceUntilMs).toISOString(),
          })
        : null
    const client = new HubClient({
      url: hub.url,
      token: hubToken,
      collectorId: null,
      isPlainAllowed: false,
      log: pino({ level: 'silent' }),
      nowMs: Date.now,
      onClockSkew: () => undefined,
    })
    settings = new CompanySettingsCache(client, 300_000, () => clockMs)
    writer = new SampleWriter({
      store,
      bus: busReader,
      nowMs: () => clockMs,
      onInserted: () => undefined,
      onDefinitions: () => undefined,
      onTrouble: error => {
        throw error
      },
    })
    running = writer.run()
    sweeper = new RetentionSweeper({
      samples: {
        companies: () => companiesWithSamples(store),
        rememberRetention: (...args) => rememberRetention(store, ...args),
        expire: (...args) => expireSamples(store, ...args),
        reclaim: () => reclaim(store).then(() => null),
        setRetentionDays: days => writer.setRetentionDays(days),
      },
      askRetention: async companyId => (await settings.fresh(companyId)) ?? undefined,
      nowMs: () => clockMs,
      sweepEveryMs: HOUR_MS,
      newCompanyWaitMs: DAY_MS,
      isDryRun: false,
      onDaysDeleted: () => undefined,
      onError: (what, error) => {
        throw new Error(what, { cause: error })
      },
    })
    await write(Array.from({ length: 25 }, (_, index) => START - (index + 1) * DAY_MS))
    await runRollups(store, clockMs)
  }, 120_000)
  afterAll(async () => {
    writer.stop()
    await running
    await busReader.close()
    await bus.close()
    await hub.stop()
    await store.close()
  })

  /** One sample a day, at noon. */
  async function write(days: readonly number[]): Promise<void> {
    const points = days.map(startMs => [startMs + 12 * HOUR_MS, (startMs - START) / DAY_MS] as const)
    expect(await bus.writer.publish(SERVER, entryOf(COMPANY, SERVER, [{ metric: METRIC, points }], clockMs))).toBeNull()
    await writer.flush()
  }

  /** Goes to noon of a day, with a sample each day on the way and a sweep at the end. */
  async function walkTo(target: number): Promise<void> {
    while (day() < target) {
      clockMs += DAY_MS
      await write([START + (day() - 1) * DAY_MS])
    }
    await runRollups(store, clockMs)
    await sweeper.sweep()
  }

  /** The oldest day that a query of the last 400 days shows, counted from the first of the calendar. */
  async function oldestRead(): Promise<number | undefined> {
    const window = readWindow(await settings.get(COMPANY), clockMs)
    const request = { companyId: COMPANY, metric: METRIC, agg: 'max' as const, stepMs: DAY_MS }
    const planned = planSeries(
      { ...request, fromMs: clockMs - 399 * DAY_MS, toMs: clockMs },
      { serverId: SERVER, nowMs: clockMs, readFromMs: window.readFromMs },
    )
    if ('fault' in planned) throw new Error(planned.fault.message)
    const complete = await readCompleteness(store)
    const reader = new SamplesReader(store, () => clockMs)
    const answer = await reader.querySeries(
      planned.plan,
      planned.plan.source === 'raw' ? 0 : complete[planned.plan.source],
    )
    return answer.series[0]?.points[0]?.[1]
  }

  /** The oldest day in each table. */
  async function oldestKept(): Promise<unknown[]> {
    const oldest: unknown[] = []
    for (const table of TABLES)
      oldest.push(
        (await store.rows(`SELECT toFloat64(toUnixTimestamp64Milli(min(ts))) FROM ${store.database}.${table}`))[0]?.[0],
      )
    return oldest.map(ms => Math.floor((Number(ms) - START) / DAY_MS))
  }
  const everywhere = (oldest: number): number[] => TABLES.map(() => oldest)
  const change = (days: number | null): void => {
    state = changeRetention(state, days, clockMs)
    settings.clear()
  }

  test('[STO-008] [RET-006] [RET-008] [RET-011] the plan of 20 days: read at once, deleted after a day, in raw and rollups', async () => {
    expect(await oldestRead()).toBe(-20)
    await sweeper.sweep()
    expect(await oldestKept()).toEqual(everywhere(-25))
    await walkTo(2)
    expect(await oldestRead()).toBe(-18)
    expect(await oldestKept()).toEqual(everywhere(-18))
  }, 120_000)

  test('[RET-001] [RET-003] [RET-007] [RET-009] [QRY-029] [QRY-030] a downgrade: everything stays readable, nothing old is written, and a silent hub changes nothing', async () => {
    change(5)
    expect(state).toMatchObject({ previousDays: 20, graceUntilMs: clockMs + 30 * DAY_MS })
    await walkTo(6)
    expect(await oldestRead()).toBe(-14)
    expect(await oldestKept()).toEqual(everywhere(-14))
    const dropped = writer.dropped.retentionLocked
    await write([START - 3 * DAY_MS])
    expect(writer.dropped.retentionLocked).toBe(dropped + 1)

    await hub.stop()
    const { previousDays } = state
    await walkTo(8)
    expect(sweeper.last).toMatchObject({ skipped: 1, daysDeleted: 0, errors: 0 })
    expect([await oldestRead(), previousDays]).toEqual([-12, 20])
    expect(await oldestKept()).toEqual(everywhere(-14))
    hub.restart()
    await walkTo(9)
    expect(await oldestKept()).toEqual(everywhere(-11))
    // What the hub says is kept for five minutes.
    state = { ...state, previousDays: 7 }
    clockMs += 299_999
    expect(await oldestRead()).toBe(-11)
    clockMs += 1
    expect(await oldestRead()).toBe(3)
    state = { ...state, previousDays: 20 }
    clockMs -= 300_000
    settings.clear()
  }, 120_000)

  test('[RET-002] [RET-005] [RET-008] [RET-012] an upgrade inside the grace keeps it; a day after its end what left the window is gone', async () => {
    change(12)
    expect(state).toMatchObject({ effectiveDays: 12, previousDays: 20 })
    await walkTo(31)
    expect(await oldestRead()).toBe(11)
    expect(await oldestKept()).toEqual(everywhere(11))
    await walkTo(32)
    // The grace is over to the minute; the 20 days were seen 30 days ago for the last time.
    expect(await oldestRead()).toBe(20)
    await walkTo(33)
    expect(await oldestRead()).toBe(21)
    expect(await oldestKept()).toEqual(everywhere(21))
  }, 120_000)

  test('[RET-013] [RET-014] an upgrade is read at once, and what was deleted does not come back', async () => {
    change(12)
    expect(await oldestRead()).toBe(21)
    change(400)
    // 33 - 12 days are gone; everything from there is read as soon as the hub is asked.
    expect(await oldestRead()).toBe(21)
    await walkTo(40)
    expect(await oldestRead()).toBe(21)
    expect(await oldestKept()).toEqual(everywhere(21))
    change(3)
    expect(await oldestRead()).toBe(21)
    state = { ...state, previousDays: null, graceUntilMs: null }
    settings.clear()
    expect(await oldestRead()).toBe(37)
    change(10)
    expect(await oldestRead()).toBe(30)
    change(null)
    expect(await oldestRead()).toBe(21)
  }, 120_000)
})
