// Samples a CPU second over the whole path: HTTP in, bus, evaluation with the default rules, stored in ClickHouse.
// Usage: bun bench/whole-path.ts [AGENTS] [ROUNDS] [SERIES]. The CPU time is that of the collector's process, all
// threads and the engine included, from the first batch until everything is evaluated and stored. Prints one JSON line.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fleetProcess } from './fleet.ts'

const [agents = '1000', rounds = '20', series = '150'] = process.argv.slice(2)
const TICKS_PER_SECOND = 100

/** User and system seconds that a process has used, all threads. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}
/** CPU seconds by name of thread, the busiest first. */
function threadSeconds(pid: number): Record<string, number> {
  const byName: Record<string, number> = {}
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8')
    const fields = stat.split(') ')[1]!.split(' ')
    const name = `${stat.slice(stat.indexOf('(') + 1, stat.indexOf(')'))}${Number(task) === pid ? ' main' : ''} ${task}`
    byName[name] = (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  }
  return Object.fromEntries(
    Object.entries(byName)
      .sort((a, b) => b[1] - a[1])
      .slice(0, 24),
  )
}
const rssMb = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

const dir = mkdtempSync(join(tmpdir(), 'whole-path-'))
const site = Bun.spawn(['bun', join(import.meta.dir, 'collector-site.ts'), dir, agents], {
  stdout: 'inherit',
  stderr: 'inherit',
})
try {
  const readyPath = join(dir, 'ready.json')
  while (!(await Bun.file(readyPath).exists())) await Bun.sleep(50)
  const ready: { agent_url: string; admin_url: string; pid: number } = await Bun.file(readyPath).json()
  const load = (count: string, startMs: number) =>
    fleetProcess(
      ready.agent_url,
      join(dir, 'tokens.json'),
      ...['--rounds', count, '--series', series, '--start-ms', String(startMs)],
    )
  const lag = async (): Promise<number> => {
    const answer = await fetch(`${ready.admin_url}/internal/v1/status`, { headers: { authorization: 'Bearer bench' } })
    const status: { data: { bus_lag: number } } = JSON.parse(await answer.text())
    return status.data.bus_lag
  }
  const startMs = Date.now() - 3 * 3_600_000
  await load('2', startMs)
  while ((await lag()) > 0) await Bun.sleep(100)
  const before = cpuSeconds(ready.pid)
  const { statuses: _, unexpected: __, seed: ___, ...sent } = await load(rounds, startMs + 60_000)
  while ((await lag()) > 0) await Bun.sleep(100)
  const cpu = cpuSeconds(ready.pid) - before
  if (process.env.BENCH_THREADS) console.log(threadSeconds(ready.pid))
  console.log(
    JSON.stringify({
      bench: 'whole-path',
      series: Number(series),
      ...sent,
      cpu_seconds: Math.round(cpu * 100) / 100,
      samples_per_cpu_second: Math.round(sent.samples / cpu),
      rss_mb: Math.round(rssMb(ready.pid)),
    }),
  )
} finally {
  site.kill('SIGTERM')
  await site.exited
  rmSync(dir, { recursive: true, force: true })
}
