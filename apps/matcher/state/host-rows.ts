// Rows of scan hosts: who they are, and where their inventory and findings stand.
import type { Database } from 'bun:sqlite'
import type { MatchStatus } from '../../../core/matching/finding-event.ts'
import type { PurgedCompanies } from './purged-companies.ts'

/** A row of `host` with its company's id. `list` is null without an inventory, `context` before the first report. */
export type HostRow = {
  readonly id: number
  readonly host_id: string
  readonly company: number
  readonly company_id: string
  readonly server_id: string | null
  readonly public_key: string
  readonly is_revoked: number
  readonly is_inactive: number
  readonly version: number
  readonly machine_hash: string
  readonly last_seq: number
  readonly last_time_ms: number
  readonly last_signature: string
  readonly last_status: MatchStatus
  readonly last_open: number
  readonly reported_ms: number
  readonly early_day: number
  readonly purged_ms: number
  readonly content_hash: string
  readonly context: number | null
  readonly scan: number | null
  readonly list: number | null
  readonly finding_count: number
  /** 0, STALE or SWITCHED_OFF. */
  readonly is_stale: number
}

/** All findings are to be made anew: there was no database when the host reported. */
export const STALE = 1
/** So they are at the next report, and not before: scanning was switched off (MAT-221). */
export const SWITCHED_OFF = 2

/** What a report changes of a row. */
type AfterReport = Pick<
  HostRow,
  | 'id'
  | 'last_seq'
  | 'last_time_ms'
  | 'last_signature'
  | 'last_status'
  | 'last_open'
  | 'reported_ms'
  | 'early_day'
  | 'content_hash'
  | 'machine_hash'
  | 'context'
  | 'scan'
  | 'list'
  | 'finding_count'
  | 'is_stale'
>

/** What the hub says of a host. */
type Identity = Pick<
  HostRow,
  | 'id'
  | 'company'
  | 'server_id'
  | 'public_key'
  | 'is_revoked'
  | 'is_inactive'
  | 'version'
  | 'machine_hash'
  | 'purged_ms'
>

const COLUMNS = `host.id, host_id, company, company_id, server_id, public_key, is_revoked, is_inactive, version, machine_hash,
  last_seq, last_time_ms, last_signature, last_status, last_open, reported_ms, early_day, purged_ms, content_hash, context,
  scan, list, finding_count, is_stale`

export class HostRows {
  readonly byHostId
  readonly byId
  readonly insert
  readonly identify
  readonly findings
  readonly putFindings
  readonly dropFindings
  readonly afterReport
  readonly afterRematch
  readonly countFindings
  readonly putSeq
  readonly dropInventory
  readonly dropRefused
  readonly delete
  readonly #database: Database
  readonly #purged: PurgedCompanies
  /** Takes away what a host of a purged company has. */
  readonly #dropData: (host: HostRow) => void
  readonly #move
  readonly #companyId
  readonly #insertCompany

  constructor(database: Database, purged: PurgedCompanies, dropData: (host: HostRow) => void) {
    this.#database = database
    this.#purged = purged
    this.#dropData = dropData
    this.#move = database.prepare<unknown, [number, number, number]>(
      'UPDATE host SET company = ?, purged_ms = max(purged_ms, ?) WHERE id = ?',
    )
    const from = `SELECT ${COLUMNS} FROM host JOIN company ON company.id = host.company`
    const byHostId = database.prepare<HostRow, [string]>(`${from} WHERE host_id = ?`)
    const byId = database.prepare<HostRow, [number]>(`${from} WHERE host.id = ?`)
    this.byHostId = { get: (hostId: string) => this.#withoutPurged(byHostId.get(hostId)) }
    this.byId = { get: (id: number) => this.#withoutPurged(byId.get(id)) }
    this.insert = database.prepare<
      { readonly id: number },
      [string, number, string | null, string, number, number, number, string]
    >(`INSERT INTO host (host_id, company, server_id, public_key, is_revoked, is_inactive, version, machine_hash)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`)
    this.identify = database.prepare<unknown, Identity>(
      `UPDATE host SET company = :company, server_id = :server_id, public_key = :public_key, is_revoked = :is_revoked,
       is_inactive = :is_inactive, version = :version, machine_hash = :machine_hash, purged_ms = :purged_ms
       WHERE id = :id`,
    )
    this.findings = database.prepare<{ readonly body: Uint8Array }, [number]>(
      'SELECT body FROM host_findings WHERE host = ?',
    )
    this.putFindings = database.prepare<unknown, [number, Uint8Array]>(
      'INSERT INTO host_findings (host, body) VALUES (?, ?) ON CONFLICT (host) DO UPDATE SET body = excluded.body',
    )
    this.dropFindings = database.prepare<unknown, [number]>('DELETE FROM host_findings WHERE host = ?')
    this.afterReport = database.prepare<unknown, AfterReport>(
      `UPDATE host SET last_seq = :last_seq, last_time_ms = :last_time_ms, last_signature = :last_signature,
       last_status = :last_status, last_open = :last_open, reported_ms = :reported_ms, early_day = :early_day,
       content_hash = :content_hash, machine_hash = :machine_hash, context = :context, scan = :scan, list = :list,
       finding_count = :finding_count, is_stale = :is_stale WHERE id = :id`,
    )
    this.afterRematch = database.prepare<unknown, [number, number, number, number]>(
      'UPDATE host SET last_seq = ?, finding_count = ?, is_stale = ? WHERE id = ?',
    )
    this.countFindings = database.prepare<unknown, [number, number]>('UPDATE host SET finding_count = ? WHERE id = ?')
    this.putSeq = database.prepare<unknown, [number, number]>('UPDATE host SET last_seq = ? WHERE id = ?')
    this.dropInventory = database.prepare<unknown, [number]>(
      "UPDATE host SET list = NULL, context = NULL, scan = NULL, content_hash = '', is_stale = 1 WHERE id = ?",
    )
    this.dropRefused = database.prepare<unknown, [number]>('DELETE FROM refused WHERE host = ?')
    this.delete = database.prepare<unknown, [number]>('DELETE FROM host WHERE id = ?')
    this.#companyId = database.prepare<{ readonly id: number }, [string]>('SELECT id FROM company WHERE company_id = ?')
    this.#insertCompany = database.prepare<{ readonly id: number }, [string]>(
      'INSERT INTO company (company_id) VALUES (?) RETURNING id',
    )
  }

  /**
   * A host of a purged company shows nothing of what it had. Whoever comes to it within a work of the writer gives it
   * back to its company without it, before anything new is written.
   */
  #withoutPurged(row: HostRow | null): HostRow | null {
    const purge = row === null ? undefined : this.#purged.get(row.company)
    if (row === null || purge === undefined) return row
    const isWritten = this.#database.inTransaction
    const company = isWritten ? this.internCompany(purge.company_id) : (this.company(purge.company_id) ?? row.company)
    if (isWritten) {
      this.#dropData(row)
      this.#move.run(company, purge.at_ms, row.id)
    }
    return {
      ...row,
      company,
      company_id: purge.company_id,
      purged_ms: Math.max(row.purged_ms, purge.at_ms),
      content_hash: '',
      context: null,
      scan: null,
      list: null,
      finding_count: 0,
      is_stale: STALE,
    }
  }

  /** The number of a company, undefined when no host of it was ever known. */
  company(companyId: string): number | undefined {
    return this.#companyId.get(companyId)?.id
  }

  internCompany(companyId: string): number {
    const id = this.company(companyId) ?? this.#insertCompany.get(companyId)?.id
    if (id === undefined) throw new Error('cannot store a company')
    return id
  }
}
