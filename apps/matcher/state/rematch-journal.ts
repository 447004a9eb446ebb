// What is left of a re-match: the keys that changed, the contexts whose support changed, and the host that was last
// done (MAT-183). All of it is committed with the database that it is about, and with the events that it leads to.
import type { Database } from 'bun:sqlite'
import type { StateParts } from './state-parts.ts'

export type RematchHead = {
  /** db_version to which hosts are brought. */
  readonly target: number
  /** Only of one switch, from the version before: then verdicts may be compared with those of that version. */
  readonly from: number | null
  /** Hosts up to this one are done. */
  readonly afterHost: number
  readonly startedAtMs: number
}

const HEAD = 'rematch'

export class RematchJournal {
  readonly #parts: StateParts
  readonly #addKey
  readonly #keys
  readonly #dropKeys
  readonly #dropKeysAbove
  readonly #addContext
  readonly #contexts
  readonly #dropContexts

  constructor(database: Database, parts: StateParts) {
    this.#parts = parts
    this.#addKey = database.prepare<unknown, [string, number]>(
      'INSERT INTO rematch_key (key, target) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET target = excluded.target',
    )
    this.#keys = database.prepare<{ readonly key: string }, []>('SELECT key FROM rematch_key ORDER BY key')
    this.#dropKeys = database.prepare<unknown, [number]>('DELETE FROM rematch_key WHERE target <= ?')
    this.#dropKeysAbove = database.prepare<unknown, [number]>('DELETE FROM rematch_key WHERE target > ?')
    this.#addContext = database.prepare<unknown, [number]>('INSERT OR IGNORE INTO rematch_context (context) VALUES (?)')
    this.#contexts = database.prepare<{ readonly context: number }, []>('SELECT context FROM rematch_context')
    this.#dropContexts = database.prepare<unknown, []>('DELETE FROM rematch_context')
  }

  head(): RematchHead | null {
    const text = this.#parts.meta(HEAD)
    return text === null || text === '' ? null : JSON.parse(text)
  }

  /** Within a work of the writer only, as all that follows. */
  putHead(head: RematchHead): void {
    this.#parts.putMeta(HEAD, JSON.stringify(head))
  }

  addKeys(keys: readonly string[], target: number): void {
    for (const key of keys) this.#addKey.run(key, target)
  }

  keys(): string[] {
    return this.#keys.all().map(row => row.key)
  }

  /** Keys of a switch that was never committed. */
  dropKeysAbove(version: number): void {
    this.#dropKeysAbove.run(version)
  }

  contexts(): number[] {
    return this.#contexts.all().map(row => row.context)
  }

  /**
   * Marks the contexts in which the database or the day holds something else for their release than their hosts were
   * matched with. True when there are any.
   */
  markContexts(): boolean {
    let isAny = false
    for (const row of this.#parts.contexts.all()) {
      const { key, isMatched } = this.#parts.matcher.matchOf(row.id)
      if (key === row.applied) continue
      this.#parts.contexts.apply(row.id, key)
      // Without a database nothing is opened or resolved (MAT-153).
      if (!isMatched) continue
      this.#addContext.run(row.id)
      isAny = true
    }
    return isAny
  }

  /** Keys of a switch that is about to be committed stay. */
  finish(target: number): void {
    this.#dropKeys.run(target)
    this.#dropContexts.run()
    this.#parts.putMeta(HEAD, '')
  }
}
