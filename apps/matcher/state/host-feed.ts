// Scan hosts as the hub names them: page by page from its feed, and one by one as they enroll (MAT-050 to MAT-054).
import type { Database } from 'bun:sqlite'
import { hostInfo } from './fleet-matcher.ts'
import type { HostRow } from './host-rows.ts'
import type { Retellings } from './retelling.ts'
import type { StateParts } from './state-parts.ts'
import type { KnownHost, ScanHost, StoredHost } from './state-types.ts'
import type { Tombstones } from './tombstones.ts'

export class HostFeed {
  readonly #parts: StateParts
  readonly #tombstones: Tombstones
  readonly #retellings: Retellings
  /** When the hub was last told that a host was seen. A restart forgets it, and one more is told. */
  readonly #seenToldAt = new Map<string, number>()
  readonly #deadLetters

  constructor(database: Database, parts: StateParts, tombstones: Tombstones, retellings: Retellings) {
    this.#parts = parts
    this.#tombstones = tombstones
    this.#retellings = retellings
    this.#deadLetters = database.prepare<unknown, [number]>('DELETE FROM dead_letter WHERE host = ?')
  }

  cursor(): { readonly since: number; readonly syncedAtMs: number | null } {
    const syncedAt = this.#parts.meta('feed_synced_ms')
    return {
      since: Number(this.#parts.meta('feed_since') ?? 0),
      syncedAtMs: syncedAt === null ? null : Number(syncedAt),
    }
  }

  applyPage(
    hosts: readonly (ScanHost & { readonly isDeleted: boolean })[],
    page: { readonly nextSince: number; readonly isLast: boolean },
  ): Promise<void> {
    return this.#parts.writer.write(() => {
      for (const host of hosts) {
        const held = this.#parts.hosts.byHostId.get(host.hostId)
        if (held !== null && !replaces(host, held)) continue
        if (host.isDeleted) this.#delete(held)
        else this.#put(held, host, held?.machine_hash ?? '')
      }
      this.#parts.putMeta('feed_since', String(page.nextSince))
      if (page.isLast) this.#parts.putMeta('feed_synced_ms', String(this.#parts.options.now()))
    })
  }

  enrolled(host: ScanHost, machineIdHash: string): Promise<void> {
    return this.#parts.writer.write(() => {
      const held = this.#parts.hosts.byHostId.get(host.hostId)
      // The feed knows better, except what only the enrollment says.
      const known = held !== null && !replaces(host, held) ? scanHostOf(held) : host
      this.#put(held, known, machineIdHash)
    })
  }

  host(hostId: string): KnownHost | null {
    const row = this.#parts.hosts.byHostId.get(hostId)
    return (
      row && {
        ...scanHostOf(row),
        lastTimeMs: row.last_time_ms,
        reportedAtMs: row.reported_ms,
        machineIdHash: row.machine_hash,
        seenToldAtMs: this.#seenToldAt.get(hostId) ?? 0,
      }
    )
  }

  /** What is stored of a host, as matching takes it; null when nothing is. */
  stored(hostId: string): StoredHost | null {
    const row = this.#parts.hosts.byHostId.get(hostId)
    const list = row && this.#parts.listOf(row)
    if (row === null || list === null || row.context === null) return null
    const instances = Array.from(list, id => this.#parts.instances.get(id))
    return { host: hostInfo(this.#parts.contexts.get(row.context)), instances }
  }

  seenTold(hostId: string, atMs: number): void {
    this.#seenToldAt.set(hostId, atMs)
  }

  #put(held: HostRow | null, host: ScanHost, machineHash: string): void {
    const { hosts } = this.#parts
    const company = hosts.internCompany(host.companyId)
    const isRevoked = host.state === 'revoked'
    const { hostId, serverId, publicKey, version } = host
    const isInactive = host.isInactive ? 1 : 0
    if (held === null) {
      hosts.insert.get(hostId, company, serverId, publicKey, isRevoked ? 1 : 0, isInactive, version, machineHash)
      return
    }
    // What a host reported belongs to the company that it is of.
    if ((isRevoked && held.is_revoked === 0) || held.company !== company) this.#drop(held)
    // Batches that were read name the server of before, which the hub would refuse.
    if (held.server_id !== serverId) this.#parts.writer.afterCommit(() => this.#parts.changedEvents(company))
    // A host that leaves a purged server takes its tombstone along.
    const purgedAtMs = this.#tombstones.purgedAtMs(held.company_id, held.server_id)
    hosts.identify.run({
      id: held.id,
      company,
      server_id: serverId,
      public_key: publicKey,
      is_revoked: isRevoked ? 1 : 0,
      is_inactive: isInactive,
      version,
      machine_hash: machineHash,
      purged_ms: held.company === company ? Math.max(held.purged_ms, purgedAtMs) : held.purged_ms,
    })
    this.#retellings.changed(held.id)
  }

  #delete(held: HostRow | null): void {
    if (held === null) return
    this.#drop(held)
    this.#parts.hosts.delete.run(held.id)
    this.#seenToldAt.delete(held.host_id)
  }

  #drop(held: HostRow): void {
    this.#parts.dropData(held)
    this.#deadLetters.run(held.id)
  }
}

/**
 * Of one version the feed has the newer content: it gives each record once for each change. What was revoked comes to
 * life under a higher version only (MAT-051, 054).
 */
const replaces = (host: ScanHost, held: HostRow): boolean =>
  host.version > held.version || (host.version === held.version && (held.is_revoked === 0 || host.state === 'revoked'))

const scanHostOf = (row: HostRow): ScanHost => ({
  hostId: row.host_id,
  companyId: row.company_id,
  serverId: row.server_id,
  publicKey: row.public_key,
  state: row.is_revoked === 1 ? 'revoked' : 'active',
  isInactive: row.is_inactive === 1,
  version: row.version,
})
