// Work of an hour, in slices: inventories to forget, companies whose scanning is switched off
// (switched-off-companies.ts), ended tombstones (MAT-188, MAT-208), and what nobody refers to any more.
import type { Database } from 'bun:sqlite'
import type { SettingsRows } from './company-settings.ts'
import type { StateParts } from './state-parts.ts'
import { SwitchedOffCompanies } from './switched-off-companies.ts'
import type { Tombstones } from './tombstones.ts'
import { UnusedRows } from './unused-rows.ts'

const HOSTS_AT_ONCE = 50
/** What one work of the writer takes at most. */
const WORK_MS = 3

type SilentRow = { readonly id: number; readonly list: number }

export class Sweep {
  readonly #parts: StateParts
  readonly #tombstones: Tombstones
  readonly #switchedOff: SwitchedOffCompanies
  readonly #silent
  readonly #forget
  readonly #unused: UnusedRows

  constructor(database: Database, parts: StateParts, tombstones: Tombstones, settings: SettingsRows) {
    this.#parts = parts
    this.#unused = new UnusedRows(database, parts)
    this.#tombstones = tombstones
    this.#switchedOff = new SwitchedOffCompanies(database, parts, settings)
    this.#silent = database.prepare<SilentRow, [number, number]>(
      'SELECT id, list FROM host WHERE list IS NOT NULL AND reported_ms < ? LIMIT ?',
    )
    // Its findings stay open at the hub, and are compared with the next report.
    this.#forget = database.prepare<unknown, [number]>("UPDATE host SET list = NULL, content_hash = '' WHERE id = ?")
  }

  async run(isStopped: () => boolean): Promise<void> {
    const nowMs = this.#parts.options.now()
    await this.#parts.writer.write(() => this.#tombstones.dropEnded(nowMs))
    const silentBefore = nowMs - this.#parts.options.forgetAfterMs
    while (!isStopped() && (await this.#forgetSome(silentBefore)));
    await this.#switchedOff.run(isStopped, nowMs)
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
}
