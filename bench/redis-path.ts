// CPU of a batch when a fleet sends in its interval: two ingest and two worker processes over one Redis with
// `appendfsync always`, a ClickHouse in a process of its own, against the same fleet at one collector process with
// files (fleet-pace.ts). Usage: bun bench/redis-path.ts [BATCHES_A_SECOND] [SECONDS]. Prints one JSON line.
import { serverOf } from '../test/redis/processes.ts'
import { company } from './default-rules.ts'
import { cpuSeconds, rssMb, threadUse, usedBetween } from './process-cpu.ts'
import { startRedisSite } from './redis-site.ts'

const INTERVAL_MS = 3_000
const WARM_UP_ROUNDS = 4
/** Sent at once before the pace, as fleet-pace.ts does, so that the runtime has compiled what is hot. */
const COMPILING_BATCHES = 20_000
const COMPILING_SPAN_MS = 1_200_000
/** Threads of the workers that take less a batch are not shown. */
const SHOWN_US = 1

const [rate = '1000', seconds = '24'] = process.argv.slice(2)
const agents = Math.round((Number(rate) * INTERVAL_MS) / 1000)
const servers = Array.from({ length: agents }, (_, index) => serverOf(company, `server ${index}`))

const { site, workers, ingests, load, close } = await startRedisSite(2, servers)
try {
  const redisPid = Number(/process_id:(\d+)/.exec(await site.redis.client.info('server'))![1])
  const pace = ['--interval-ms', String(INTERVAL_MS)]
  const compilingFromMs = String(Date.now() - COMPILING_SPAN_MS)
  await load('--rounds', String(Math.ceil(COMPILING_BATCHES / agents) + 1), '--start-ms', compilingFromMs)
  await load('--rounds', String(WARM_UP_ROUNDS), ...pace)
  const parts = { ingest: ingests.map(({ pid }) => pid), worker: workers.map(({ pid }) => pid), redis: [redisPid] }
  const used = () => Object.values(parts).map(pids => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0))
  const threads = () => parts.worker.map(threadUse)
  const [before, threadsBefore] = [used(), threads()]
  const sent = await load('--rounds', String(Math.ceil((Number(seconds) * 1000) / INTERVAL_MS)), ...pace)
  const [after, threadsAfter] = [used(), threads()]
  const batches = sent.reduce((sum, each) => sum + each.batches, 0)
  const usByThread = new Map<string, number>()
  for (const [index, now] of threadsAfter.entries())
    for (const { name, cpuNs } of usedBetween(threadsBefore[index]!, now).values())
      usByThread.set(name, (usByThread.get(name) ?? 0) + cpuNs / 1000 / batches)
  const usOf = after.map((cpu, index) => Math.round(((cpu - before[index]!) * 1e7) / batches) / 10)
  console.log(
    JSON.stringify({
      bench: 'redis-path',
      agents,
      batches,
      refused: sent.reduce((sum, each) => sum + each.refused, 0),
      cpu_us_a_batch: Math.round(usOf.reduce((sum, us) => sum + us, 0) * 10) / 10,
      us_by_part: Object.fromEntries(Object.keys(parts).map((name, index) => [name, usOf[index]])),
      us_by_worker_thread: Object.fromEntries(
        [...usByThread].filter(([, us]) => us >= SHOWN_US).map(([name, us]) => [name, Math.round(us * 10) / 10]),
      ),
      ack_p50_ms: Math.max(...sent.map(each => each.p50_ms)),
      ack_p99_ms: Math.max(...sent.map(each => each.p99_ms)),
      worker_rss_mb: parts.worker.map(rssMb),
    }),
  )
} finally {
  await close()
}
