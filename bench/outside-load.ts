// Samples a CPU second of the whole all-in-one under agents that enrolled, few connections as a reverse proxy has,
// random values, and a rule on 100 of a server's 150 series. Usage: bun bench/outside-load.ts [AGENTS] [ROUNDS]
// [CONNECTIONS]. The CPU time is that of the process, all threads and the engine included; PostgreSQL is processes of
// its own and takes no part. Prints one JSON line.
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SimulatedAgent } from '../test/support/simulated-agent.ts'
import { startSiteProcess } from '../test/support/site.ts'
import { hostSeries } from './batches.ts'
import { fleetProcess } from './fleet.ts'
import { cpuSeconds, rssMb, threadUse, usABatch, usedBetween } from './process-cpu.ts'

const [agents = 1000, rounds = 60, connections = 8] = process.argv.slice(2).map(Number)
const SERIES = 150
const RULED_SERIES = 100
const WARM_UP_ROUNDS = 20
/** What no value reaches: it is the judging that is measured, not the alerts. */
const THRESHOLD = 1000

/** Metrics that have so many series on a host, or a few more. */
function metricsWithSeries(count: number): string[] {
  const metrics = new Set<string>()
  let series = 0
  for (const { name } of hostSeries(SERIES)) {
    if (series >= count && !metrics.has(name)) continue
    metrics.add(name)
    series++
  }
  return [...metrics]
}

const site = await startSiteProcess({
  args: ['--no-local-agent', '--no-matcher'],
  config: `
rate: { default_per_minute: 1000000, collector_per_minute: 1000000, enroll_per_minute: 1000000 }
ingest: { limits: { metrics_per_minute: 1000000, metrics_burst: 1000000 } }
`,
})
const tokensFile = join(tmpdir(), `svc-bench-tokens-${site.facts.pid}.json`)
try {
  const tokens: string[] = []
  for (let index = 0; index < agents; index++) {
    const name = `outside-${index}`
    await site.api('POST', '/api/v1/servers', { name, hostname: name })
    const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, name)
    tokens.push(agent.token)
  }
  await Bun.write(tokensFile, JSON.stringify(tokens))
  // The rules that a company starts with would fire at random values.
  const { body } = await site.api('GET', '/api/v1/monitoring/rules?limit=100')
  for (const { id } of body.data) await site.api('PATCH', `/api/v1/monitoring/rules/${id}`, { enabled: false })
  for (const metric of metricsWithSeries(RULED_SERIES)) {
    const rule = { name: metric, kind: 'threshold', scope: { all: true }, metric, operator: '>', severity: 'info' }
    const { status } = await site.api('POST', '/api/v1/monitoring/rules', { ...rule, threshold: THRESHOLD })
    if (status !== 201) throw new Error(`the rule for ${metric} was answered ${status}`)
  }
  const startMs = Date.now() - 3 * 3_600_000
  const load = (count: number, fromMs: number) =>
    fleetProcess(
      site.facts.agent_url,
      tokensFile,
      ...['--rounds', `${count}`, '--connections', `${connections}`, '--start-ms', `${fromMs}`, '--random'],
    )
  await load(WARM_UP_ROUNDS, startMs)
  const before = cpuSeconds(site.facts.pid)
  const threadsBefore = threadUse(site.facts.pid)
  const sent = await load(rounds, startMs + WARM_UP_ROUNDS * 30_000)
  const cpu = cpuSeconds(site.facts.pid) - before
  const used = usedBetween(threadsBefore, threadUse(site.facts.pid))
  console.log(
    JSON.stringify({
      bench: 'outside-load',
      agents,
      connections,
      samples: sent.samples,
      refused: sent.refused,
      seconds: sent.seconds,
      p50_ms: sent.p50_ms,
      p99_ms: sent.p99_ms,
      cpu_seconds: Math.round(cpu * 100) / 100,
      us_by_thread: usABatch(used, sent.batches).byThread,
      samples_per_cpu_second: Math.round(sent.samples / cpu),
      rss_mb: rssMb(site.facts.pid),
    }),
  )
} finally {
  await site.stop()
  rmSync(tokensFile, { force: true })
}
