// Rows that a statement is given column by column arrive as they were sent.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { type Database, openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { statementOfRows } from '../../apps/hub/platform/db/statement-of-rows.ts'
import { newDatabase, stopPostgres } from '../support/postgres.ts'
import { randomFrom } from '../support/random.ts'

let database: Database

beforeAll(async () => {
  database = openDatabase(await newDatabase(), 1)
})
afterAll(async () => {
  await database.close()
  await stopPostgres()
})

const given = statementOfRows(
  {
    place: 'integer',
    name: 'text',
    plain: 'text',
    weight: 'float8',
    sure: 'boolean',
    names: 'text',
    document: 'jsonb',
  },
  rows => sql`
    select x.place, x.name, x.plain, x.weight, x.sure, x.names::text[] as names, x.document from ${rows} order by x.place`,
)

const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
const random = randomFrom(seed)
const oneOf = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!
const PIECES = ['"', '\\', '{', '}', ',', 'NULL', 'null', '', ' ', "'", '\n', '\t', '$1', 'é', '漢', '😀', 'a', '\\"']
/** A list of texts without these is written in another way. */
const isControl = (piece: string): boolean => piece === '\n' || piece === '\t'
const PLAIN_PIECES = PIECES.filter(piece => !isControl(piece))
const text = (pieces = PIECES): string => Array.from({ length: Math.floor(random() * 6) }, () => oneOf(pieces)).join('')
const row = (place: number) => ({
  place,
  name: oneOf([null, text()]),
  plain: oneOf([null, text(PLAIN_PIECES)]),
  weight: oneOf([null, 0, -1.5, 1e300, 5e-324, random()]),
  sure: oneOf([null, true, false]),
  names: oneOf([null, [], [text()], [text(), text(), text()]]),
  document: oneOf<unknown>([[], {}, [text()], { [text()]: text() }, { deep: [{ text: text() }, null, 1.25] }]),
})

test(`values of every type and shape arrive as they are, and so do those that are missing (SEED=${seed})`, async () => {
  for (const count of [1, 2, 500]) {
    const rows = Array.from({ length: count }, (_, place) => row(place))
    expect([...(await database.db.execute(given(rows)))]).toEqual(rows)
  }
})

test('a column that a row lacks is null, and no rows are none', async () => {
  expect([...(await database.db.execute(given([{ place: 1, document: {} }])))]).toEqual([
    { place: 1, name: null, plain: null, weight: null, sure: null, names: null, document: {} },
  ])
  expect(await database.db.execute(given([]))).toHaveLength(0)
})
