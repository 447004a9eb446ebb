// The processes of the hub that share a database: each says every few seconds that it lives and what it runs, so that
// people see which are there, and work of one that is gone is noticed.
import { hostname } from 'node:os'
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { amount, id, listed, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { BEAT_MS, LOST_SECONDS } from '../platform/jobs/retries-and-concurrency.ts'
import { productVersion } from '../version.ts'

const SHOWN_SECONDS = 600

const processRunning = named('WorkerQueue', {
  queue: string(),
  jobs: amount(),
  oldest_since: nullable(time()),
})
export const processResponse = named('Worker', {
  id: id(),
  host: nullable(string()),
  version: nullable(string()),
  started_at: nullable(time()),
  last_seen_at: nullable(time()),
  state: wordOf(['alive', 'lost']),
  running: listed(processRunning),
})

type ProcessRow = {
  id: string
  host: string
  version: string
  started_at: string
  last_seen_at: string
  is_alive: boolean
  running: readonly { queue: string; jobs: number; oldest_since: string }[]
}

async function sayAlive(hub: Hub): Promise<void> {
  const { db } = hub.database
  await db.execute(sql`
    insert into hub_processes (id, host, version, started_at, last_seen_at, running)
    values (${hub.processId}, ${hostname()}, ${productVersion}, ${new Date(hub.startedAtMs).toISOString()}, now(),
      ${JSON.stringify(hub.jobs.running())}::jsonb)
    on conflict (id) do update set last_seen_at = excluded.last_seen_at, running = excluded.running`)
  await db.execute(sql`
    delete from hub_processes where last_seen_at < now() - make_interval(secs => ${SHOWN_SECONDS})`)
}

/** Counts this process among those that live. Returns the function that takes it out again. */
export async function joinProcesses(hub: Hub): Promise<() => Promise<void>> {
  await sayAlive(hub)
  const timer = setInterval(() => {
    sayAlive(hub).catch(error => hub.log.error({ err: error }, 'cannot say that this hub lives'))
  }, BEAT_MS)
  return async () => {
    clearInterval(timer)
    await hub.database.db
      .execute(sql`delete from hub_processes where id = ${hub.processId}`)
      .catch(error => hub.log.warn({ err: error }, 'cannot say that this hub ends'))
  }
}

/** The ids of processes that live, as a select. */
export const livingProcesses = sql`
  select id from hub_processes where last_seen_at > now() - make_interval(secs => ${LOST_SECONDS})`

async function processes(db: Executor): Promise<ProcessRow[]> {
  return [
    ...(await db.execute<ProcessRow>(sql`
      select id, host, version, started_at, last_seen_at, running,
        last_seen_at > now() - make_interval(secs => ${LOST_SECONDS}) as is_alive
      from hub_processes where last_seen_at > now() - make_interval(secs => ${SHOWN_SECONDS}) order by started_at, id`)),
  ]
}

/** The hubs of the last ten minutes. Where they run is shown to super administrators only. */
export async function listWorkers({ hub, caller }: RouteContext) {
  const rows = await processes(hub.database.db)
  return rows.map(row => {
    const state = row.is_alive ? 'alive' : 'lost'
    const counts = row.running.map(({ queue, jobs }) => ({ queue, jobs, oldest_since: null }))
    if (!caller.actsAsSuperAdmin)
      return { id: row.id, host: null, version: null, started_at: null, last_seen_at: null, state, running: counts }
    return {
      id: row.id,
      host: row.host,
      version: row.version,
      started_at: new Date(row.started_at),
      last_seen_at: new Date(row.last_seen_at),
      state,
      running: row.running.map(each => ({ ...each })),
    }
  })
}
