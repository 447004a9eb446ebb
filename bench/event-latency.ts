// From a sample to its event at the hub while a fleet sends: agents that the fleet does not have send one batch each,
// with a value that fires at once. Usage: bun bench/event-latency.ts [BATCHES_A_SECOND] [SECONDS] [PROBES]. 1,667
// batches a second are 50,000 servers; as in fleet-pace a tenth as many agents send every 3 s. The hub is a stub in
// this process. Prints one JSON line: from the moment before the request is sent to the arrival of the event.

import { batchBytes } from './batches.ts'
import { startCollectorProcess } from './collector-process.ts'
import { uuid } from './default-rules.ts'

const [rate = 1_667, seconds = 60, probes = 400] = process.argv.slice(2).map(Number)
const INTERVAL_MS = 3_000
const COMPILING_ROUNDS = 5
const agents = Math.round((rate * INTERVAL_MS) / 1000)

const arrivedAt = new Map<string, number>()
type Event = { readonly server_id: string }
const hub = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: async request => {
    if (request.method !== 'POST') return new Response('', { status: 503 })
    const body: { events?: readonly Event[] } = JSON.parse(await request.text())
    const nowMs = performance.now()
    for (const { server_id: serverId } of body.events ?? [])
      if (!arrivedAt.has(serverId)) arrivedAt.set(serverId, nowMs)
    return Response.json({ data: { accepted: body.events?.length ?? 0, rejected: [] } })
  },
})

const settings = { 'hub.url': hub.url.href.replace(/\/$/, ''), 'hub.token': 'bench', 'listen.insecure': 'true' }
const collector = await startCollectorProcess(agents + probes, settings)
try {
  const tokens: readonly string[] = await Bun.file(collector.tokensPath).json()
  await Bun.write(collector.tokensPath, JSON.stringify(tokens.slice(0, agents)))
  await collector.load('--rounds', String(COMPILING_ROUNDS), '--start-ms', String(Date.now() - 1_200_000))
  await collector.untilDrained()
  const rounds = String(Math.ceil((seconds * 1000) / INTERVAL_MS))
  const loading = collector.load('--rounds', rounds, '--interval-ms', String(INTERVAL_MS))
  const sentAt: number[] = []
  for (const [probe, token] of tokens.slice(agents).entries()) {
    await Bun.sleep(((seconds * 1000) / probes) * (0.5 + Math.random()) * 0.9)
    const series = [{ name: 'cert_days_left', labels: { check: 'https', target: `probe-${probe}` } }]
    const body = new Uint8Array(batchBytes(series, 1, Date.now(), () => 1))
    sentAt[probe] = performance.now()
    const headers = { authorization: `Bearer ${token}`, 'x-svc-proto': '1', 'x-svc-agent-version': '1.0.0' }
    const answer = await fetch(`${collector.agentUrl}/agent/v1/metrics`, { method: 'POST', headers, body })
    if (answer.status !== 200) throw new Error(`a batch was answered ${answer.status}`)
  }
  const sent = await loading
  const latenciesMs = sentAt
    .map((atMs, probe) => (arrivedAt.get(uuid('2', agents + probe)) ?? Number.POSITIVE_INFINITY) - atMs)
    .sort((a, b) => a - b)
  const quantile = (q: number): number => Math.round(latenciesMs[Math.floor(latenciesMs.length * q)]! * 10) / 10
  console.log(
    JSON.stringify({
      bench: 'event-latency',
      servers_at_30_s: rate * 30,
      batches_per_second: Math.round(sent.batches / sent.seconds),
      events: latenciesMs.filter(Number.isFinite).length,
      lost: latenciesMs.filter(latencyMs => !Number.isFinite(latencyMs)).length,
      p50_ms: quantile(0.5),
      p99_ms: quantile(0.99),
      ack_p99_ms: sent.p99_ms,
    }),
  )
} finally {
  await collector.stop()
  await hub.stop(true)
}
