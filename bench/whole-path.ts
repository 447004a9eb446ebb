// Samples a CPU second over the whole path: HTTP in, bus, evaluation with the default rules, stored in ClickHouse.
// Usage: bun bench/whole-path.ts [AGENTS] [ROUNDS] [SERIES]. The CPU time is that of the collector's process, all
// threads and the engine included, from the first batch until everything is evaluated and stored. Prints one JSON line.
import { startCollectorProcess } from './collector-process.ts'
import { cpuSeconds, rssMb, threadUse, usedBetween } from './process-cpu.ts'

const DEFINED_MS = 4_000
const [agents = '1000', rounds = '20', series = '150'] = process.argv.slice(2)

/** CPU seconds by name of thread, the busiest first. */
function threadSeconds(pid: number): Record<string, number> {
  const busiest = [...usedBetween(new Map(), threadUse(pid)).values()].sort((a, b) => b.cpuNs - a.cpuNs).slice(0, 24)
  return Object.fromEntries(busiest.map(({ name, cpuNs }) => [name, Math.round(cpuNs / 1e7) / 100]))
}

const collector = await startCollectorProcess(Number(agents))
try {
  const { pid } = collector
  const load = (count: string, startMs: number) =>
    collector.load('--rounds', count, '--series', series, '--start-ms', String(startMs))
  const startMs = Date.now() - 3 * 3_600_000
  await load('2', startMs)
  await collector.untilDrained()
  // A second later the series are stored, which were all new.
  await Bun.sleep(DEFINED_MS)
  const before = cpuSeconds(pid)
  const { statuses: _, unexpected: __, seed: ___, ...sent } = await load(rounds, startMs + 60_000)
  await collector.untilDrained()
  const cpu = cpuSeconds(pid) - before
  if (process.env.BENCH_THREADS) console.log(threadSeconds(pid))
  console.log(
    JSON.stringify({
      bench: 'whole-path',
      series: Number(series),
      ...sent,
      cpu_seconds: Math.round(cpu * 100) / 100,
      samples_per_cpu_second: Math.round(sent.samples / cpu),
      rss_mb: rssMb(pid),
    }),
  )
} finally {
  await collector.stop()
}
