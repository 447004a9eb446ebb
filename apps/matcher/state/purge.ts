// Purges: a company, or one server of it, is gone once the first transaction is on the disk, and a tombstone refuses
// what was made before (MAT-207 to MAT-209). A re-match or resync that comes to it afterwards finds nothing to tell.
// What a whole company had is deleted in slices from then on, and further after a kill.
import type { Database } from 'bun:sqlite'
import type { HostRow } from './host-rows.ts'
import type { Resyncs } from './resync.ts'
import type { StateParts } from './state-parts.ts'
import type { Tombstones } from './tombstones.ts'

/** What one work of the writer takes at most. */
const WORK_MS = 3
const HOSTS_AT_ONCE = 50
const EVENT_ROWS_AT_ONCE = 500

export class Purges {
  readonly #parts: StateParts
  readonly #tombstones: Tombstones
  readonly #resyncs: Resyncs
  readonly #hostsOfServer
  readonly #hostsOfCompany
  readonly #markPurged
  readonly #dropDeadOfHost
  readonly #dropDeadOfCompany
  readonly #dropSettings
  readonly #isStopped: () => boolean
  #running: Promise<void> | null = null

  constructor(
    database: Database,
    parts: StateParts,
    { tombstones, resyncs }: { readonly tombstones: Tombstones; readonly resyncs: Resyncs },
    isStopped: () => boolean,
  ) {
    this.#parts = parts
    this.#tombstones = tombstones
    this.#resyncs = resyncs
    this.#isStopped = isStopped
    this.#hostsOfServer = database.prepare<Pick<HostRow, 'id' | 'list'>, [number, string]>(
      'SELECT id, list FROM host WHERE company = ? AND server_id = ?',
    )
    this.#hostsOfCompany = database.prepare<Pick<HostRow, 'id'>, [number, number]>(
      'SELECT id FROM host WHERE company = ? LIMIT ?',
    )
    this.#markPurged = database.prepare<unknown, [number, number]>('UPDATE host SET purged_ms = ? WHERE id = ?')
    this.#dropDeadOfHost = database.prepare<unknown, [number]>('DELETE FROM dead_letter WHERE host = ?')
    this.#dropDeadOfCompany = database.prepare<unknown, [number]>('DELETE FROM dead_letter WHERE company = ?')
    this.#dropSettings = database.prepare<unknown, [string]>('DELETE FROM settings WHERE company_id = ?')
  }

  /** `serverId` null: the whole company. Also of what never was. */
  async purge(companyId: string, serverId: string | null): Promise<void> {
    await this.#parts.writer.write(() => {
      const nowMs = this.#parts.options.now()
      this.#tombstones.put(companyId, serverId, nowMs)
      const company = this.#parts.hosts.company(companyId)
      if (company === undefined) return
      if (serverId === null) this.#hideCompany(company, companyId, nowMs)
      else this.#purgeServer(company, serverId, nowMs)
    })
    if (serverId === null) this.start()
  }

  /** Deletes in the background what is left of purged companies. */
  start(): void {
    this.#running ??= this.#deleteAll()
      .catch(error => {
        // The sweep of the hour goes on.
        if (!this.#isStopped()) this.#parts.options.onError?.('cannot delete what was purged; it is tried again', error)
      })
      .finally(() => {
        this.#running = null
      })
  }

  /** Resolves when nothing of a purged company is left, or its deletion has failed or was stopped. */
  async finished(): Promise<void> {
    while (this.#running !== null) await this.#running
  }

  #purgeServer(company: number, serverId: string, nowMs: number): void {
    for (const { id, list } of this.#hostsOfServer.all(company, serverId)) {
      this.#parts.dropData({ id, company, list })
      this.#markPurged.run(nowMs, id)
      this.#dropDeadOfHost.run(id)
    }
  }

  #hideCompany(company: number, companyId: string, nowMs: number): void {
    this.#resyncs.drop(company)
    this.#dropDeadOfCompany.run(company)
    this.#dropSettings.run(companyId)
    this.#parts.purged.begin(company, companyId, nowMs)
    this.#parts.outbox.forgetCompany(company)
    this.#parts.writer.afterCommit(() => this.#parts.changedEvents(company))
  }

  async #deleteAll(): Promise<void> {
    for (;;) {
      const [company] = this.#parts.purged.all().keys()
      if (company === undefined || this.#isStopped()) return
      await this.#parts.writer.write(() => this.#deleteSome(company))
    }
  }

  #deleteSome(company: number): void {
    const { hosts, outbox, purged } = this.#parts
    const endsAt = performance.now() + WORK_MS
    for (const { id } of this.#hostsOfCompany.all(company, HOSTS_AT_ONCE)) {
      // To look at a host of a purged company within a work takes away what it had.
      hosts.byId.get(id)
      if (performance.now() > endsAt) return
    }
    if (this.#hostsOfCompany.all(company, 1).length > 0) return
    while (outbox.deleteOfCompany(company, EVENT_ROWS_AT_ONCE)) if (performance.now() > endsAt) return
    purged.finish(company)
  }
}
