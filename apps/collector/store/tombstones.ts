// Tombstones of purged tenants (document 3 "Purge"): a small file that is written and synced before anything is
// deleted, so that a restart in mid-purge still drops what is on its way. They live for fifteen minutes.

import { readFileSync } from 'node:fs'
import type { Tombstone } from '../../../core/retention/tombstone.ts'
import { replaceFile } from '../../files/replace-file.ts'

/** True for what was written as a tombstone. */
export const isTombstone = (value: unknown): value is Tombstone =>
  typeof value === 'object' &&
  value !== null &&
  'companyId' in value &&
  typeof value.companyId === 'string' &&
  'untilMs' in value &&
  typeof value.untilMs === 'number'

export class Tombstones {
  private held: Tombstone[]

  /** Reads what was written before a restart. */
  constructor(
    private readonly path: string,
    private readonly nowMs: () => number,
  ) {
    this.held = this.load()
  }

  private load(): Tombstone[] {
    try {
      const saved: unknown = JSON.parse(readFileSync(this.path, 'utf8'))
      return Array.isArray(saved) ? saved.filter(isTombstone) : []
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
      throw new Error(`cannot read the tombstones ${this.path}`, { cause: error })
    }
  }

  /** Tombstones that have not expired. */
  living(): readonly Tombstone[] {
    const nowMs = this.nowMs()
    if (this.held.some(tombstone => tombstone.untilMs <= nowMs))
      this.held = this.held.filter(tombstone => tombstone.untilMs > nowMs)
    return this.held
  }

  /**
   * Makes a tombstone durable; a later one of the same tenant replaces an earlier. Throws when it cannot be written.
   */
  write(tombstone: Tombstone): void {
    const others = this.living().filter(
      held => held.companyId !== tombstone.companyId || held.serverId !== tombstone.serverId,
    )
    const next = [...others, tombstone]
    replaceFile(this.path, JSON.stringify(next), { isDurable: true })
    this.held = next
  }
}
