// What matching needs of a host beside its packages: its system, kernel, paid channels and modules. Hosts that are
// alike in these share a context; its row also says with what support of its release its hosts were last matched.
import type { Database } from 'bun:sqlite'
import type { Report } from '../../../core/matching/report-schema.ts'
import { digestOf } from './digest.ts'
import { RecentMap } from './recent-map.ts'
import type { StateWriter } from './state-writer.ts'

/** The part of a report on which findings depend, its packages left out. */
export type HostContext = Pick<Report, 'os' | 'esm' | 'elts' | 'modules' | 'system'> & {
  readonly kernel: Pick<Report['kernel'], 'running'>
  /** The scanner says that the kernel is not one of the packages, as in a container (MAT-019). */
  readonly is_contained: boolean
}

export function contextOf(report: Report): HostContext {
  const { os, esm, elts, modules, system, kernel } = report
  const is_contained = report.error_codes.includes('kernel_unpackaged')
  const sorted = Object.entries(modules).sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    os,
    esm,
    elts,
    modules: Object.fromEntries(sorted),
    system,
    kernel: { running: kernel.running },
    is_contained,
  }
}

type ContextRow = {
  readonly id: number
  readonly body: string
  readonly ecosystem: string
  /** Key of the support with which the hosts of the context were matched; empty: not at all. */
  readonly applied: string
}

export class ContextRows {
  readonly #byDigest
  readonly #insert
  readonly #byId
  readonly #all
  readonly #apply
  readonly #drop
  readonly #dropMark
  readonly #recent = new RecentMap<number, HostContext>(20_000)
  readonly #ids = new RecentMap<string, number>(20_000)

  constructor(database: Database, writer: StateWriter) {
    const columns = 'id, body, ecosystem, applied'
    this.#byDigest = database.prepare<{ readonly id: number }, [Uint8Array]>('SELECT id FROM context WHERE digest = ?')
    this.#insert = database.prepare<{ readonly id: number }, [Uint8Array, string, string, string]>(
      'INSERT INTO context (digest, body, ecosystem, applied) VALUES (?, ?, ?, ?) RETURNING id',
    )
    this.#byId = database.prepare<ContextRow, [number]>(`SELECT ${columns} FROM context WHERE id = ?`)
    this.#all = database.prepare<ContextRow, []>(`SELECT ${columns} FROM context`)
    this.#apply = database.prepare<unknown, [string, number]>('UPDATE context SET applied = ? WHERE id = ?')
    this.#drop = database.prepare<{ readonly body: string }, [number, number]>(
      'DELETE FROM context WHERE id = ? AND NOT EXISTS (SELECT 1 FROM host WHERE context = ?) RETURNING body',
    )
    this.#dropMark = database.prepare<unknown, [number]>('DELETE FROM rematch_context WHERE context = ?')
    writer.onRollback(() => this.forget())
  }

  /** `applied` is what its first hosts are matched with now. Within a work of the writer only. */
  intern(context: HostContext, ecosystem: string, applied: (context: HostContext) => string): number {
    const body = JSON.stringify(context)
    const known = this.#ids.get(body)
    if (known !== undefined) return known
    const digest = digestOf(body)
    const id = (this.#byDigest.get(digest) ?? this.#insert.get(digest, body, ecosystem, applied(context)))?.id
    if (id === undefined) throw new Error('cannot store a context')
    this.#ids.set(body, id)
    return id
  }

  get(id: number): HostContext {
    const known = this.#recent.get(id)
    if (known !== undefined) return known
    const context: HostContext = JSON.parse(this.row(id).body)
    this.#recent.set(id, context)
    return context
  }

  row(id: number): ContextRow {
    const row = this.#byId.get(id)
    if (row === null) throw new Error('cannot read the state: a context that a host refers to is missing')
    return row
  }

  all(): ContextRow[] {
    return this.#all.all()
  }

  apply(id: number, applied: string): void {
    this.#apply.run(applied, id)
  }

  /** Deletes a context that no host has; true when it did. Within a work of the writer only. */
  dropUnused(id: number): boolean {
    const dropped = this.#drop.all(id, id)
    for (const { body } of dropped) {
      this.#ids.delete(body)
      this.#recent.delete(id)
      this.#dropMark.run(id)
    }
    return dropped.length > 0
  }

  forget(): void {
    this.#recent.clear()
    this.#ids.clear()
  }
}
