// How long does the purge of one company among many take, and how long do inserts of others wait meanwhile? What does a
// day of retention cost, 24 sweeps over companies of different retention? Options: companies, days, series a company
// (one point in 5 minutes).

import type { ClickHouse } from '../apps/collector/store/clickhouse/clickhouse.ts'
import { companiesWithSamples, rememberRetention } from '../apps/collector/store/clickhouse/retention-memory.ts'
import { expireSamples, purgeSamples, reclaim } from '../apps/collector/store/clickhouse/samples-delete.ts'
import { runRollups } from '../apps/collector/store/clickhouse/samples-rollups.ts'
import { RetentionSweeper } from '../apps/collector/worker/samples/retention-sweep.ts'
import { readRecording, serverSeries } from './samples-fleet.ts'
import { companyOf, cpuMsOf, openBenchStore, rounded, say, serverOf, storeFleet } from './samples-store.ts'

const companies = Number(process.argv[2] ?? 1000)
const days = Number(process.argv[3] ?? 5)
const series = Number(process.argv[4] ?? 10)
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const today = Math.floor(Date.now() / DAY_MS) * DAY_MS

const { store, remove } = await openBenchStore('delete')
const owner = `toUUID(concat('11111111-1111-4111-8111-', leftPad(lower(hex(toUInt64(c))), 12, '0'))) AS company_id,
  toUUID(concat('aaaaaaaa-0000-4000-8000-', leftPad(lower(hex(toUInt64(c))), 12, '0'))) AS server_id`

/** Days of samples of every company, one point a series in 5 minutes, in a few parts a day. */
async function fill(): Promise<void> {
  const perDay = companies * series * 288
  const c = `intDiv(number, ${series * 288}) AS c, intDiv(number, 288) % ${series} AS s, number % 288 AS t`
  for (let day = 1; day <= days; day++)
    await store.command(
      `INSERT INTO bench.samples_raw (company_id, server_id, series_id, ts, seq, points)
       SELECT ${owner}, cityHash64(s), fromUnixTimestamp64Milli(toInt64(${today - day * DAY_MS} + t * 300000), 'UTC'), 1,
              concat(char(2), reinterpretAsFixedString(toInt64(cityHash64(number) % 10000)))
       FROM (SELECT number, ${c} FROM numbers(${perDay})) SETTINGS max_threads = 1, max_insert_threads = 1`,
    )
  await store.command(
    `INSERT INTO bench.series SELECT ${owner}, 'cpu_usage_percent', cityHash64(s), concat('k', toString(s)), now64(3), now64(3)
     FROM (SELECT number, intDiv(number, ${series}) AS c, number % ${series} AS s FROM numbers(${companies * series}))`,
  )
}

const rowsOf = async (table: string): Promise<number> =>
  Number((await store.rows(`SELECT count() FROM bench.${table}`))[0]?.[0])

const fillMs = await cpuMsOf(fill)
const raw = await rowsOf('samples_raw')
const rollupMs = await cpuMsOf(() => runRollups(store, today + HOUR_MS))
say('samples-delete', {
  question: 'an interval of 300 s: CPU of the rollups a raw row, ns',
  rows: raw,
  cells_5m: await rowsOf('rollup_5m'),
  insert: rounded((fillMs * 1e6) / raw),
  rollups: rounded((rollupMs * 1e6) / raw),
})

const fleet = Array.from({ length: 100 }, (_, index) => ({
  companyId: companyOf(companies + index),
  serverId: serverOf(companies + index),
  series: serverSeries(readRecording(), index, 1),
}))
let turn = 0
/** One block of other companies, as it comes every second; how long it took. */
async function insertMs(): Promise<number> {
  const beganMs = performance.now()
  await storeFleet(store, fleet, today - HOUR_MS + turn++ * 1000)
  return performance.now() - beganMs
}
const alone: number[] = []
for (let count = 0; count < 20; count++) alone.push(await insertMs())
let isPurging = true
const beganMs = performance.now()
const purge = purgeSamples(store, companyOf(Math.floor(companies / 2)), null).then(() => {
  isPurging = false
  return performance.now() - beganMs
})
const beside: number[] = []
while (isPurging) beside.push(await insertMs())
const purgeMs = await purge
const max = (values: readonly number[]): number => rounded(Math.max(...values))
say('samples-delete', {
  question: 'purge of one company',
  companies,
  purge_ms: rounded(purgeMs),
  longest_insert_beside_ms: max(beside),
  longest_insert_alone_ms: max(alone),
})

await retentionDay(store)
await remove()

async function retentionDay(store: ClickHouse): Promise<void> {
  let clockMs = today + HOUR_MS
  const sweeper = new RetentionSweeper({
    samples: {
      companies: () => companiesWithSamples(store),
      rememberRetention: (...args) => rememberRetention(store, ...args),
      expire: (...args) => expireSamples(store, ...args),
      reclaim: () => reclaim(store).then(() => null),
      setRetentionDays: () => undefined,
    },
    askRetention: async companyId => ({
      retentionDays: 1 + (Number.parseInt(companyId.slice(-12), 16) % Math.max(1, days - 1)),
      previousDays: null,
      graceUntilMs: null,
    }),
    nowMs: () => clockMs,
    sweepEveryMs: HOUR_MS,
    newCompanyWaitMs: DAY_MS,
    isDryRun: false,
    onDaysDeleted: () => undefined,
    onError: (what, error) => {
      throw new Error(what, { cause: error })
    },
  })
  await sweeper.sweep()
  clockMs += DAY_MS
  const sweeps: number[] = []
  const before = await rowsOf('samples_raw')
  const cpuMs = await cpuMsOf(async () => {
    for (let hour = 0; hour < 24; hour++, clockMs += HOUR_MS) {
      const began = performance.now()
      await sweeper.sweep()
      sweeps.push(performance.now() - began)
    }
    // What was deleted is taken off the disk in the background: that is part of the cost.
    while (
      Number(
        (await store.rows("SELECT count() FROM system.mutations WHERE database = 'bench' AND NOT is_done"))[0]?.[0],
      ) > 0
    )
      await Bun.sleep(100)
  })
  say('samples-delete', {
    question: "the janitor's day: CPU of 24 sweeps",
    companies,
    cpu_ms: rounded(cpuMs),
    longest_sweep_ms: max(sweeps),
    rows_deleted: before - (await rowsOf('samples_raw')),
  })
}
