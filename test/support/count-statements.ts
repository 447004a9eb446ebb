// How many statements a hub sends while something is done: what makes a request slow, and no matter of the host.
import type postgres from 'postgres'

type Sends = { unsafe: (...given: never[]) => unknown }

/** Counts the statements of a pool, in transactions and outside, while `act` runs. Others are counted with them. */
export async function countStatements(client: postgres.Sql, act: () => Promise<unknown>): Promise<number> {
  let count = 0
  const counted = <T extends Sends>(sends: T): T =>
    new Proxy(sends, {
      get(target, name, receiver) {
        const member: unknown = Reflect.get(target, name, receiver)
        if (name === 'unsafe') count++
        if (typeof member !== 'function' || name !== 'savepoint') return member
        return (inner: (of: Sends) => unknown) => member((of: Sends) => inner(counted(of)))
      },
    })
  const { unsafe, begin } = client
  Object.assign(client, {
    unsafe: (...given: Parameters<typeof unsafe>) => {
      count++
      return unsafe(...given)
    },
    begin: (inner: (of: postgres.TransactionSql) => unknown) => begin(of => inner(counted(of))),
  })
  try {
    await act()
  } finally {
    Object.assign(client, { unsafe, begin })
  }
  return count
}
