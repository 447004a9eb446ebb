// Which scan hosts of a batch may speak: events are held to the registry that the hub issued at enrollment (document 3
// "Security matcher to hub"; decisions G-156, G-171).
import { sql } from 'drizzle-orm'
import { type Tx, uuidList } from '../../platform/db/transaction.ts'
import { isUuid } from '../../platform/http/request-schema.ts'
import type { Envelope } from './event-parse.ts'

export type KnownHost = {
  readonly hostId: string
  readonly companyId: string
  readonly serverId: string | null
  /** Its last report was not compared, for lack of a database (match_status no_db); null when it was. */
  readonly uncompared: UncomparedScan | null
}

/** Seq of a report that was not compared, and the version of the database that said nothing of its distribution. */
export type UncomparedScan = { readonly seq: number; readonly dbVersion: number }

type HostRow = {
  host_id: string
  company_id: string
  server_id: string | null
  speaks: boolean
  uncompared_seq: string | null
  uncompared_version: string | null
}

const knownHost = (row: HostRow): KnownHost => ({
  hostId: row.host_id,
  companyId: row.company_id,
  serverId: row.server_id,
  uncompared:
    row.uncompared_seq === null ? null : { seq: Number(row.uncompared_seq), dbVersion: Number(row.uncompared_version) },
})

/**
 * Locks the hosts of a batch in one order, so that batches of one host, its attachment and its revocation go one after
 * the other. Returns those that are active and whose company and server are there.
 */
export async function lockHosts(tx: Tx, events: readonly Envelope[]): Promise<Map<string, KnownHost>> {
  const ids = new Set(events.map(event => event.host_id).filter(isUuid))
  const rows = await tx.db.execute<HostRow>(sql`
    select h.host_id, h.company_id, h.server_id, h.state = 'active' and c.deleted_at is null and s.deleted_at is null as speaks,
      u.last_event_seq as uncompared_seq, u.db_version as uncompared_version
    from scan_hosts h join companies c on c.id = h.company_id left join servers s on s.id = h.server_id
      left join security_server_scans u on u.host_id = h.host_id and u.match_status = 'no_db'
    where h.host_id = any(${uuidList(ids)}::uuid[]) order by h.host_id for no key update of h`)
  return new Map(rows.filter(row => row.speaks).map(row => [row.host_id, knownHost(row)]))
}

/** The host that an event is of; null when it is not known, of another company, or attached to another server. */
export function hostOf(event: Envelope, hosts: ReadonlyMap<string, KnownHost>): KnownHost | null {
  const host = hosts.get(event.host_id.toLowerCase())
  if (!host || host.companyId !== event.company_id.toLowerCase()) return null
  return event.server_id === null || event.server_id.toLowerCase() === host.serverId ? host : null
}
