// Statements stay prepared. A query of the API takes PostgreSQL a tenth of a millisecond, and planning it takes five
// times as long; drizzle hands every query to `unsafe`, which plans it anew each time unless told otherwise.
import type postgres from 'postgres'

/**
 * Lists of values make a statement of their own for every length: such a long one is not worth keeping on each
 * connection.
 */
const PARAMETERS_MAX = 40

/** The same client, for drizzle: statements with few parameters are prepared once a connection, in transactions too. */
export function preparing<T extends postgres.ISql>(client: T): T {
  return new Proxy(client, {
    get(target, name, receiver) {
      const member: unknown = Reflect.get(target, name, receiver)
      if (typeof member !== 'function') return member
      if (name === 'unsafe')
        return (query: string, parameters: unknown[] = [], options: object = {}) =>
          member(query, parameters, { ...options, prepare: parameters.length <= PARAMETERS_MAX })
      if (name === 'begin' || name === 'savepoint')
        return (act: (inner: postgres.TransactionSql) => unknown) =>
          member((inner: postgres.TransactionSql) => act(preparing(inner)))
      return member
    },
  })
}
