// What fleets of 10,000 to 10,000,000 servers need, from what was measured: a table of CPU, memory, disk and network,
// and a small simulation of one collector (arrivals, its main thread, commits) that is held against measured points.
// Nothing here measures: it multiplies. Usage: bun bench/simulate-growth.ts [--table], which prints ARCHITECTURE.md's.
import { shardOfServer } from '../core/bus/shard-of-server.ts'
import { limits } from '../core/limits.ts'
import { uuid } from './default-rules.ts'

const SERIES = 150
const INTERVAL_S = 30
const DAY_S = 86_400
const FIT_S = 10

/**
 * Measured by `bun run bench fleet-pace` on a quiet host of two shared EPYC cores (2026-11-23, whole collector in one
 * process, embedded ClickHouse included), and the last point by `whole-path`: batches a second, cores, CPU us a batch
 * of the main thread, and milliseconds to the acknowledgement.
 */
const measured = [
  { rate: 329, cores: 0.203, mainUs: 420.5, p50Ms: 2.29, p99Ms: 7.87 },
  { rate: 1_646, cores: 0.42, mainUs: 179.7, p50Ms: 1.91, p99Ms: 8.57 },
  { rate: 3_282, cores: 0.65, mainUs: 127.4, p50Ms: 2.17, p99Ms: 16.58 },
  { rate: 13_378, cores: 1.02, mainUs: null, p50Ms: null, p99Ms: null },
] as const

/** Bytes and rates that were measured, each with where. */
const coefficients = {
  /** A batch of 150 random walks, zstd, and about as much of HTTP, TLS and TCP around it and its answer (assumed). */
  bodyBytes: 1_780,
  aroundBytes: 700,
  /** An entry of the bus: 96 bytes and 16 a series (`core/bus/entry.ts`). */
  entryBytes: 96 + 16 * SERIES,
  /** `sql/samples/README.md`: bytes a raw sample, in runs of ten and in both rollups. */
  rawBytes: 1.02,
  rollupBytes: 0.49,
  rawDays: 30,
  rollupDays: 400,
  /** Resident with 100,000 agents and their 15 million series, samples held for minutes; and of an idle one. */
  fullRssBytes: 8.3e9,
  idleRssBytes: 0.392e9,
  /** The hub's bench on a quiet host: agents a second of a feed, and events of alerts. */
  hubAgentsPerS: 100_000 / 3.22,
  hubEventsPerS: 1_967,
} as const

/** Assumed, not measured: events of alerts of a server a day. */
const EVENTS_A_SERVER_DAY = 2
/** The collector of 100,000 servers is the largest that was measured at pace: larger fleets are several of it. */
const CELL_SERVERS = 100_000

const sizes = [10_000, 50_000, 100_000, 1_000_000, 10_000_000] as const

/** Cores of one collector at a rate: straight lines between measured points, and none beyond the last. */
function coresAt(rate: number): number {
  const above = measured.findIndex(point => point.rate >= rate)
  const next = measured[above === -1 ? measured.length - 1 : above]!
  const before = above <= 0 ? { rate: 0, cores: 0.029 } : measured[above - 1]!
  return before.cores + ((next.cores - before.cores) * (rate - before.rate)) / (next.rate - before.rate)
}

/** What a fleet needs. Decimal units for disk and network, as they are sold. */
function needs(servers: number) {
  const cells = Math.ceil(servers / CELL_SERVERS)
  const rate = servers / INTERVAL_S
  const samplesADay = (servers * SERIES * DAY_S) / INTERVAL_S
  const { fullRssBytes, idleRssBytes, rawBytes, rawDays, rollupBytes, rollupDays } = coefficients
  const bytesAServer = (fullRssBytes - idleRssBytes) / CELL_SERVERS
  const eventsPerS = (servers * EVENTS_A_SERVER_DAY) / DAY_S
  return {
    servers,
    cells,
    batchesPerS: rate,
    samplesPerS: rate * SERIES,
    cores: cells * coresAt(rate / cells),
    memoryGb: (cells * idleRssBytes + servers * bytesAServer) / 1e9,
    rawTb: (samplesADay * rawDays * rawBytes) / 1e12,
    rollupTb: (samplesADay * rollupDays * rollupBytes) / 1e12,
    inMbitPerS: (rate * (coefficients.bodyBytes + coefficients.aroundBytes) * 8) / 1e6,
    busMbPerS: (rate * coefficients.entryBytes) / 1e6,
    heldGb: (rate * coefficients.entryBytes * 300) / 1e9,
    eventsPerS,
    hubShare: eventsPerS / coefficients.hubEventsPerS,
    seenPerS: servers / 60,
    registrySeconds: servers / coefficients.hubAgentsPerS,
  }
}

/** Numbers in [0, 1), the same ones in every run (mulberry32). */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

type Fit = { readonly batchUs: number; readonly commitUs: number; readonly syncMs: number; readonly pauseMs: number }
const GROUP_WAIT_MS = 2
/** Of the commits, how many are followed by a pause: other threads have the cores, garbage is collected (assumed). */
const PAUSE_SHARE = 0.04

/**
 * One collector for `seconds`: batches come at random, the main thread takes one after the other, and commits those
 * that wait as soon as 2 ms have passed since the commit before; it does nothing else meanwhile.
 */
function simulate(rate: number, fit: Fit, seconds: number, next: () => number) {
  const waits: number[] = []
  let group: number[] = []
  let commitFromMs = 0
  let freeAtMs = 0
  let busyMs = 0
  const pause = (): number => (next() < PAUSE_SHARE ? -fit.pauseMs * Math.log(1 - next()) : 0)
  const commit = (): void => {
    const startMs = Math.max(freeAtMs, commitFromMs)
    freeAtMs = startMs + fit.commitUs / 1000 + fit.syncMs + pause()
    commitFromMs = freeAtMs + GROUP_WAIT_MS
    busyMs += fit.commitUs / 1000
    for (const arrivedMs of group) waits.push(freeAtMs - arrivedMs)
    group = []
  }
  for (let atMs = 0; atMs < seconds * 1000; ) {
    atMs += (-Math.log(1 - next()) / rate) * 1000
    if (group.length > 0 && Math.max(commitFromMs, freeAtMs) <= atMs) commit()
    freeAtMs = Math.max(freeAtMs, atMs) + fit.batchUs / 1000
    busyMs += fit.batchUs / 1000
    group.push(atMs)
  }
  waits.sort((a, b) => a - b)
  const at = (share: number): number => waits[Math.floor(waits.length * share)] ?? 0
  return { mainUs: (busyMs * 1000) / waits.length, p50Ms: at(0.5), p99Ms: at(0.99), busy: busyMs / seconds / 1000 }
}

/** How far apart two numbers are, as a ratio. */
const apart = (a: number, b: number): number => Math.abs(Math.log(a / b))
const [low, middle, high] = measured

const range = (from: number, to: number, step: number): number[] =>
  Array.from({ length: Math.round((to - from) / step) + 1 }, (_, index) => from + index * step)

/** The candidate that misses the least. */
function closest(candidates: readonly Fit[], missOf: (fit: Fit) => number): Fit {
  const misses = candidates.map(missOf)
  return candidates[misses.indexOf(Math.min(...misses))]!
}

/**
 * What nobody measured by itself: CPU of a batch and of a commit, from the outer points; how long a sync takes, and a
 * pause, from the middle one. What the model says elsewhere is then held against what was measured there.
 */
function fitted(): Fit {
  const run = (rate: number, fit: Fit) => simulate(rate, fit, FIT_S, random(1))
  const costs = range(40, 120, 5).flatMap(batchUs =>
    range(200, 560, 20).map((commitUs): Fit => ({ batchUs, commitUs, syncMs: 0.2, pauseMs: 4 })),
  )
  const cost = closest(
    costs,
    fit => apart(run(low.rate, fit).mainUs, low.mainUs) + apart(run(high.rate, fit).mainUs, high.mainUs),
  )
  const syncs = range(0.1, 0.5, 0.1).flatMap(syncMs =>
    range(2, 14, 1).map((pauseMs): Fit => ({ ...cost, syncMs, pauseMs })),
  )
  return closest(syncs, fit => {
    const { p50Ms, p99Ms } = run(middle.rate, fit)
    return apart(p50Ms, middle.p50Ms) + apart(p99Ms, middle.p99Ms)
  })
}

const rounded = (value: number): number => Number(value.toPrecision(3))
const roundedAll = (row: object): object =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'number' ? rounded(value) : value]),
  )

/** How unevenly servers are shared out over the shards: the fullest one against the mean. */
function fullestShard(servers: number): number {
  const counts = new Float64Array(limits.stateShards)
  for (let server = 0; server < servers; server++) counts[shardOfServer(uuid('2', server))]!++
  return (Math.max(...counts) * limits.stateShards) / servers
}

const fit = fitted()
const rows = sizes.map(needs)
if (process.argv.includes('--table')) {
  const names = Object.keys(rows[0]!) as (keyof ReturnType<typeof needs>)[]
  for (const name of names)
    console.log(`| ${[name, ...rows.map(row => rounded(row[name]).toLocaleString('en'))].join(' | ')} |`)
} else {
  for (const row of rows) console.log(JSON.stringify({ bench: 'growth', ...roundedAll(row) }))
  console.log(JSON.stringify({ bench: 'growth', question: 'fitted', ...fit }))
  for (const rate of [329, 1_646, 3_282, 5_000, 6_667]) {
    const { mainUs, p50Ms, p99Ms } = measured.find(point => point.rate === rate) ?? {}
    const seen = { measured_main_us: mainUs, measured_p50_ms: p50Ms, measured_p99_ms: p99Ms }
    console.log(JSON.stringify({ bench: 'growth', rate, ...roundedAll(simulate(rate, fit, 60, random(7))), ...seen }))
  }
  console.log(JSON.stringify({ bench: 'growth', fullest_shard: rounded(fullestShard(CELL_SERVERS)) }))
}
