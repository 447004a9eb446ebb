// Work of an hour, in slices: inventories to forget, companies whose scanning is switched off, ended tombstones
// (MAT-188, MAT-208, MAT-221), and what nobody refers to any more.
import type { Database } from 'bun:sqlite'
import type { SettingsRows } from './company-settings.ts'
import { SWITCHED_OFF } from './host-rows.ts'
import type { StateParts } from './state-parts.ts'
import type { Tombstones } from './tombstones.ts'
import { UnusedRows } from './unused-rows.ts'

const SWITCHED_OFF_MS = 24 * 3_600_000
const HOSTS_AT_ONCE = 50
/** What one work of the writer takes at most. */
const WORK_MS = 3

type IdRow = { readonly id: number }
type SilentRow = IdRow & { readonly list: number }

export class Sweep {
  readonly #parts: StateParts
  readonly #tombstones: Tombstones
  readonly #settings: SettingsRows
  readonly #silent
  readonly #forget
  readonly #ofCompany
  readonly #markOff
  readonly #unused: UnusedRows

  constructor(database: Database, parts: StateParts, tombstones: Tombstones, settings: SettingsRows) {
    this.#parts = parts
    this.#unused = new UnusedRows(database, parts)
    this.#tombstones = tombstones
    this.#settings = settings
    this.#silent = database.prepare<SilentRow, [number, number]>(
      'SELECT id, list FROM host WHERE list IS NOT NULL AND reported_ms < ? LIMIT ?',
    )
    // Its findings stay open at the hub, and are compared with the next report.
    this.#forget = database.prepare<unknown, [number]>("UPDATE host SET list = NULL, content_hash = '' WHERE id = ?")
    this.#ofCompany = database.prepare<IdRow, [number, number, number]>(
      'SELECT id FROM host WHERE company = ? AND id > ? AND is_stale <> 2 ORDER BY id LIMIT ?',
    )
    this.#markOff = database.prepare<unknown, [number, number]>('UPDATE host SET is_stale = ? WHERE id = ?')
  }

  async run(isStopped: () => boolean): Promise<void> {
    const nowMs = this.#parts.options.now()
    await this.#parts.writer.write(() => this.#tombstones.dropEnded(nowMs))
    const silentBefore = nowMs - this.#parts.options.forgetAfterMs
    while (!isStopped() && (await this.#forgetSome(silentBefore)));
    for (const companyId of this.#settings.disabledSince(nowMs - SWITCHED_OFF_MS)) {
      const company = this.#parts.hosts.company(companyId)
      let last = 0
      while (company !== undefined && !isStopped() && last >= 0) last = await this.#switchOffSome(company, last)
    }
    if (!isStopped()) await this.#unused.run(isStopped)
  }

  /** False when none is left. */
  #forgetSome(silentBefore: number): Promise<boolean> {
    return this.#parts.writer.write(() => {
      const hosts = this.#silent.all(silentBefore, HOSTS_AT_ONCE)
      const endsAt = performance.now() + WORK_MS
      for (const { id, list } of hosts) {
        this.#forget.run(id)
        this.#parts.lists.dropUnused(list)
        this.#parts.writer.afterCommit(() => this.#parts.inventory.drop(id))
        if (performance.now() > endsAt) break
      }
      return hosts.length > 0
    })
  }

  /** The last host that was done; negative when none is left. */
  #switchOffSome(company: number, after: number): Promise<number> {
    return this.#parts.writer.write(() => {
      // The outbox takes no more; the next hour goes on.
      if (this.#parts.outbox.isFull) return -1
      const endsAt = performance.now() + WORK_MS
      let last = -1
      for (const { id } of this.#ofCompany.all(company, after, HOSTS_AT_ONCE)) {
        this.#switchOff(id)
        last = id
        if (performance.now() > endsAt) break
      }
      return last
    })
  }

  #switchOff(id: number): void {
    const { hosts, matcher, changes, outbox, options } = this.#parts
    const host = hosts.byId.get(id)
    if (host === null) return
    const open = this.#parts.openFindings(id)
    if (open.size === 0 || host.context === null) {
      this.#markOff.run(SWITCHED_OFF, id)
      return
    }
    const nowMs = options.now()
    matcher.keepDay(nowMs)
    const { match } = matcher.matchOf(host.context)
    const none = { ids: new Set<number>(), onlyGroups: null, match, kernelRunning: '', list: new Int32Array() }
    const change = changes.compare(open, { ...none, isSwitchedOff: true }, nowMs)
    this.#parts.putFindings(id, new Map())
    const lastSeq = outbox.tell(host, change.events, nowMs, nowMs, matcher.reader.version)
    hosts.afterRematch.run(lastSeq, 0, SWITCHED_OFF, id)
  }
}
