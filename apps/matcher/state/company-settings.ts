// Settings of companies as the hub last told them; they hold while the hub is away (MAT-220, MAT-221).
import type { Database } from 'bun:sqlite'
import type { CompanySettings } from './state-types.ts'

type SettingsRow = {
  readonly company_id: string
  readonly version: number
  readonly is_enabled: number
  readonly interval_hours: number
  readonly min_interval_hours: number | null
  readonly fetched_ms: number
  readonly disabled_since_ms: number | null
}

export class SettingsRows {
  readonly #get
  readonly #put
  readonly #disabledSince

  constructor(database: Database) {
    this.#get = database.prepare<SettingsRow, [string]>(
      `SELECT company_id, version, is_enabled, interval_hours, min_interval_hours, fetched_ms, disabled_since_ms
       FROM settings WHERE company_id = ?`,
    )
    this.#put = database.prepare<unknown, SettingsRow>(
      `INSERT INTO settings
         (company_id, version, is_enabled, interval_hours, min_interval_hours, fetched_ms, disabled_since_ms)
       VALUES
         (:company_id, :version, :is_enabled, :interval_hours, :min_interval_hours, :fetched_ms, :disabled_since_ms)
       ON CONFLICT (company_id) DO UPDATE SET version = excluded.version, is_enabled = excluded.is_enabled,
       interval_hours = excluded.interval_hours, min_interval_hours = excluded.min_interval_hours,
       fetched_ms = excluded.fetched_ms, disabled_since_ms = excluded.disabled_since_ms`,
    )
    this.#disabledSince = database.prepare<{ readonly company_id: string }, [number]>(
      'SELECT company_id FROM settings WHERE is_enabled = 0 AND disabled_since_ms <= ?',
    )
  }

  get(companyId: string): CompanySettings | null {
    const row = this.#get.get(companyId)
    return (
      row && {
        companyId: row.company_id,
        version: row.version,
        isEnabled: row.is_enabled === 1,
        scanIntervalHours: row.interval_hours,
        minIntervalHours: row.min_interval_hours ?? row.interval_hours,
        fetchedAtMs: row.fetched_ms,
        disabledSinceMs: row.disabled_since_ms,
      }
    )
  }

  put(settings: Omit<CompanySettings, 'disabledSinceMs'>, nowMs: number): void {
    const held = this.get(settings.companyId)
    this.#put.run({
      company_id: settings.companyId,
      version: settings.version,
      is_enabled: settings.isEnabled ? 1 : 0,
      interval_hours: settings.scanIntervalHours,
      min_interval_hours: settings.minIntervalHours,
      fetched_ms: settings.fetchedAtMs,
      disabled_since_ms: settings.isEnabled ? null : (held?.disabledSinceMs ?? nowMs),
    })
  }

  /** Companies whose scanning has been off since then or longer. */
  disabledSince(atMs: number): string[] {
    return this.#disabledSince.all(atMs).map(row => row.company_id)
  }
}
