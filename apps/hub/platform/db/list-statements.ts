// The statements of lists, kept ready. Drizzle writes the text of a select anew each time, columns and joins included,
// which costs a list a quarter of its processor time. Here only the condition is written for each request: where it has
// the text of one before, the statement of that one is run with the values of this one.
import { Placeholder, type SQL, sql } from 'drizzle-orm'
import { PgDialect } from 'drizzle-orm/pg-core'
import { LRUCache } from 'lru-cache'
import { assert } from '../../../../core/assert.ts'
import type { Executor } from './connect.ts'

/** A list has a statement for each combination of its filters that callers use. */
const STATEMENTS_MAX = 1000
const dialect = new PgDialect()

type Values = Readonly<Record<string, unknown>>
type Prepared<Row> = { execute(values: Values): Promise<Row[]> }
type Build<Row> = (where: SQL | undefined) => { prepare(name: string): Prepared<Row> }

/** What every statement of a list may hold besides its condition. */
export const listValues = {
  owner: sql.placeholder('owner'),
  limit: sql.placeholder('limit'),
  offset: sql.placeholder('offset'),
}
type ListValues = { readonly [K in keyof typeof listValues]: string | number }

/** The condition of a text in which `$1`, `$2` … stand for values. */
function conditionOf(text: string, valueCount: number): SQL | undefined {
  if (text === '') return undefined
  const parts = text.split(/\$\d+/)
  assert(parts.length === valueCount + 1, 'each value of a condition stands in its text once')
  return sql.join(
    parts.flatMap((part, index) =>
      index === 0 ? [sql.raw(part)] : [new Placeholder(`value${index - 1}`), sql.raw(part)],
    ),
  )
}

export class ListStatements<Row> {
  /** Statements belong to the pool that they were made for. */
  private readonly ofPool = new WeakMap<Executor, LRUCache<string, Prepared<Row>>>()

  /** `build` is called once for each text of a condition, so it may use no value of a request but `listValues`. */
  async run(db: Executor, where: SQL | undefined, values: ListValues, build: Build<Row>): Promise<Row[]> {
    const { sql: text, params } = where ? dialect.sqlToQuery(where) : { sql: '', params: [] }
    const kept = this.ofPool.get(db) ?? new LRUCache<string, Prepared<Row>>({ max: STATEMENTS_MAX })
    this.ofPool.set(db, kept)
    const statement = kept.get(text) ?? build(conditionOf(text, params.length)).prepare('list')
    kept.set(text, statement)
    const all: Record<string, unknown> = { ...values }
    for (const [index, param] of params.entries()) all[`value${index}`] = param
    return statement.execute(all)
  }
}
