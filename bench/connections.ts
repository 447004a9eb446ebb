// What many connections do to ingest: thousands held open without a word, bodies that come a byte a second, and beside
// them a fleet of which a part breaks off, floods, or sends what is no batch. The others must be answered as ever, and
// memory must stay bounded. Usage: bun bench/connections.ts [HELD] [SLOW] [THREADS]
import { fleetProcess } from './fleet.ts'
import { IngestBench, residentMib } from './ingest-process.ts'

const [held = 10_000, slow = 500, threads = 0] = process.argv.slice(2).map(Number)
const AGENTS = 500
const OPENING_AT_ONCE = 200
const behaviour = ['cut=0.1', 'garbage=0.1', 'bomb=0.02', 'stranger=0.05', 'hasty=0.05', 'unsteady=0.02', 'ahead=0.02']

const bench = await IngestBench.of(AGENTS)
try {
  const { child, url } = await bench.start(threads, { SVC_INGEST_LIMITS_METRICS_BURST: '100000' })
  const { hostname, port } = new URL(url)
  const idleMib = residentMib(child.pid)
  const open = () =>
    Bun.connect({ hostname, port: Number(port), socket: { data: () => {}, close: () => {}, error: () => {} } })
  const sockets: Bun.Socket[] = []
  while (sockets.length < held + slow)
    sockets.push(
      ...(await Promise.all(Array.from({ length: Math.min(OPENING_AT_ONCE, held + slow - sockets.length) }, open))),
    )
  const slowOnes = sockets.slice(0, slow)
  const head =
    'POST /agent/v1/metrics HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer agt_bench_1\r\nx-svc-proto: 1\r\nx-svc-agent-version: 1\r\ncontent-length: 1000\r\n\r\n'
  for (const socket of slowOnes) socket.write(head)
  const trickle = setInterval(() => {
    for (const socket of slowOnes) socket.write('x')
  }, 1000)
  const heldMib = residentMib(child.pid)
  const report = await fleetProcess(
    url,
    bench.tokensFile,
    ...['--rounds', '3', '--interval-ms', '4000', '--connections', '250'],
    ...behaviour.flatMap(share => ['--share', share]),
  )
  clearInterval(trickle)
  console.log(
    JSON.stringify({
      bench: 'connections',
      held,
      slow,
      idle_rss_mib: idleMib,
      held_rss_mib: heldMib,
      after_rss_mib: residentMib(child.pid),
      seconds: report.seconds,
      p50_ms: report.p50_ms,
      p99_ms: report.p99_ms,
      statuses: report.statuses,
      unexpected: report.unexpected,
    }),
  )
  child.kill('SIGKILL')
  await child.exited
} finally {
  bench.remove()
}
process.exit(0)
