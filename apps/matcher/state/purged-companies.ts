// Companies that were purged and whose rows are not all deleted yet (MAT-207). The purge gives the rows that there are
// to a company of no name, so that nobody reads or sends them any more; its hosts go back to their own one by one, each
// without what it had, and what else is left is deleted in slices.
import type { Database } from 'bun:sqlite'
import type { StateWriter } from './state-writer.ts'

type PurgeRow = { readonly company: number; readonly company_id: string; readonly at_ms: number }

export class PurgedCompanies {
  readonly #all
  readonly #put
  readonly #rename
  readonly #drop
  readonly #dropCompany
  /** Null when it is to be read again: a transaction was rolled back. */
  #rows: Map<number, PurgeRow> | null = null

  constructor(database: Database, writer: StateWriter) {
    this.#all = database.prepare<PurgeRow, []>('SELECT company, company_id, at_ms FROM purge')
    this.#put = database.prepare<unknown, [number, string, number]>(
      'INSERT INTO purge (company, company_id, at_ms) VALUES (?, ?, ?)',
    )
    this.#rename = database.prepare<unknown, [number]>("UPDATE company SET company_id = 'purged ' || id WHERE id = ?")
    this.#drop = database.prepare<unknown, [number]>('DELETE FROM purge WHERE company = ?')
    this.#dropCompany = database.prepare<unknown, [number]>('DELETE FROM company WHERE id = ?')
    writer.onRollback(() => {
      this.#rows = null
    })
  }

  /** By number of the company that has the rows. */
  all(): ReadonlyMap<number, PurgeRow> {
    this.#rows ??= new Map(this.#all.all().map(row => [row.company, row]))
    return this.#rows
  }

  get(company: number): PurgeRow | undefined {
    return this.all().get(company)
  }

  /** Within a work of the writer only, as what follows. */
  begin(company: number, companyId: string, atMs: number): void {
    this.#rename.run(company)
    this.#put.run(company, companyId, atMs)
    this.#rows = null
  }

  /** Nothing of it is left. */
  finish(company: number): void {
    this.#drop.run(company)
    this.#dropCompany.run(company)
    this.#rows = null
  }
}
