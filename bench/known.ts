// What it costs ingest to know a fleet: the memory of a known series, of all agents together, and how long a start after kill -9 takes to
// the first batch that is taken. Each agent sends its 150 series once.
// Usage: bun bench/known.ts [AGENTS] [THREADS]
import { fleetProcess } from './fleet.ts'
import { IngestBench, residentMib } from './ingest-process.ts'

const [agents = 100_000, threads = 0] = process.argv.slice(2).map(Number)
const SERIES = 150
/** Until the garbage of the rush in which everybody came at once is collected. */
const SETTLE_MS = 10_000

const bench = await IngestBench.of(agents)
try {
  const first = await bench.start(threads)
  const { pid } = first.child
  const idleMib = residentMib(pid)
  const sent = await fleetProcess(first.url, bench.tokensFile, '--rounds', '1', '--series', `${SERIES}`)
  if (sent.batches !== agents) throw new Error(`${sent.refused} batches were refused`)
  const peakMib = residentMib(pid)
  await Bun.sleep(SETTLE_MS)
  const knownMib = residentMib(pid)
  first.child.kill('SIGKILL')
  await first.child.exited
  const second = await bench.start(threads)
  second.child.kill('SIGKILL')
  await second.child.exited
  console.log(
    JSON.stringify({
      bench: 'known',
      agents,
      series: agents * SERIES,
      registry_rss_mib: idleMib,
      peak_rss_mib: peakMib,
      known_rss_mib: knownMib,
      bytes_a_known_series: Math.round(((knownMib - idleMib) * 1024 ** 2 * 10) / (agents * SERIES)) / 10,
      start_seconds: first.seconds,
      start_after_kill_seconds: second.seconds,
    }),
  )
} finally {
  bench.remove()
}
