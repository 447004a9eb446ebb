// POST /security/matcher/heartbeat: a matcher runs (decision G-159).
import { type Static, Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { text } from '../../platform/http/request-schema.ts'
import type { RouteContext } from '../../platform/http/route.ts'

const count = () => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

export const heartbeatBody = Type.Object({ version: text(64), db_version: count(), queue_depth: count() })

export async function recordHeartbeat(
  { hub, caller }: RouteContext,
  body: Static<typeof heartbeatBody>,
): Promise<{ matcher_id: string }> {
  await hub.database.db.execute(sql`
    insert into security_matchers (user_id, version, db_version, queue_depth, last_heartbeat_at)
    values (${caller.user.id}, ${body.version}, ${body.db_version}, ${body.queue_depth}, ${new Date(hub.now()).toISOString()})
    on conflict (user_id) do update set version = excluded.version, db_version = excluded.db_version,
      queue_depth = excluded.queue_depth, last_heartbeat_at = excluded.last_heartbeat_at,
      stale_told_at = case when excluded.db_version > security_matchers.db_version then null else security_matchers.stale_told_at end`)
  return { matcher_id: caller.user.id }
}
