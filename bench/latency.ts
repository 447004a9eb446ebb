// From the arrival of a sample to its event in the hub, on an idle host: the whole product, one violating or recovering
// sample after the other, each judged by a rule without `for`. Usage: bun bench/latency.ts [EVENTS]. Prints one JSON
// line with p50 and p99 in ms: from the moment before the request is sent to the hub's own time of receipt.
import postgres from 'postgres'
import { SimulatedAgent } from '../test/support/simulated-agent.ts'
import { startSiteProcess } from '../test/support/site.ts'
import { until } from '../test/support/until.ts'

const events = Number(process.argv[2] ?? 100)
const site = await startSiteProcess({
  args: ['--no-local-agent'],
  config:
    'rate:\n  default_per_minute: 1000000\ningest:\n  limits:\n    metrics_per_minute: 1000000\n    metrics_burst: 1000000\nalerting:\n  flap_transitions: 0\n',
})
const database = postgres(site.facts.database_url)
try {
  await site.api('POST', '/api/v1/servers', { name: 'latency', hostname: 'latency' })
  const agent = await SimulatedAgent.enroll(site.facts.agent_url, site.facts.license, 'latency')
  await site.api('POST', '/api/v1/monitoring/rules', {
    name: 'latency',
    kind: 'threshold',
    scope: { all: true },
    metric: 'swap_used_percent',
    operator: '>',
    threshold: 50,
    severity: 'info',
  })
  await fetch(`${site.facts.admin_url}/internal/v1/reload/rules`, {
    method: 'POST',
    headers: { authorization: `Bearer ${site.facts.admin_token}` },
  })
  const baseMs = Date.now() - 3_600_000
  const latenciesMs: number[] = []
  for (let event = 0; event < events; event++) {
    const tsMs = baseMs + event * 1000
    const sentAtMs = Date.now()
    await agent.send([{ name: 'swap_used_percent', points: [[tsMs, event % 2 === 0 ? 90 : 10]] }])
    const received = await until('the event', async () => {
      const rows = await database<{ received_at: Date }[]>`
        select received_at from monitoring_alert_events where occurred_at = ${new Date(tsMs)}`
      return rows[0]?.received_at
    })
    latenciesMs.push(received.getTime() - sentAtMs)
  }
  latenciesMs.sort((a, b) => a - b)
  const quantile = (q: number) => latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(latenciesMs.length * q))]
  console.log(JSON.stringify({ bench: 'latency', events, p50_ms: quantile(0.5), p99_ms: quantile(0.99) }))
} finally {
  await database.end()
  await site.stop()
}
