// What an all-in-one costs that has nothing to do but to watch its own host: CPU, wake-ups and memory, by process and
// thread. Usage: bun bench/idle.ts [SECONDS] [SETTLE_SECONDS]. The site has its own agent, the matcher, and no database
// of vulnerabilities; PostgreSQL and the agent, processes of their own, are counted beside it. Prints one JSON line.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { startSiteProcess } from '../test/support/site.ts'
import { memoryMb, rssMb, threadUse, usedBetween } from './process-cpu.ts'

const [seconds = 60, settleSeconds = 60] = process.argv.slice(2).map(Number)
/** Threads that wake less often than this a second are not shown. */
const SHOWN_WAKE_UPS = 0.5

const statOf = (pid: number): string[] => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
const nameOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, 'utf8').trim()

/** The living processes below this one. */
function childrenOf(pid: number): number[] {
  const children: number[] = []
  for (const name of readdirSync('/proc').filter(entry => /^\d+$/.test(entry)))
    try {
      if (Number(statOf(Number(name))[1]) === pid) children.push(Number(name), ...childrenOf(Number(name)))
    } catch {}
  return children
}

const rounded = (value: number): number => Math.round(value * 100) / 100

const site = await startSiteProcess({ args: ['--security-db', 'off'] })
try {
  const { pid } = site.facts
  await Bun.sleep(settleSeconds * 1000)
  const pids = [pid, ...childrenOf(pid)]
  const before = pids.map(threadUse)
  const startMs = performance.now()
  await Bun.sleep(seconds * 1000)
  const after = pids.map(threadUse)
  const spanS = (performance.now() - startMs) / 1000
  const used = pids.map((_, index) => [...usedBetween(before[index]!, after[index]!).values()])
  const sumOf = (threads: (typeof used)[number]) => ({
    cpu_percent: rounded(threads.reduce((sum, { cpuNs }) => sum + cpuNs, 0) / spanS / 1e7),
    wake_ups_per_second: rounded(threads.reduce((sum, { wakeUps }) => sum + wakeUps, 0) / spanS),
  })
  const shown = used[0]!.filter(({ wakeUps }) => wakeUps / spanS >= SHOWN_WAKE_UPS)
  console.log(
    JSON.stringify({
      bench: 'idle',
      seconds,
      ...sumOf(used[0]!),
      rss_mb: rssMb(pid),
      ...memoryMb(pid),
      by_thread: Object.fromEntries(shown.map(thread => [thread.name, sumOf([thread])])),
      // Workers of the database come and go.
      others: pids
        .map((other, index) => ({ other, sums: sumOf(used[index]!) }))
        .filter(({ other }) => other !== pid && existsSync(`/proc/${other}`))
        .map(({ other, sums }) => ({ name: nameOf(other), ...sums, rss_mb: rssMb(other) })),
    }),
  )
} finally {
  await site.stop()
}
