// What a fleet over Redis sees of a worker that is killed and of one that joins: two ingest and three worker processes,
// 20,000 servers that send each 30 s, and probes beside them whose first sample fires at once. Usage: bun
// bench/takeover.ts [SERVERS] [PROBES A SECOND]. Prints one JSON line: from the moment before a probe is sent to its
// event, while nothing happens, in the 20 s from the kill on, of shards of the killed worker and of others, and in the
// 20 s from the join on; how long acknowledgements took in all; and whether an event was lost or came twice.
import { shardOfServer } from '../core/bus/shard-of-server.ts'
import { type Server, serverOf } from '../test/redis/processes.ts'
import { until } from '../test/support/until.ts'
import { batchBytes } from './batches.ts'
import { company } from './default-rules.ts'
import { startRedisSite } from './redis-site.ts'

const [fleet = 20_000, probesASecond = 20] = process.argv.slice(2).map(Number)
const INTERVAL_MS = 30_000
const PHASE_MS = 20_000
const COMPILING_SPAN_MS = 1_200_000
const EVENTS_MAX_MS = 120_000
const WORKERS = 3

type Phase = 'steady' | 'kill' | 'join'
type Probe = { readonly server: Server; readonly phase: Phase; readonly sentAt: number; readonly isOfKilled: boolean }

const servers = Array.from({ length: fleet }, (_, index) => serverOf(company, `server ${index}`))
const probeServers = Array.from({ length: Math.ceil((3 * PHASE_MS * probesASecond) / 1000) }, (_, index) =>
  serverOf(company, `probe ${index}`),
)
const { site, workers, ingests, leases, untilLeased, load, close } = await startRedisSite(
  WORKERS,
  servers,
  probeServers,
)
try {
  await load('--rounds', '2', '--start-ms', String(Date.now() - COMPILING_SPAN_MS))
  await Bun.sleep(PHASE_MS / 4)

  const arrivedAt = new Map<unknown, number>()
  const events = new Map<string, Set<unknown>>()
  let looked = site.hub.taken.length
  const looking = setInterval(() => {
    for (const event of site.hub.taken.slice(looked)) {
      if (event.type !== 'alert.opened') continue
      if (!arrivedAt.has(event.server_id)) arrivedAt.set(event.server_id, performance.now())
      const alert = `${event.server_id} ${event.rule_id}`
      events.set(alert, (events.get(alert) ?? new Set()).add(event.event_id))
    }
    looked = site.hub.taken.length
  }, 2)

  const probes: Probe[] = []
  const send = async (server: Server, phase: Phase, isOfKilled: boolean): Promise<void> => {
    const series = [{ name: 'cert_days_left', labels: { check: 'https', target: 'probe' } }]
    const body = new Uint8Array(batchBytes(series, 1, Date.now(), () => 1))
    probes.push({ server, phase, sentAt: performance.now(), isOfKilled })
    const headers = { authorization: `Bearer ${server.token}`, 'x-svc-proto': '1', 'x-svc-agent-version': '1.0.0' }
    const url = ingests[probes.length % ingests.length]!.url
    const answer = await fetch(`${url}/agent/v1/metrics`, { method: 'POST', headers, body })
    if (answer.status !== 200) throw new Error(`a batch was answered ${answer.status}`)
  }
  const rest = [...probeServers]
  const sendFor = async (phase: Phase, killed: ReadonlySet<number>): Promise<void> => {
    const untilMs = performance.now() + PHASE_MS
    while (performance.now() < untilMs) {
      const server = rest.pop()
      if (!server) return
      await send(server, phase, killed.has(shardOfServer(server.serverId)))
      await Bun.sleep((1000 / probesASecond) * (0.5 + Math.random()))
    }
  }
  const rounds = String(Math.ceil((3.5 * PHASE_MS) / INTERVAL_MS))
  const loading = load('--rounds', rounds, '--interval-ms', String(INTERVAL_MS))
  await sendFor('steady', new Set())
  const killedPid = `:${workers[0]!.pid}:`
  const killed = new Set((await leases()).flatMap((lease, shard) => (lease.includes(killedPid) ? [shard] : [])))
  await workers[0]!.kill()
  await sendFor('kill', killed)
  const joining = site.startWorker()
  await sendFor('join', new Set())
  await joining
  const sent = await loading
  await untilLeased()
  await until(
    'the last event',
    () => probes.every(({ server }) => arrivedAt.has(server.serverId)),
    EVENTS_MAX_MS,
  ).catch(() => {})
  clearInterval(looking)

  const summary = (of: (probe: Probe) => boolean) => {
    const latenciesMs = probes
      .filter(of)
      .map(({ server, sentAt }) => (arrivedAt.get(server.serverId) ?? Number.POSITIVE_INFINITY) - sentAt)
      .sort((a, b) => a - b)
    const at = (q: number) =>
      Math.round(latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(latenciesMs.length * q))] ?? 0)
    return { probes: latenciesMs.length, p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1) }
  }
  console.log(
    JSON.stringify({
      bench: 'takeover',
      servers: fleet,
      killed_shards: killed.size,
      steady: summary(({ phase }) => phase === 'steady'),
      of_killed: summary(({ phase, isOfKilled }) => phase === 'kill' && isOfKilled),
      others: summary(({ phase, isOfKilled }) => phase === 'kill' && !isOfKilled),
      join: summary(({ phase }) => phase === 'join'),
      lost: probes.filter(({ server }) => !arrivedAt.has(server.serverId)).length,
      twice: [...events.values()].filter(({ size }) => size > 1).length,
      refused: sent.reduce((sum, each) => sum + each.refused, 0),
      ack_p99_ms: Math.max(...sent.map(each => each.p99_ms)),
    }),
  )
} finally {
  await close()
}
