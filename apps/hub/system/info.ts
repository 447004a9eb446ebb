// GET /system/info: versions for everybody; the health of the whole hub for super administrators only (RES-269).
import { statfs } from 'node:fs/promises'
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { limits } from '../../../core/limits.ts'
import { migrations } from '../platform/db/migrate.ts'
import { amount, named, nullable, string, time } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { productVersion } from '../version.ts'

const API_VERSION = 'v1'

export const infoResponse = named('SystemInfo', {
  version: string(),
  api: string(),
  time: time(),
  started_at: nullable(time()),
  database: nullable(Type.Object({ version: string(), bytes: amount(), connections: amount() })),
  migrations: nullable(Type.Object({ applied: amount(), known: amount(), newest: nullable(string()) })),
  collectors: nullable(Type.Object({ total: amount(), online: amount() })),
  queues: nullable(Type.Object({ waiting: amount(), running: amount(), failed: amount() })),
  /** Of the file system that holds the hub's data directory; null where the hub has none. */
  disk: nullable(Type.Object({ bytes: amount(), free_bytes: amount() })),
  /** How far the clock of the hub is ahead of the database's. */
  clock: nullable(Type.Object({ ahead_ms: Type.Number() })),
})

type Counted = {
  version: string
  bytes: string
  connections: number
  applied: number
  newest: string | null
  collectors: number
  online: number
  waiting: number
  running: number
  failed: number
  now_ms: number
}

async function diskOf(path: string | null) {
  if (path === null) return null
  const { bsize, blocks, bavail } = await statfs(path)
  return { bytes: bsize * blocks, free_bytes: bsize * bavail }
}

async function facts({ hub }: RouteContext) {
  const [row] = await hub.database.db.execute<Counted>(sql`
    select current_setting('server_version') as version, pg_database_size(current_database()) as bytes,
      (select count(*)::int from pg_stat_activity where datname = current_database()) as connections,
      (select count(*)::int from hub_migrations) as applied,
      (select name from hub_migrations order by number desc limit 1) as newest,
      (select count(*)::int from monitoring_collectors) as collectors,
      (select count(*)::int from monitoring_collectors
        where last_heartbeat_at > now() - make_interval(secs => ${limits.collectorOnlineMs / 1000})) as online,
      (select count(*)::int from pgboss.job where state < 'active') as waiting,
      (select count(*)::int from pgboss.job where state = 'active') as running,
      (select count(*)::int from pgboss.job where state = 'failed') as failed,
      (extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms`)
  if (!row) throw new Error('assertion failed: a select without a table has one row')
  const { version, connections, applied, newest, collectors, online, waiting, running, failed, now_ms } = row
  return {
    started_at: new Date(hub.startedAtMs),
    database: { version, bytes: Number(row.bytes), connections },
    migrations: { applied, known: migrations.length, newest },
    collectors: { total: collectors, online },
    queues: { waiting, running, failed },
    disk: await diskOf(hub.config.data_dir),
    clock: { ahead_ms: Math.round(hub.now() - now_ms) },
  }
}

const NOTHING = {
  started_at: null,
  database: null,
  migrations: null,
  collectors: null,
  queues: null,
  disk: null,
  clock: null,
}

export async function systemInfo(context: RouteContext) {
  const more = context.caller.actsAsSuperAdmin ? await facts(context) : NOTHING
  return { version: productVersion, api: API_VERSION, time: new Date(context.hub.now()), ...more }
}
