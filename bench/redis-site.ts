// A collector over Redis for benchmarks: two ingest processes and some workers, that know these servers and the default
// rules, and a fleet that sends to both.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { limits } from '../core/limits.ts'
import { agentOf, type Server, Site } from '../test/redis/processes.ts'
import { until } from '../test/support/until.ts'
import { defaultRules } from './default-rules.ts'
import { fleetProcess } from './fleet.ts'

const START_MAX_MS = 120_000

/** `fleet` are the servers that `load` sends for, half of them to each ingest; `others` are known too. */
export async function startRedisSite(workerCount: number, fleet: readonly Server[], others: readonly Server[] = []) {
  const site = await Site.start({
    'ingest.limits.metrics_per_minute': '1000000',
    'ingest.limits.metrics_burst': '1000000',
    'ingest.threads': '1',
    'log.level': 'warn',
  })
  const directory = mkdtempSync(join(tmpdir(), 'svc-bench-redis-'))
  const close = async (): Promise<void> => {
    await site.close()
    rmSync(directory, { recursive: true, force: true })
  }
  try {
    site.hub.feeds.agents!.push(...[...fleet, ...others].map(server => agentOf(server)))
    site.hub.feeds.rules!.push(...defaultRules.map((rule, index) => ({ ...Object(rule), sync_version: index + 1 })))
    const workers = await Promise.all(Array.from({ length: workerCount }, () => site.startWorker()))
    const ingests = await Promise.all([site.startIngest(), site.startIngest()])
    /** The lease of each shard, empty without one. */
    const leases = async (): Promise<string[]> => {
      const shards = Array.from({ length: limits.stateShards }, (_, shard) => `svc:lease:shard:${shard}`)
      return (await site.redis.client.mget(shards)).map(lease => lease ?? '')
    }
    const areLeased = async (): Promise<boolean> =>
      (await site.redis.client.zcard('svc:workers')) === workerCount && !(await leases()).includes('')
    const untilLeased = () => until('the shards to be leased', areLeased, START_MAX_MS)
    await untilLeased()
    const tokenFiles = ingests.map((_, index) => {
      const file = join(directory, `tokens-${index}.json`)
      writeFileSync(file, JSON.stringify(fleet.filter((_, at) => at % 2 === index).map(({ token }) => token)))
      return file
    })
    const load = (...options: readonly string[]) =>
      Promise.all(ingests.map(({ url }, index) => fleetProcess(url, tokenFiles[index]!, ...options)))
    return { site, workers, ingests, leases, untilLeased, load, close }
  } catch (error) {
    await close()
    throw error
  }
}
