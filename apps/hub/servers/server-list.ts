// Servers as people see them (decision G-108).
import { asc, isNotNull, isNull, type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { servers } from '../platform/db/schema.ts'
import type { FieldDrift } from '../platform/db/schema-iac.ts'
import { permissionDenied } from '../platform/http/api-error.ts'
import { collection, equals, filter, ofCompany, search } from '../platform/http/collection.ts'
import { oneOf, text } from '../platform/http/request-schema.ts'
import { healthBlocks } from './health.ts'
import { serverResponse, serverStatuses } from './server-response.ts'

export type Server = typeof servers.$inferSelect
export type ServerRow = {
  readonly server: Server
  readonly agentId: string | null
  /** Null where no manifest is bound to it, or nobody looked. */
  readonly drift: readonly FieldDrift[] | null
}

const AGENT_ID: SQL<string | null> = sql`(select a.id from monitoring_agents a
  where a.server_id = servers.id and a.state <> 'revoked' order by a.enrolled_at desc limit 1)`

/** Where it is no longer what its manifest says; null for one that no manifest is bound to. */
const DRIFT: SQL<readonly FieldDrift[] | null> = sql`(select b.drift from iac_bindings b
  where b.company_id = servers.company_id and b.resource_kind = 'server' and b.resource_id = servers.id)`

export const selectServers = (db: Executor) =>
  db.select({ server: servers, agentId: AGENT_ID, drift: DRIFT }).from(servers)

export const presentServer = ({ server, agentId, drift }: ServerRow) => ({
  id: server.id,
  company_id: server.companyId,
  name: server.name,
  hostname: server.hostname,
  ip_address: server.ipAddress,
  environment: server.environment,
  role: server.role,
  datacenter: server.datacenter,
  subnet_id: server.subnetId,
  tags: server.tags,
  operating_system: server.operatingSystem,
  cpu_cores: server.cpuCores,
  memory_mb: server.memoryMb,
  disk_gb: server.diskGb,
  status: server.status,
  origin: server.origin,
  drifted: (drift ?? []).length > 0,
  drift: drift ?? [],
  notes: server.notes,
  agent_id: agentId,
  created_at: server.createdAt,
  updated_at: server.updatedAt,
  deleted_at: server.deletedAt,
})

const shown = {
  table: servers,
  select: selectServers,
  order: [asc(sql`lower(${servers.name})`), asc(servers.id)],
  // The page is found in the index; rows and agents are looked up for that page only.
  pageBy: 'ids' as const,
  response: serverResponse,
  present: presentServer,
}

const asksForHealth = (include: string): boolean => include.split(',').some(part => part.trim() === 'health')

export const serverCollection = collection({
  ...shown,
  scope: ofCompany(servers.companyId, isNull(servers.deletedAt)),
  filters: {
    search: search(servers.name, servers.hostname, servers.ipAddress),
    environment: equals(servers.environment, text(128)),
    role: equals(servers.role, text(128)),
    status: equals(servers.status, oneOf(serverStatuses)),
    // Filters no rows: adds blocks to the response of each (decision G-110).
    include: filter(text(255), (include, { caller }) => {
      if (asksForHealth(include) && !caller.permissions.has('monitoring.view'))
        throw permissionDenied('monitoring.view')
      return undefined
    }),
  },
  async presentPage(rows, { hub, companyId }, { include }) {
    const shownRows = rows.map(presentServer)
    if (include === undefined || !asksForHealth(include)) return shownRows
    const ids = rows.map(row => row.server.id)
    const healthOf = await healthBlocks(hub, companyId, ids)
    return shownRows.map(row => ({ ...row, health: healthOf(row.id) }))
  },
})

/** Servers that were deleted and can be restored. */
export const trashedServers = collection({
  ...shown,
  scope: ofCompany(servers.companyId, isNotNull(servers.deletedAt)),
})

/** All servers, including deleted ones. */
export const allServers = collection({ ...shown, scope: ofCompany(servers.companyId) })

export const findServer = serverCollection.find
