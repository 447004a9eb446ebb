// What findings say, without the host: equal findings of many hosts are one row. A content never changes; a finding
// that changes refers to another (MAT-169, MAT-172).
import type { Database } from 'bun:sqlite'
import type { FindingColumns } from '../../../core/matching/finding-event.ts'
import { digestOf } from './digest.ts'
import { NumberColumn, RecentMap } from './recent-map.ts'
import type { StateWriter } from './state-writer.ts'

type Row = { readonly id: number; readonly package_group: number; readonly body: string }

export class FindingContents {
  readonly #byDigest
  readonly #insert
  readonly #byId
  readonly #refer
  /** By number of the content: the number of its package group. */
  readonly #groups = new NumberColumn()
  readonly #recent = new RecentMap<number, FindingColumns>(100_000)
  readonly #ids = new RecentMap<string, number>(100_000)
  readonly #drop
  /** By number of the content: 1 when it was deleted. Numbers are not given again while memory may know of them. */
  readonly #dropped = new NumberColumn()
  #nextId = 1

  constructor(database: Database, writer: StateWriter) {
    this.#byDigest = database.prepare<{ readonly id: number }, [Uint8Array]>('SELECT id FROM finding WHERE digest = ?')
    this.#insert = database.prepare<unknown, [number, Uint8Array, number, string, string]>(
      'INSERT INTO finding (id, digest, package_group, vuln, body) VALUES (?, ?, ?, ?, ?)',
    )
    this.#byId = database.prepare<Row, [number]>('SELECT id, package_group, body FROM finding WHERE id = ?')
    this.#refer = database.prepare<unknown, [string]>('INSERT OR IGNORE INTO reference (vuln) VALUES (?)')
    const groups = database.prepare<Pick<Row, 'id' | 'package_group'>, []>('SELECT id, package_group FROM finding')
    for (const row of groups.iterate()) {
      this.#groups.set(row.id, row.package_group)
      this.#nextId = Math.max(this.#nextId, row.id + 1)
    }
    this.#drop = database.prepare<{ readonly digest: Uint8Array }, [number]>(
      'DELETE FROM finding WHERE id = ? RETURNING digest',
    )
    writer.onRollback(() => this.forget())
  }

  /** Within a work of the writer only. */
  intern(columns: FindingColumns, packageGroup: number): number {
    const body = JSON.stringify(columns)
    const digest = digestOf(body)
    const name = Buffer.from(digest).toString('latin1')
    let id = this.#ids.get(name) ?? this.#byDigest.get(digest)?.id
    if (id === undefined) {
      id = this.#nextId++
      this.#insert.run(id, digest, packageGroup, columns.vuln_id, body)
      if (columns.kind === 'vulnerability') this.#refer.run(columns.vuln_id)
    }
    this.#groups.set(id, packageGroup)
    this.#ids.set(name, id)
    this.#recent.set(id, columns)
    return id
  }

  columns(id: number): FindingColumns {
    const known = this.#recent.get(id)
    if (known !== undefined) return known
    const row = this.#byId.get(id)
    if (row === null) throw new Error('cannot read the state: a finding that is referred to is missing')
    const columns: FindingColumns = JSON.parse(row.body)
    this.#recent.set(id, columns)
    return columns
  }

  groupOf(id: number): number {
    return this.#groups.get(id)
  }

  /** Deletes a content to which nobody refers. Within a work of the writer only. */
  drop(id: number): void {
    for (const { digest } of this.#drop.all(id)) this.#ids.delete(Buffer.from(digest).toString('latin1'))
    this.#recent.delete(id)
    this.#dropped.set(id, 1)
  }

  /** Whether a number that memory kept is still that of a content. */
  isKept(id: number): boolean {
    return this.#dropped.get(id) === 0
  }

  /** After a rollback: whoever kept numbers forgets them too. */
  forget(): void {
    this.#recent.clear()
    this.#ids.clear()
    this.#dropped.clear()
  }
}
