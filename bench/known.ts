// What it costs ingest to know a fleet: the memory of a known series, of all agents together, and how long a start after kill -9 takes to
// the first batch that is taken. The executable from source, with its default number of threads; each agent sends its 150 series once.
// Usage: bun bench/known.ts [AGENTS] [THREADS]
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { collectorPaths } from '../apps/collector/config.ts'
import { type AgentRecord, isRecordFault, parseAgentRecord } from '../apps/collector/store/agent-record.ts'
import { AgentRegistry } from '../apps/collector/store/registry.ts'
import { RegistryStore } from '../apps/collector/store/registry-store.ts'
import { sha256Hex } from '../core/series/hash.ts'
import { fleetProcess } from './fleet.ts'

const [agents = 100_000, threads = 0] = process.argv.slice(2).map(Number)
const SERIES = 150
const COMPANIES = 100
/** Until the garbage of the rush in which everybody came at once is collected. */
const SETTLE_MS = 10_000
const main = new URL('../apps/collector/ingest/main.ts', import.meta.url).pathname
const directory = mkdtempSync(join(tmpdir(), 'svc-bench-known-'))
const dataDir = join(directory, 'data')
const tokensFile = join(directory, 'tokens.json')

const uuid = (kind: string, index: number) => `${kind}0000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`

function fillRegistry(tokens: readonly string[]): void {
  mkdirSync(dataDir)
  const store = new RegistryStore(collectorPaths(dataDir).registry)
  const records = tokens.map((token, index): AgentRecord => {
    const record = parseAgentRecord({
      agent_id: uuid('a', index),
      company_id: uuid('c', index % COMPANIES),
      server_id: uuid('5', index),
      state: 'active',
      token_hash: sha256Hex(token),
      version: 1,
    })
    if (isRecordFault(record)) throw new Error(`${record.field} must be ${record.expected}`)
    return record
  })
  new AgentRegistry(store).apply(records, { since: agents, syncedAtMs: Date.now() })
  store.close()
}

/** Resident memory of a process, MiB. */
const residentMib = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024

const post = (url: string) =>
  fetch(`${url}/agent/v1/metrics`, {
    method: 'POST',
    headers: { 'x-svc-proto': '1', 'x-svc-agent-version': '1.0.0', authorization: 'Bearer agt_bench_0' },
  })

/** Starts ingest. Resolves once a batch is taken, with the seconds that took. */
async function start(readyFile: string) {
  const startedAt = performance.now()
  const child = Bun.spawn(['bun', main, '--ready-file', readyFile], {
    stdout: 'ignore',
    stderr: 'inherit',
    env: { ...process.env, SVC_DATA_DIR: dataDir, SVC_LISTEN: '127.0.0.1:0', SVC_INGEST_THREADS: String(threads) },
  })
  while (!(await Bun.file(readyFile).exists())) await Bun.sleep(5)
  const { agent_url: url }: { agent_url: string } = await Bun.file(readyFile).json()
  const { status } = await post(url)
  if (status !== 200) throw new Error(`the first batch was answered ${status}`)
  return { child, url, seconds: Math.round(performance.now() - startedAt) / 1000 }
}

try {
  const tokens = Array.from({ length: agents }, (_, index) => `agt_bench_${index}`)
  await Bun.write(tokensFile, JSON.stringify(tokens))
  fillRegistry(tokens)
  const first = await start(join(directory, 'ready-1.json'))
  const idleMib = residentMib(first.child.pid)
  const { batches, refused } = await fleetProcess(first.url, tokensFile, '--rounds', '1', '--series', `${SERIES}`)
  if (batches !== agents) throw new Error(`${refused} batches were refused`)
  const peakMib = residentMib(first.child.pid)
  await Bun.sleep(SETTLE_MS)
  const knownMib = residentMib(first.child.pid)
  first.child.kill('SIGKILL')
  await first.child.exited
  const second = await start(join(directory, 'ready-2.json'))
  second.child.kill('SIGKILL')
  await second.child.exited
  console.log(
    JSON.stringify({
      bench: 'known',
      agents,
      series: agents * SERIES,
      registry_rss_mib: Math.round(idleMib),
      peak_rss_mib: Math.round(peakMib),
      known_rss_mib: Math.round(knownMib),
      bytes_a_known_series: Math.round(((knownMib - idleMib) * 1024 ** 2 * 10) / (agents * SERIES)) / 10,
      start_seconds: first.seconds,
      start_after_kill_seconds: second.seconds,
    }),
  )
} finally {
  rmSync(directory, { recursive: true, force: true })
}
