// Connections to the database that go silent without an end, as after a fail-over or behind a firewall that drops
// flows: they are given up in seconds, and no statement that the server works on is.
import { expect, setDefaultTimeout, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import postgres from 'postgres'
import { type Database, openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { isMigrated } from '../../apps/hub/platform/db/migrate.ts'
import { dropSilent } from '../../apps/hub/platform/db/silence.ts'
import { newDatabase, newHubDatabase } from '../support/postgres.ts'
import { SilentProxy } from '../support/silent-proxy.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)
const SILENCE = { silentMs: 300, everyMs: 50 }
const CONNECTIONS = 3

type Scene = { readonly database: Database; readonly proxy: SilentProxy; readonly direct: postgres.Sql }

async function withProxy(url: string, act: (scene: Scene) => Promise<void>): Promise<void> {
  await using proxy = await SilentProxy.start(Number(new URL(url).port))
  const through = new URL(url)
  through.port = String(proxy.port)
  const database = openDatabase(through.href, CONNECTIONS, SILENCE)
  const direct = postgres(url, { max: 1, onnotice: () => {} })
  try {
    await act({ database, proxy, direct })
  } finally {
    await Promise.all([database.close(), direct.end()])
  }
}

const outcome = (asked: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(asked).then(
    () => 'answered',
    (error: unknown) => error,
  )
/** Makes the pool have all of its connections. */
const fill = ({ client }: Database) =>
  Promise.all(Array.from({ length: CONNECTIONS }, () => client.begin(tx => tx`select pg_sleep(0.1)`)))

test('what waits on connections that went silent fails as with a lost connection, and what follows is answered', async () => {
  await withProxy(await newDatabase(), async ({ database, proxy }) => {
    await fill(database)
    expect(proxy.made).toBe(CONNECTIONS)
    proxy.silence()
    const asked = Array.from({ length: 2 * CONNECTIONS }, () => outcome(database.db.execute(sql`select 1`)))
    const held = outcome(database.db.transaction(tx => tx.execute(sql`select 1`)))
    for (const error of [...(await Promise.all(asked)), await held])
      expect(error instanceof Error && String(error.cause ?? error)).toContain('CONNECTION_CLOSED')
    expect(await database.client`select 1 as one`).toHaveLength(1)
    await until('the silent ones to be gone', () => proxy.silent === 0)
  })
})

test('one that is silent takes those with it that nobody uses, and the one that listens listens again', async () => {
  await withProxy(await newDatabase(), async ({ database, proxy, direct }) => {
    const heard: string[] = []
    await database.jobs.listen('bell', word => heard.push(word))
    await fill(database)
    proxy.silence()
    expect(await outcome(database.client`select 1`)).toBeInstanceOf(Error)
    await until('the silent ones to be gone', () => proxy.silent === 0)
    await until('the bell to be heard', async () => {
      await direct`select pg_notify('bell', 'again')`
      return heard.length > 0
    })
  })
})

test('a connection that was told to end and cannot say so is closed, and the pool has it again', async () => {
  const url = await newDatabase()
  await using proxy = await SilentProxy.start(Number(new URL(url).port))
  const pool = postgres(url, { host: '127.0.0.1', port: proxy.port, max: 1, idle_timeout: 0.05 })
  try {
    expect(await pool`select 1 as one`).toHaveLength(1)
    proxy.silence()
    await until('it to be told', () => pool.states().some(({ isEnding }) => isEnding))
    const noQuestion = () => Promise.reject(new Error('nothing is asked'))
    await until('it to be closed', async () => {
      await dropSilent([pool], 100, noQuestion)
      return pool.states().length === 0
    })
    expect(await pool`select 1 as one`).toHaveLength(1)
  } finally {
    await pool.end({ timeout: 1 })
  }
})

test('a statement that the server works on is not given up, however long it takes, nor what waits behind it', async () => {
  await withProxy(await newDatabase(), async ({ database, proxy }) => {
    await fill(database)
    const long = Array.from({ length: CONNECTIONS }, () => outcome(database.client`select pg_sleep(3)`))
    const behind = outcome(database.client`select 1`)
    await until('the server to be asked', () => proxy.made > CONNECTIONS)
    for (const one of [...long, behind]) expect(await one).toBe('answered')
  })
})

test('who takes his time with the rows of a cursor keeps his connection', async () => {
  await withProxy(await newDatabase(), async ({ database }) => {
    let rows = 0
    const read = database.client.begin(async tx => {
      for await (const some of tx<{ n: number }[]>`select n from generate_series(1, 4) n`.cursor(2)) {
        // By a statement on another connection, for longer than silence is borne.
        if (rows === 0) await database.client`select pg_sleep(2.5)`
        rows += some.length
      }
    })
    expect(await outcome(read)).toBe('answered')
    expect(rows).toBe(4)
  })
})

test('readiness is refused while connections of the pool are silent, also where a new one is answered', async () => {
  const url = await newHubDatabase()
  await using proxy = await SilentProxy.start(Number(new URL(url).port))
  const through = new URL(url)
  through.port = String(proxy.port)
  // Nothing is given up in this test.
  const database = openDatabase(through.href, CONNECTIONS, { silentMs: 600_000, everyMs: 600_000 })
  try {
    expect(await isMigrated(database.client)).toBe(true)
    const busy = outcome(database.client`select pg_sleep(3)`)
    await until('it to be long', () => database.client.states().some(({ waitedMs }) => waitedMs > 2000))
    expect(await isMigrated(database.client)).toBe(true)
    expect(await busy).toBe('answered')
    proxy.silence()
    void outcome(database.client`select 1`)
    await until('it to be silent', () => database.client.states().some(({ waitedMs }) => waitedMs > 2000))
    await expect(isMigrated(database.client)).rejects.toThrow()
  } finally {
    for (const { lose } of database.client.states()) lose()
    await database.close()
  }
})
