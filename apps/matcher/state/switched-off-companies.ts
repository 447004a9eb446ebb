// After how long the findings of a company that switched scanning off are withdrawn (MAT-221), and withdrawing them,
// some hosts at a time.
import type { Database } from 'bun:sqlite'
import type { SettingsRows } from './company-settings.ts'
import { SWITCHED_OFF } from './host-rows.ts'
import type { StateParts } from './state-parts.ts'

const SWITCHED_OFF_MS = 24 * 3_600_000
const HOSTS_AT_ONCE = 50
/** What one work of the writer takes at most. */
const WORK_MS = 3

export class SwitchedOffCompanies {
  readonly #parts: StateParts
  readonly #settings: SettingsRows
  readonly #ofCompany
  readonly #markOff

  constructor(database: Database, parts: StateParts, settings: SettingsRows) {
    this.#parts = parts
    this.#settings = settings
    this.#ofCompany = database.prepare<{ readonly id: number }, [number, number, number]>(
      'SELECT id FROM host WHERE company = ? AND id > ? AND is_stale <> 2 ORDER BY id LIMIT ?',
    )
    this.#markOff = database.prepare<unknown, [number, number]>('UPDATE host SET is_stale = ? WHERE id = ?')
  }

  async run(isStopped: () => boolean, nowMs: number): Promise<void> {
    for (const companyId of this.#settings.disabledSince(nowMs - SWITCHED_OFF_MS)) {
      const company = this.#parts.hosts.company(companyId)
      let last = 0
      while (company !== undefined && !isStopped() && last >= 0) last = await this.#some(company, last)
    }
  }

  /** The last host that was done; negative when none is left. */
  #some(company: number, after: number): Promise<number> {
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
