// A statement that is given many rows, column by column. PostgreSQL reads an array of each column with a fraction of
// the work that records in JSON take, whose names it parses and sorts for every row, and the names need not be sent.
import { type SQL, sql } from 'drizzle-orm'
import { fixedStatement } from './fixed-statement.ts'

/** The SQL type of each column. A column of arrays is given as `text`, and cast by the statement. */
type ColumnTypes = Readonly<Record<string, string>>

function elementOf(value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value === 'string') return `"${value.replace(/["\\]/g, '\\$&')}"`
  return Array.isArray(value) ? elementOf(arrayOf(value)) : String(value)
}

/** A value that JSON writes as it stands in an array of PostgreSQL. */
const isAlike = (value: unknown): boolean =>
  value == null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)

/** What JSON escapes otherwise than an array of PostgreSQL does: everything but quotes and backslashes. */
const OTHER_ESCAPE = /\\[^"\\]/

/**
 * An array as PostgreSQL reads it. But for the brackets that is most often the list in JSON, which the runtime writes
 * much faster than code of ours.
 */
function arrayOf(values: readonly unknown[]): string {
  const json = values.every(isAlike) ? JSON.stringify(values) : ''
  if (json === '' || OTHER_ESCAPE.test(json)) return `{${values.map(elementOf).join(',')}}`
  return `{${json.slice(1, -1)}}`
}

/**
 * Makes a statement of rows. `build` is called once, and gets what its `from` names: rows `x` with the columns. Values
 * that are missing are null; those of a `jsonb` column must not be missing.
 */
export function statementOfRows<const C extends ColumnTypes>(
  columns: C,
  build: (rows: SQL) => SQL,
): (rows: readonly { readonly [name in keyof C]?: unknown }[]) => SQL {
  const names = Object.keys(columns)
  const documents = names.filter(name => columns[name] === 'jsonb')
  const others = names.filter(name => columns[name] !== 'jsonb')
  const statement = fixedStatement<string>(value =>
    build(
      sql`rows from (${sql.join(
        [
          sql`unnest(${sql.join(
            others.map(name => sql`${value(name)}::${sql.raw(columns[name] ?? '')}[]`),
            sql`, `,
          )})`,
          ...documents.map(name => sql`jsonb_array_elements(${value(name)}::jsonb)`),
        ],
        sql`, `,
      )}) as x (${sql.raw([...others, ...documents].join(', '))})`,
    ),
  )
  return rows => {
    const valuesOf = (name: string) => rows.map(row => row[name])
    return statement(
      Object.fromEntries([
        ...others.map(name => [name, arrayOf(valuesOf(name))]),
        ...documents.map(name => [name, JSON.stringify(valuesOf(name))]),
      ]),
    )
  }
}
