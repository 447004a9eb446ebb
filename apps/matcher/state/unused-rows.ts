// Removes shared rows that nobody refers to any more: packages, findings, scans, contexts, groups, reference data and
// companies (MAT section 9). Everything that refers to them is gone through and marked, in slices between reports; what
// was there before and is not marked then goes, in works of a few milliseconds. Cut short, it begins again.
import type { Database } from 'bun:sqlite'
import { decodeSorted } from './number-list.ts'
import { decodeFindings } from './open-findings.ts'
import type { StateParts } from './state-parts.ts'
import { TimeSlice } from './time-slice.ts'
import { decodeEvents } from './waiting-event.ts'

/** Rows that are read at one go: with their bodies, and without. */
const ROWS_AT_ONCE = 32
const IDS_AT_ONCE = 500
/** What one work of the writer takes at most. */
const WORK_MS = 3

type BodyRow = { readonly id: number; readonly body: Uint8Array }
type IdRow = { readonly id: number }

/** Tables whose rows refer to shared ones; `id` is their number. */
const BODIES = {
  lists: 'SELECT id, body FROM package_list WHERE id > ? ORDER BY id LIMIT ?',
  findings: 'SELECT host AS id, body FROM host_findings WHERE host > ? ORDER BY host LIMIT ?',
  outbox: 'SELECT id, body FROM outbox WHERE id > ? ORDER BY id LIMIT ?',
  deadLetters: 'SELECT id, body FROM dead_letter WHERE id > ? ORDER BY id LIMIT ?',
  refused: 'SELECT host AS id, body FROM refused WHERE host > ? ORDER BY host LIMIT ?',
} as const

/** Tables of which a column refers to a shared row. */
const NUMBERS = {
  scans: 'SELECT id, scan AS number FROM host WHERE id > ? AND scan IS NOT NULL ORDER BY id LIMIT ?',
  instanceGroups: 'SELECT id, package_group AS number FROM instance WHERE id > ? ORDER BY id LIMIT ?',
  findingGroups: 'SELECT id, package_group AS number FROM finding WHERE id > ? ORDER BY id LIMIT ?',
} as const

/** Each is one look at an index, or few; what is not used is gone in the same statement. */
const EXACT = [
  `DELETE FROM company WHERE NOT EXISTS (SELECT 1 FROM host WHERE company = company.id)
   AND NOT EXISTS (SELECT 1 FROM outbox WHERE company = company.id)
   AND NOT EXISTS (SELECT 1 FROM dead_letter WHERE company = company.id)
   AND NOT EXISTS (SELECT 1 FROM resync WHERE company = company.id)`,
] as const

type Pages<Row> = { all(after: number, limit: number): readonly Row[] }
type SharedTable = 'instance' | 'finding' | 'scan' | 'context' | 'package_group'

export class UnusedRows {
  readonly #database: Database
  readonly #parts: StateParts
  readonly #next
  readonly #references
  readonly #dropReference

  constructor(database: Database, parts: StateParts) {
    this.#database = database
    this.#parts = parts
    this.#next = (table: SharedTable): Pages<IdRow> =>
      database.query<IdRow, [number, number]>(`SELECT id FROM ${table} WHERE id > ? ORDER BY id LIMIT ?`)
    this.#references = database.prepare<{ readonly vuln: string }, [string, number]>(
      'SELECT vuln FROM reference WHERE vuln > ? ORDER BY vuln LIMIT ?',
    )
    this.#dropReference = database.prepare<unknown, [string]>(
      `DELETE FROM reference WHERE vuln = ? AND NOT EXISTS (SELECT 1 FROM finding WHERE finding.vuln = reference.vuln)`,
    )
  }

  async run(isStopped: () => boolean): Promise<void> {
    const { marks, contents, instances, scans, contexts, matcher } = this.#parts
    try {
      marks.instances.begin(this.#bound('instance'))
      marks.findings.begin(this.#bound('finding'))
      marks.scans.begin(this.#bound('scan'))
      await this.#markUsed(isStopped)
      await this.#drop('finding', id => marks.findings.isUnused(id) && contents.drop(id), isStopped)
      await this.#drop('instance', id => marks.instances.isUnused(id) && this.#dropInstance(id), isStopped)
      await this.#drop('scan', id => marks.scans.isUnused(id) && scans.drop(id), isStopped)
      await this.#drop('context', id => contexts.dropUnused(id) && matcher.forgetContext(id), isStopped)
      marks.groups.begin(this.#bound('package_group'))
      await this.#markNumbers(NUMBERS.instanceGroups, id => marks.groups.add(id), isStopped)
      await this.#markNumbers(NUMBERS.findingGroups, id => marks.groups.add(id), isStopped)
      await this.#drop('package_group', id => marks.groups.isUnused(id) && instances.dropGroup(id), isStopped)
    } finally {
      marks.end()
    }
    await this.#dropReferences(isStopped)
    for (const sql of EXACT) if (!isStopped()) await this.#parts.writer.write(() => this.#database.run(sql))
  }

  #bound(table: SharedTable): number {
    return (this.#database.query<{ readonly id: number }, []>(`SELECT max(id) AS id FROM ${table}`).get()?.id ?? 0) + 1
  }

  async #markUsed(isStopped: () => boolean): Promise<void> {
    const { marks } = this.#parts
    await this.#markBodies(BODIES.lists, body => marks.addList(decodeSorted(body)), isStopped)
    await this.#markBodies(BODIES.findings, body => marks.addFindings(decodeFindings(body).keys()), isStopped)
    for (const told of [BODIES.outbox, BODIES.deadLetters, BODIES.refused])
      await this.#markBodies(told, body => marks.addEvents(decodeEvents(body)), isStopped)
    await this.#markNumbers(NUMBERS.scans, id => marks.scans.add(id), isStopped)
  }

  #markBodies(sql: string, mark: (body: Uint8Array) => void, isStopped: () => boolean): Promise<void> {
    const pages = this.#database.query<BodyRow, [number, number]>(sql)
    return readAll(pages, ROWS_AT_ONCE, row => mark(row.body), isStopped)
  }

  #markNumbers(sql: string, mark: (id: number) => void, isStopped: () => boolean): Promise<void> {
    const pages = this.#database.query<IdRow & { readonly number: number }, [number, number]>(sql)
    return readAll(pages, IDS_AT_ONCE, row => mark(row.number), isStopped)
  }

  /** Asks for each row of a table whether it is to go, within works of a few milliseconds. */
  async #drop(table: SharedTable, dropUnused: (id: number) => unknown, isStopped: () => boolean): Promise<void> {
    const pages = this.#next(table)
    let last = 0
    let isDone = false
    while (!isDone && !isStopped())
      isDone = await this.#parts.writer.write(() => {
        const rows = pages.all(last, IDS_AT_ONCE)
        const endsAt = performance.now() + WORK_MS
        for (const { id } of rows) {
          dropUnused(id)
          last = id
          if (performance.now() > endsAt) return false
        }
        return rows.length < IDS_AT_ONCE
      })
  }

  #dropInstance(id: number): void {
    this.#parts.instances.drop(id)
    this.#parts.writer.afterCommit(() => this.#parts.inventory.index.forget(id))
  }

  async #dropReferences(isStopped: () => boolean): Promise<void> {
    let last = ''
    let isDone = false
    while (!isDone && !isStopped())
      isDone = await this.#parts.writer.write(() => {
        const rows = this.#references.all(last, IDS_AT_ONCE)
        const endsAt = performance.now() + WORK_MS
        for (const { vuln } of rows) {
          this.#dropReference.run(vuln)
          last = vuln
          if (performance.now() > endsAt) return false
        }
        return rows.length < IDS_AT_ONCE
      })
  }
}

async function readAll<Row extends IdRow>(
  pages: Pages<Row>,
  limit: number,
  take: (row: Row) => void,
  isStopped: () => boolean,
): Promise<void> {
  const slice = new TimeSlice()
  let last = 0
  for (;;) {
    const rows = pages.all(last, limit)
    for (const row of rows) {
      take(row)
      last = row.id
    }
    if (rows.length < limit || isStopped()) return
    await slice.yieldIfDue()
  }
}
