// POST /heartbeat: a collector reports itself (decision G-32).
import { type Static, Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { notFound } from '../platform/http/api-error.ts'
import { integer, optional, text, uuid } from '../platform/http/request-schema.ts'

/** The largest value of an integer column. */
const COUNT_MAX = 2_147_483_647

export const heartbeatBody = Type.Object({
  collector_id: uuid(),
  version: optional(text(64)),
  agent_count: optional(integer(0, COUNT_MAX)),
  ingest_rps: optional(Type.Number({ minimum: 0 })),
  outbox_depth: optional(integer(0, COUNT_MAX)),
})

export async function recordHeartbeat(hub: Hub, body: Static<typeof heartbeatBody>): Promise<{ collector_id: string }> {
  const rows = await hub.database.db.execute<{ id: string }>(sql`
    update monitoring_collectors set last_heartbeat_at = ${new Date(hub.now()).toISOString()},
      version = coalesce(${body.version ?? null}, version), agent_count = coalesce(${body.agent_count ?? null}, agent_count),
      ingest_rps = ${body.ingest_rps ?? null}, outbox_depth = ${body.outbox_depth ?? null}
    where id = ${body.collector_id} returning id`)
  if (!rows[0]) throw notFound()
  return { collector_id: rows[0].id }
}
