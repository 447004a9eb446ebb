// Samples a CPU second through the reading of the bus, the hand-over to the shard threads and evaluation under the
// default rules, as batches come. Usage: bun bench/consume.ts [SERVERS] [ROUNDS] [THREADS]. A process of its own
// publishes (`consume-publish.ts`); the CPU time is that of this one, all threads, from the third round on, until all
// is evaluated. Prints one JSON line.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileBusReader } from '../apps/collector/bus/file-bus-reader.ts'
import { newTurns } from '../apps/collector/store/write-turns.ts'
import { ShardPool } from '../apps/collector/worker/evaluation/shard-pool.ts'
import { FLAP_DEFAULTS } from '../core/alerting/evaluate/flapping.ts'
import { limits } from '../core/limits.ts'
import { defaultRules } from './default-rules.ts'

const [servers = '2000', rounds = '20', threads = '1'] = process.argv.slice(2)
const SERIES = 150

const dir = mkdtempSync(join(tmpdir(), 'consume-'))
const busPath = join(dir, 'bus.sqlite')
const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Runs the publisher for some rounds; resolves once what it published is evaluated. */
async function publish(pool: ShardPool, fromRound: number, count: number): Promise<void> {
  const publisher = Bun.spawn(
    ['bun', join(import.meta.dir, 'consume-publish.ts'), busPath, servers, String(fromRound), String(count)],
    { stdout: 'inherit', stderr: 'inherit', ipc: () => pool.wake() },
  )
  if ((await publisher.exited) !== 0) throw new Error('the publisher failed')
  const published = Number(servers) * (fromRound + count)
  while ((await pool.status()).some(({ position }) => position < published)) await Bun.sleep(2)
}

try {
  mkdirSync(join(dir, 'snapshots'))
  const reader = new FileBusReader(busPath, ['evaluation'])
  const pool = await ShardPool.start({
    threadUrl: new URL('../apps/collector/worker/evaluation/shard-thread.ts', import.meta.url),
    threads: Number(threads),
    config: {
      storage: { kind: 'file', busPath, dataDir: dir, snapshotDir: join(dir, 'snapshots'), turns: newTurns() },
      settings: {
        noDataAfterMs: limits.noDataAfterMs,
        flapping: FLAP_DEFAULTS,
      },
      snapshotIntervalMs: 30_000,
      sweepIntervalMs: 10_000,
      presenceGraceMinMs: 60_000,
    },
    rules: defaultRules,
    rulesSince: 7,
    silences: [],
    attributes: [],
    tombstones: [],
    onMessage: () => {},
    onFailure: error => {
      throw error
    },
  })
  await publish(pool, 0, 2)
  const beforeMs = cpuMs()
  await publish(pool, 2, Number(rounds))
  const spentMs = cpuMs() - beforeMs
  const statuses = await pool.status()
  const samples = Number(servers) * SERIES * Number(rounds)
  console.log(
    JSON.stringify({
      bench: 'consume',
      servers: Number(servers),
      threads: Number(threads),
      samples,
      states: statuses.reduce((sum, { states }) => sum + states, 0),
      ns_a_sample: Math.round((spentMs * 1e7) / samples) / 10,
      millionSamplesPerCpuSecond: Math.round(samples / spentMs / 100) / 10,
    }),
  )
  await pool.stop()
  await reader.close()
} finally {
  rmSync(dir, { recursive: true, force: true })
}
