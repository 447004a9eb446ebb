// Keeps statements prepared. PostgreSQL executes a query of the API in a tenth of a millisecond and plans it in five
// times that; drizzle calls `unsafe` for every query, which plans it again each time unless `prepare` is set.
import { type SQL, sql } from 'drizzle-orm'
import type postgres from 'postgres'

/**
 * A list of values gives a different statement for every length. Statements with a long list are seldom repeated, so
 * they are not worth keeping on each connection.
 */
const PARAMETERS_MAX = 50

const ANEW = '/* planned anew */'
/**
 * Begins a statement that is planned for its values each time. A kept plan knows no values, and of a text that half of
 * the rows hold it would gather all of them before it takes the first ones.
 */
export const plannedAnew: SQL = sql.raw(`${ANEW} `)

/** Wraps a client for drizzle: each connection prepares statements with few parameters once, in transactions too. */
export function preparing<T extends postgres.ISql>(client: T): T {
  return new Proxy(client, {
    get(target, name, receiver) {
      const member: unknown = Reflect.get(target, name, receiver)
      if (typeof member !== 'function') return member
      if (name === 'unsafe')
        return (query: string, parameters: unknown[] = [], options: object = {}) => {
          const prepare = parameters.length <= PARAMETERS_MAX && !query.trimStart().startsWith(ANEW)
          // By itself the driver sends a text without parameters by the simple protocol, which keeps nothing.
          return member(query, parameters, { ...options, prepare, ...(prepare ? { simple: false } : {}) })
        }
      if (name === 'begin' || name === 'savepoint')
        return (act: (inner: postgres.TransactionSql) => unknown) =>
          member((inner: postgres.TransactionSql) => act(preparing(inner)))
      return member
    },
  })
}
