// The executable of ingest from source, as a process of its own, with a registry full of agents: for benchmarks that
// kill it, or look at what it takes.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { collectorPaths } from '../apps/collector/config.ts'
import type { AgentRecord } from '../apps/collector/store/registry/agent-record.ts'
import { isRecordFault, parseAgentRecord } from '../apps/collector/store/registry/agent-record-faults.ts'
import { RegistryStore } from '../apps/collector/store/registry/file-registry-store.ts'
import { AgentRegistry } from '../apps/collector/store/registry/registry.ts'
import { allocatorSetting } from '../apps/process/allocator-setting.ts'
import { sha256Hex } from '../core/series/hash.ts'

const COMPANIES = 100
const main = new URL('../apps/collector/ingest/main.ts', import.meta.url).pathname

const uuid = (kind: string, index: number) => `${kind}0000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`

/** Resident memory of a process, MiB. */
export const residentMib = (pid: number): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024)

function fillRegistry(dataDir: string, tokens: readonly string[]): void {
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
  new AgentRegistry(store).apply(records, { since: tokens.length, syncedAtMs: Date.now() })
  store.close()
}

/** A data directory with so many agents, which goes away with `remove`. */
export class IngestBench {
  private readonly directory = mkdtempSync(join(tmpdir(), 'svc-bench-ingest-'))
  readonly tokensFile = join(this.directory, 'tokens.json')
  private starts = 0

  private constructor(private readonly tokens: readonly string[]) {}

  static async of(agents: number): Promise<IngestBench> {
    const bench = new IngestBench(Array.from({ length: agents }, (_, index) => `agt_bench_${index}`))
    await Bun.write(bench.tokensFile, JSON.stringify(bench.tokens))
    mkdirSync(bench.dataDir)
    fillRegistry(bench.dataDir, bench.tokens)
    return bench
  }

  private get dataDir(): string {
    return join(this.directory, 'data')
  }

  /**
   * Starts ingest with so many threads (0: its default). Resolves once a batch is taken, with the seconds that took.
   */
  async start(threads: number, environment: Readonly<Record<string, string>> = {}) {
    const readyFile = join(this.directory, `ready-${++this.starts}.json`)
    const startedAt = performance.now()
    const child = Bun.spawn(['bun', main, '--ready-file', readyFile], {
      stdout: 'ignore',
      stderr: 'inherit',
      env: {
        [allocatorSetting.name]: allocatorSetting.value,
        ...process.env,
        SVC_DATA_DIR: this.dataDir,
        SVC_LISTEN: '127.0.0.1:0',
        SVC_INGEST_THREADS: String(threads),
        ...environment,
      },
    })
    while (!(await Bun.file(readyFile).exists())) await Bun.sleep(5)
    const { agent_url: url }: { agent_url: string } = await Bun.file(readyFile).json()
    const { status } = await fetch(`${url}/agent/v1/metrics`, {
      method: 'POST',
      headers: { 'x-svc-proto': '1', 'x-svc-agent-version': '1.0.0', authorization: `Bearer ${this.tokens[0]}` },
    })
    if (status !== 200) throw new Error(`the first batch was answered ${status}`)
    return { child, url, seconds: Math.round(performance.now() - startedAt) / 1000 }
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }
}
