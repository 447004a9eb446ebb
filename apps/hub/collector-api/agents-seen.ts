// POST /agents/seen: collectors report their agents, and an agent whose collector is silent goes to the one that
// reports it (decisions G-31, G-40). What agents say of themselves comes with it where it is news.
import { type Static, Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { limits } from '../../../core/limits.ts'
import { lineOf } from '../../../core/printable.ts'
import type { Hub } from '../hub-context.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { instant, isInstant, listOf, optional, text, uuid } from '../platform/http/request-schema.ts'

/** Comes from the agent itself, and must not make the whole report invalid: what is not as documented is left out. */
const said = (documented: { readonly type: string; readonly [word: string]: unknown }) =>
  Type.Optional(Type.Unsafe<unknown>(Type.Any(documented)))

export const seenBody = Type.Object({
  collector_id: optional(uuid()),
  agents: listOf(
    Type.Object({
      agent_id: uuid(),
      last_seen_at: instant(),
      /** Reported by the agent itself: an agent without a version must not make the whole report invalid. */
      agent_version: optional(text(64, 0)),
      proto_version: optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
      buffer_bytes: said({ type: 'integer', minimum: 0 }),
      buffer_batches: said({ type: 'integer', minimum: 0 }),
      last_warning: said({ type: 'string', maxLength: limits.agentWarningCharsMax }),
      last_warning_at: said({ type: 'string', format: 'date-time' }),
    }),
    limits.seenPerRequest,
  ),
})

type SeenAgent = Static<typeof seenBody>['agents'][number]

const amountOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined

/** PostgreSQL takes fewer offsets than RFC 3339. */
const utc = (instant: string): string => new Date(instant).toISOString()

/** What an agent says of itself, as far as it can be stored; undefined leaves what is stored. */
function statementOf(agent: SeenAgent, nowIso: string) {
  const { last_warning: given, last_warning_at: at } = agent
  const warning = (typeof given === 'string' && lineOf(given, limits.agentWarningCharsMax)) || undefined
  const warnedAt = typeof at === 'string' && isInstant(at) ? utc(at) : nowIso
  return {
    buffer_bytes: amountOf(agent.buffer_bytes),
    buffer_batches: amountOf(agent.buffer_batches),
    last_warning: warning,
    last_warning_at: warning === undefined ? undefined : warnedAt,
  }
}

type SeenRow = { id: string; is_attached: boolean }

/**
 * Raises last_seen_at (it never falls, and is never in the future), stores the versions and what the agents say of
 * themselves, and attaches agents without a collector, or whose collector stopped sending heartbeats, to the reporting
 * one. Returns the unknown ids.
 */
export async function recordSeen(
  hub: Hub,
  body: Static<typeof seenBody>,
): Promise<{ updated: number; unknown: string[] }> {
  const nowIso = new Date(hub.now()).toISOString()
  // One row for each agent, always in the same order: two collectors that report the same agents cannot deadlock.
  const byId = new Map(body.agents.map(agent => [agent.agent_id.toLowerCase(), agent]))
  const records = [...byId]
    .map(([agent_id, agent]) => ({
      ...agent,
      ...{ agent_id, last_seen_at: utc(agent.last_seen_at) },
      ...statementOf(agent, nowIso),
    }))
    .sort((a, b) => (a.agent_id < b.agent_id ? -1 : 1))
  return inTransaction(hub.database.db, async tx => {
    const [collector] = body.collector_id
      ? await tx.db.execute<{ id: string }>(sql`select id from monitoring_collectors where id = ${body.collector_id}`)
      : []
    const collectorId = collector?.id ?? null
    const rows = await tx.db.execute<SeenRow>(sql`
      with given as (
        select x.agent_id, x.last_seen_at, x.agent_version, x.proto_version, x.buffer_bytes, x.buffer_batches, x.last_warning,
          x.last_warning_at from jsonb_to_recordset(${JSON.stringify(records)}::jsonb) as x (agent_id uuid, last_seen_at timestamptz,
          agent_version text, proto_version integer, buffer_bytes bigint, buffer_batches bigint,
          last_warning text, last_warning_at timestamptz)),
      locked as (
        select a.id, g.last_seen_at, g.agent_version, g.proto_version, g.buffer_bytes, g.buffer_batches, g.last_warning,
          g.last_warning_at, g.last_warning_at >= coalesce(a.last_warning_at, '-infinity') as is_warned,
          (${collectorId}::uuid is not null and a.collector_id is distinct from ${collectorId}::uuid and (
            a.collector_id is null or not exists (select 1 from monitoring_collectors c where c.id = a.collector_id
              and c.last_heartbeat_at > ${nowIso}::timestamptz - make_interval(secs => ${limits.collectorOnlineMs / 1000})))
          ) as is_attached
        from monitoring_agents a join given g on g.agent_id = a.id where a.state <> 'revoked' order by a.id for update of a)
      update monitoring_agents a set
        -- A time well ahead of now is of a clock that was wrong: it must not stand until it comes again.
        last_seen_at = greatest(case when a.last_seen_at <= ${nowIso}::timestamptz + interval '1 minute' then a.last_seen_at end,
          least(l.last_seen_at, ${nowIso}::timestamptz)),
        agent_version = coalesce(nullif(btrim(l.agent_version, E' \\t\\u00a0'), ''), a.agent_version),
        proto_version = coalesce(l.proto_version, a.proto_version),
        buffer_bytes = coalesce(l.buffer_bytes, a.buffer_bytes),
        buffer_batches = coalesce(l.buffer_batches, a.buffer_batches),
        last_warning = case when l.is_warned then l.last_warning else a.last_warning end,
        last_warning_at = case when l.is_warned then least(l.last_warning_at, ${nowIso}::timestamptz) else a.last_warning_at end,
        collector_id = case when l.is_attached then ${collectorId}::uuid else a.collector_id end
      from locked l where a.id = l.id returning a.id, l.is_attached`)
    tx.touch(
      'agents',
      rows.filter(row => row.is_attached).map(row => row.id),
    )
    const ids = JSON.stringify([...byId.keys()])
    const known = await tx.db.execute<{ id: string }>(sql`
      select id from monitoring_agents where id in (select x::uuid from jsonb_array_elements_text(${ids}::jsonb) x)`)
    const knownIds = new Set(known.map(row => row.id))
    return { updated: rows.length, unknown: [...byId.keys()].filter(id => !knownIds.has(id)) }
  })
}
