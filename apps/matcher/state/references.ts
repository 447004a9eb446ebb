// What the hub is to know of vulnerabilities with an open finding: sent when it is new to the hub, or has changed
// (MAT-223).
import type { Database } from 'bun:sqlite'
import { digestOf } from './digest.ts'
import type { StateParts } from './state-parts.ts'
import type { Reference } from './state-types.ts'

const CHECKED_AT_ONCE = 500
const CHECKED_VERSION = 'references_checked'

type ReferenceRow = { readonly vuln: string; readonly sent_digest: string }

export class References {
  readonly #parts: StateParts
  readonly #pending
  readonly #next
  readonly #settle
  readonly #mark

  constructor(database: Database, parts: StateParts) {
    this.#parts = parts
    this.#pending = database.prepare<ReferenceRow, [string, number]>(
      'SELECT vuln, sent_digest FROM reference WHERE is_pending = 1 AND vuln > ? ORDER BY vuln LIMIT ?',
    )
    this.#next = database.prepare<ReferenceRow, [string, number]>(
      'SELECT vuln, sent_digest FROM reference WHERE vuln > ? ORDER BY vuln LIMIT ?',
    )
    this.#settle = database.prepare<unknown, [string, string]>(
      'UPDATE reference SET sent_digest = ?, is_pending = 0 WHERE vuln = ?',
    )
    this.#mark = database.prepare<unknown, [string]>('UPDATE reference SET is_pending = 1 WHERE vuln = ?')
  }

  /** Nothing that is returned counts as sent before `sent` says so. */
  toSend(limit: number): Reference[] {
    const references: Reference[] = []
    const settled: ReferenceRow[] = []
    let last = ''
    for (;;) {
      const rows = this.#pending.all(last, limit)
      for (const row of rows) {
        const reference = this.#referenceOf(row.vuln)
        if (reference === null || reference.digest === row.sent_digest) settled.push(row)
        else if (references.length < limit) references.push(reference)
        last = row.vuln
      }
      if (references.length > 0 || rows.length < limit) break
    }
    if (settled.length > 0) void this.#settleQuietly(settled)
    return references
  }

  sent(references: readonly Pick<Reference, 'id' | 'digest'>[]): Promise<void> {
    return this.#parts.writer.write(() => {
      for (const { id, digest } of references) this.#settle.run(digest, id)
    })
  }

  /** After a new database: finds what it says otherwise. */
  async check(isStopped: () => boolean): Promise<void> {
    const version = this.#parts.matcher.reader.version
    const isOther = (): boolean => isStopped() || this.#parts.matcher.reader.version !== version
    if (version === 0 || this.#parts.meta(CHECKED_VERSION) === String(version)) return
    let last = ''
    while (!isOther()) {
      const isDone = await this.#parts.writer.write(() => {
        const rows = this.#next.all(last, CHECKED_AT_ONCE)
        for (const row of rows) {
          const reference = this.#referenceOf(row.vuln)
          if (reference !== null && reference.digest !== row.sent_digest) this.#mark.run(row.vuln)
          last = row.vuln
        }
        if (rows.length < CHECKED_AT_ONCE) this.#parts.putMeta(CHECKED_VERSION, String(version))
        return rows.length < CHECKED_AT_ONCE
      })
      if (isDone) return
    }
  }

  /** What turned out not to be pending; when it cannot be written, it is looked at again. */
  async #settleQuietly(rows: readonly ReferenceRow[]): Promise<void> {
    try {
      await this.#parts.writer.write(() => {
        for (const row of rows) this.#settle.run(row.sent_digest, row.vuln)
      })
    } catch {
      // Nothing is lost by it.
    }
  }

  #referenceOf(vuln: string): Reference | null {
    const vulnerability = this.#parts.matcher.reader.vulnerability(vuln)
    if (vulnerability === undefined) return null
    return { ...vulnerability, digest: Buffer.from(digestOf(JSON.stringify(vulnerability))).toString('hex') }
  }
}
