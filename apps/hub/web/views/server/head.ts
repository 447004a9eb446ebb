// The head of a server's page: what it is, how it stands, what is silent about it and until when.
import { sql } from 'drizzle-orm'
import type { FieldDrift } from '../../../platform/db/schema-iac.ts'
import { notFound } from '../../../platform/http/api-error.ts'
import { askCollector, healthBlocks } from '../../../servers/health.ts'
import { allServers, presentServer, type ServerRow } from '../../../servers/server-list.ts'
import type { View, ViewContext } from '../view.ts'

export type CollectorState = 'ok' | 'unavailable' | 'not_configured' | 'no_data'

export type ServerHead = {
  readonly id: string
  readonly name: string
  readonly hostname: string | null
  readonly ipAddress: string | null
  readonly environment: string | null
  readonly role: string | null
  readonly datacenter: string | null
  readonly subnetId: string | null
  readonly operatingSystem: string | null
  readonly cpuCores: number | null
  readonly memoryMb: number | null
  readonly diskGb: number | null
  readonly tags: readonly string[]
  readonly notes: string | null
  readonly status: 'active' | 'maintenance' | 'decommissioned' | 'draft'
  readonly origin: 'manual' | 'iac' | 'agent'
  readonly isDeleted: boolean
  /** Where it is no longer what its manifest says; null for one without. */
  readonly drift: readonly FieldDrift[] | null
  readonly connectivity: 'online' | 'down' | 'unknown'
  readonly lastSeenAtMs: number | null
  readonly uptimeSeconds: number | null
  readonly openAlerts: number
  readonly hasAgent: boolean
  /** The silence of all rules that ends last of those that cover the server now. */
  readonly silence: {
    readonly id: string
    readonly untilMs: number
    readonly reason: string | null
    /** How many servers it covers; null: all of the company. */
    readonly servers: number | null
    readonly isRepeated: boolean
  } | null
  readonly collector: CollectorState
}

/**
 * The server that a view is about. A deleted one is found by those who may restore it, and by nobody else. Throws 404.
 */
export async function shownServer({ hub, companyId, param, may }: ViewContext): Promise<ServerRow> {
  const row = await allServers.find(hub.database.db, companyId, param('server'))
  if (row.server.deletedAt !== null && !may('servers.delete')) throw notFound()
  return row
}

type SilenceRow = { id: string; ends_at: string; reason: string; servers: number | null; is_repeated: boolean }

async function silenceOf({ hub, companyId, may }: ViewContext, serverId: string): Promise<ServerHead['silence']> {
  const [row] = await hub.database.db.execute<SilenceRow>(sql`
    select coalesce(recurrence_of, id) as id, ends_at, reason,
      case when coalesce((scope ->> 'all')::boolean, false) then null else cardinality(resolved_server_ids) end as servers,
      recurrence_of is not null or recurrence is not null as is_repeated
    from monitoring_silences
    where company_id = ${companyId} and starts_at <= now() and ends_at > now() and cancelled_at is null
      and deleted_at is null and cardinality(rule_ids) = 0 and (coalesce((scope ->> 'all')::boolean, false) or ${serverId} = any(resolved_server_ids))
    order by ends_at desc, id limit 1`)
  if (!row) return null
  const reason = may('monitoring.manage') ? row.reason : null
  return {
    ...{ id: row.id, untilMs: new Date(row.ends_at).getTime(), reason },
    ...{ servers: row.servers, isRepeated: row.is_repeated },
  }
}

export const serverView: View<ServerHead> = {
  permissions: ['monitoring.view', 'servers.view'],
  optional: ['servers.delete', 'monitoring.manage'],
  params: ['server'],
  async make(context) {
    const { hub, companyId } = context
    const row = await shownServer(context)
    const server = presentServer(row)
    const ref = { server: { id: server.id, companyId }, agentId: row.agentId }
    const [{ status, note }, blockOf, silence] = await Promise.all([
      askCollector(hub, ref),
      healthBlocks(hub, companyId, [server.id]),
      silenceOf(context, server.id),
    ])
    const block = blockOf(server.id)
    const seen = [block.last_seen_at?.getTime(), status?.last_seen ? Date.parse(status.last_seen) : undefined]
    const seenAtMs = Math.max(0, ...seen.filter(at => at !== undefined))
    return {
      id: server.id,
      name: server.name,
      hostname: server.hostname,
      ipAddress: server.ip_address,
      environment: server.environment,
      role: server.role,
      datacenter: server.datacenter,
      subnetId: server.subnet_id,
      operatingSystem: server.operating_system,
      cpuCores: server.cpu_cores,
      memoryMb: server.memory_mb,
      diskGb: server.disk_gb,
      tags: server.tags,
      notes: server.notes,
      status: server.status,
      origin: server.origin,
      isDeleted: server.deleted_at !== null,
      drift: row.drift,
      connectivity: status?.state ?? block.connectivity,
      lastSeenAtMs: seenAtMs === 0 ? null : seenAtMs,
      uptimeSeconds: status?.metrics.uptime_seconds?.[0]?.value ?? null,
      openAlerts: block.open_alerts,
      hasAgent: row.agentId !== null,
      silence,
      collector: note.reason ?? 'ok',
    }
  },
}
