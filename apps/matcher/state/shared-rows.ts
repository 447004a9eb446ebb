// Contents that many hosts share: each is one row, found by its digest (MAT section 9). Numbers that a rolled back
// transaction gave are forgotten with it.
import type { Database } from 'bun:sqlite'
import { digestOf } from './digest.ts'
import { RecentMap } from './recent-map.ts'
import type { StateWriter } from './state-writer.ts'

type IdRow = { readonly id: number }

/** Rows of `scan` (texts) and `package_list` (bytes): nothing but a body. */
export class SharedRows<B extends string | Uint8Array> {
  readonly #ids
  readonly #insert
  readonly #body
  readonly #drop
  readonly #dropUnused
  readonly #recent = new RecentMap<string, number>(20_000)

  constructor(database: Database, writer: StateWriter, table: 'scan' | 'package_list') {
    this.#ids = database.prepare<IdRow, [Uint8Array]>(`SELECT id FROM ${table} WHERE digest = ?`)
    this.#insert = database.prepare<IdRow, [Uint8Array, string | Uint8Array]>(
      `INSERT INTO ${table} (digest, body) VALUES (?, ?) RETURNING id`,
    )
    this.#body = database.prepare<{ readonly body: B }, [number]>(`SELECT body FROM ${table} WHERE id = ?`)
    this.#drop = database.prepare<{ readonly digest: Uint8Array }, [number]>(
      `DELETE FROM ${table} WHERE id = ? RETURNING digest`,
    )
    this.#dropUnused = database.prepare<{ readonly digest: Uint8Array }, [number, number]>(
      `DELETE FROM package_list WHERE id = ? AND NOT EXISTS (SELECT 1 FROM host WHERE list = ?) RETURNING digest`,
    )
    writer.onRollback(() => this.#recent.clear())
  }

  /** The number of the content, given to it now when it is new. Within a work of the writer only. */
  intern(body: B): number {
    const digest = digestOf(body)
    const name = Buffer.from(digest).toString('latin1')
    const known = this.#recent.get(name)
    if (known !== undefined) return known
    const id = (this.#ids.get(digest) ?? this.#insert.get(digest, body))?.id
    if (id === undefined) throw new Error('cannot store a shared content')
    this.#recent.set(name, id)
    return id
  }

  body(id: number): B {
    const row = this.#body.get(id)
    if (row === null) throw new Error('cannot read the state: a content that a host refers to is missing')
    return row.body
  }

  /** Deletes a list that no host has any more. Within a work of the writer only. */
  dropUnused(id: number): void {
    for (const { digest } of this.#dropUnused.all(id, id)) this.#forget(digest)
  }

  /** Deletes a content to which nobody refers. Within a work of the writer only. */
  drop(id: number): void {
    for (const { digest } of this.#drop.all(id)) this.#forget(digest)
  }

  #forget(digest: Uint8Array): void {
    this.#recent.delete(Buffer.from(digest).toString('latin1'))
  }
}
