// Which statements a hub sends while something is done, and what they read: what makes a request slow, and no matter of
// the host.
import type postgres from 'postgres'

type Values = Parameters<postgres.Sql['unsafe']>[1]
type Sent = { readonly text: string; readonly values: Values }
type Sends = { unsafe: (...given: never[]) => unknown }

/** The statements of a pool, in transactions and outside, while `act` runs. Those of others are among them. */
async function sentStatements(client: postgres.Sql, act: () => Promise<unknown>): Promise<readonly Sent[]> {
  const sent: Sent[] = []
  const noted = <T extends Sends>(sends: T): T =>
    new Proxy(sends, {
      get(target, name, receiver) {
        const member: unknown = Reflect.get(target, name, receiver)
        if (typeof member !== 'function') return member
        if (name === 'unsafe')
          return (text: string, values: Values, ...more: unknown[]) => {
            sent.push({ text, values })
            return member(text, values, ...more)
          }
        if (name === 'savepoint') return (inner: (of: Sends) => unknown) => member((of: Sends) => inner(noted(of)))
        return member
      },
    })
  const { unsafe, begin } = client
  Object.assign(client, {
    unsafe: (...given: Parameters<typeof unsafe>) => {
      sent.push({ text: given[0], values: given[1] })
      return unsafe(...given)
    },
    begin: (inner: (of: postgres.TransactionSql) => unknown) => begin(of => inner(noted(of))),
  })
  try {
    await act()
  } finally {
    Object.assign(client, { unsafe, begin })
  }
  return sent
}

/** How many statements a pool sends while `act` runs. */
export const countStatements = async (client: postgres.Sql, act: () => Promise<unknown>): Promise<number> =>
  (await sentStatements(client, act)).length

const ROUNDS = 3
const SELECT = /^\s*(\(|select|with)/i
type Explained = { 'QUERY PLAN': readonly [{ Plan: Readonly<Record<string, number>> }] }

/**
 * What something that is done again and again costs: the statements that are sent each time, so that those of others
 * are not among them, and the blocks of 8 kB at which its selects look, in memory or not. Writing is not counted.
 */
export async function readWork(client: postgres.Sql, act: () => Promise<unknown>) {
  await act()
  const rounds: (readonly Sent[])[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await sentStatements(client, act))
  const [first = [], ...others] = rounds
  const own = first.filter(({ text }) => others.every(round => round.some(each => each.text === text)))
  let blocks = 0
  // Together, for what one sets the next may go by.
  await client.begin(async tx => {
    for (const { text, values } of own.filter(each => SELECT.test(each.text))) {
      const [row] = await tx.unsafe<Explained[]>(`explain (analyze, buffers, format json) ${text}`, values)
      const { Plan } = row!['QUERY PLAN'][0]
      blocks += Plan['Shared Hit Blocks']! + Plan['Shared Read Blocks']!
    }
  })
  return { statements: own.length, blocks }
}
