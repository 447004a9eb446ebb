// Tombstones of purges: what was made before one is refused for 30 days, whoever reports it (MAT-208).
import type { Database } from 'bun:sqlite'

const TOMBSTONE_MS = 30 * 24 * 3_600_000

export class Tombstones {
  readonly #put
  readonly #newest
  readonly #dropEnded

  constructor(database: Database) {
    this.#put = database.prepare<unknown, [string, string, number]>(
      `INSERT INTO tombstone (company_id, server_id, at_ms) VALUES (?, ?, ?)
       ON CONFLICT (company_id, server_id) DO UPDATE SET at_ms = max(at_ms, excluded.at_ms)`,
    )
    this.#newest = database.prepare<{ readonly at_ms: number | null }, [string, string]>(
      "SELECT max(at_ms) AS at_ms FROM tombstone WHERE company_id = ? AND server_id IN ('', ?)",
    )
    this.#dropEnded = database.prepare<unknown, [number]>('DELETE FROM tombstone WHERE at_ms < ?')
  }

  /** `serverId` null: of the whole company. */
  put(companyId: string, serverId: string | null, atMs: number): void {
    this.#put.run(companyId, serverId ?? '', atMs)
  }

  /** When the newest purge was that concerns a server of the company; 0 when there was none. */
  purgedAtMs(companyId: string, serverId: string | null): number {
    return this.#newest.get(companyId, serverId ?? '')?.at_ms ?? 0
  }

  dropEnded(nowMs: number): void {
    this.#dropEnded.run(nowMs - TOMBSTONE_MS)
  }
}
