// What it costs ingest to know a fleet: the memory of a known series in its tables, of the whole process for all
// agents, and how long a start after kill -9 takes to the first batch that is taken. Each agent sends its 150 series
// once. Usage: bun bench/known.ts [AGENTS] [THREADS]
import { SampleBatch } from '../core/series/sample-batch.ts'
import { AdmissionReport } from '../core/wire/admission-report.ts'
import { AgentSeries, OwnCompanySeries } from '../core/wire/agent-series.ts'
import { BatchDecoder } from '../core/wire/decode-and-admit.ts'
import { batchBytes, hostSeries } from './batches.ts'
import { fleetProcess } from './fleet.ts'
import { IngestBench, residentMib } from './ingest-process.ts'

const [agents = 100_000, threads = 0] = process.argv.slice(2).map(Number)
const SERIES = 150
const TABLES = 20_000
const GIVEN_BACK_MS = 1500
/** Until the garbage of the rush in which everybody came at once is collected. */
const SETTLE_MS = 10_000

/**
 * Bytes of memory that the tables of an agent take for each series, measured over a few thousand agents in this
 * process.
 */
async function tableBytes(): Promise<number> {
  const limits = {
    seriesPerAgentMax: 500,
    seriesPerCompanyMax: 0,
    pointsMax: 20_000,
    pointAgeMaxMs: 86_400_000,
    pointAheadMaxMs: 300_000,
  }
  const nowMs = Date.now()
  const body = batchBytes(hostSeries(SERIES), 1, nowMs, index => index + 1)
  const decoder = new BatchDecoder(new SampleBatch(), limits)
  const company = new OwnCompanySeries()
  const know = (count: number) =>
    Array.from({ length: count }, () => {
      const agent = new AgentSeries(company)
      decoder.decode(body, agent, nowMs, new AdmissionReport())
      return agent
    })
  // What the runtime takes once, it takes here.
  know(TABLES / 4)
  const residentAfterCollection = async () => {
    Bun.gc(true)
    // Memory goes back to the system a moment later.
    await Bun.sleep(GIVEN_BACK_MS)
    return process.memoryUsage.rss()
  }
  const before = await residentAfterCollection()
  const kept = know(TABLES)
  return Math.round((((await residentAfterCollection()) - before) * 10) / (kept.length * SERIES)) / 10
}

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
      table_bytes_a_series: await tableBytes(),
      process_bytes_a_series: Math.round(((knownMib - idleMib) * 1024 ** 2 * 10) / (agents * SERIES)) / 10,
      start_seconds: first.seconds,
      start_after_kill_seconds: second.seconds,
    }),
  )
} finally {
  bench.remove()
}
