// Tombstones of purged tenants (document 3 "Purge"): a small file that is written and synced before anything is
// deleted, so that a restart in mid-purge still drops what is on its way. They live for fifteen minutes, and are known
// for days after that: a process that starts later still drops what lay on the bus.

import { readFileSync } from 'node:fs'
import { limits } from '../../../core/limits.ts'
import { isInForce, type Tombstone } from '../../../core/retention/tombstone.ts'
import { replaceFile } from '../../files/replace-file.ts'

/** True for what was written as a tombstone. */
export const isTombstone = (value: unknown): value is Tombstone =>
  typeof value === 'object' &&
  value !== null &&
  'companyId' in value &&
  typeof value.companyId === 'string' &&
  'untilMs' in value &&
  typeof value.untilMs === 'number'

export const isKeptAt =
  (nowMs: number) =>
  ({ untilMs }: Tombstone): boolean =>
    nowMs < untilMs + limits.purgeTombstoneKeptMs

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

  /** Tombstones that have not ended. */
  living(): readonly Tombstone[] {
    const nowMs = this.nowMs()
    return this.kept().filter(tombstone => isInForce(tombstone, nowMs))
  }

  /** Those that have not ended, or not long ago: what was received before their end may still come from the bus. */
  kept(): readonly Tombstone[] {
    this.held = this.held.filter(isKeptAt(this.nowMs()))
    return this.held
  }

  /**
   * Makes a tombstone durable; a later one of the same tenant replaces an earlier. Throws when it cannot be written.
   */
  write(tombstone: Tombstone): void {
    const others = this.kept().filter(
      held => held.companyId !== tombstone.companyId || held.serverId !== tombstone.serverId,
    )
    const next = [...others, tombstone]
    replaceFile(this.path, JSON.stringify(next), { isDurable: true })
    this.held = next
  }
}
