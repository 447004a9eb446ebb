// Connections to the database that end in the middle of their work, as at its restart: the hub goes on, what was asked
// meanwhile is told to come again, and half a transaction is never kept.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import postgres from 'postgres'
import { openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { newDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { type Tenant, TestHub } from './hub-harness.ts'

setDefaultTimeout(60_000)
const ROUNDS = 15
const CALLS_AT_ONCE = 24
let hub: TestHub
let tenant: Tenant
let killer: postgres.Sql

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  killer = postgres(hub.databaseUrl, { max: 1, onnotice: () => {} })
})
afterAll(async () => {
  await killer.end()
  await hub.stop()
})

const endAll = (client: postgres.Sql) => client`
  select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()`

test('while connections to the database are lost, requests get their answer or 503, and the hub goes on', async () => {
  const statuses = new Map<number, number>()
  let isOver = false
  let names = 0
  const made: string[] = []
  const caller = async (index: number): Promise<void> => {
    while (!isOver) {
      const name = `server-${++names}`
      const { status } =
        index % 3 === 0
          ? await tenant.call('GET', '/servers')
          : await tenant.call('POST', '/servers', { name, hostname: `${name}.example.net` })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status === 201) made.push(name)
    }
  }
  const callers = Array.from({ length: CALLS_AT_ONCE }, (_, index) => caller(index))
  for (let round = 0; round < ROUNDS; round++) {
    const before = statuses.get(201) ?? 0
    await until('servers to be made again', () => (statuses.get(201) ?? 0) > before)
    await endAll(killer)
  }
  isOver = true
  await Promise.all(callers)
  expect([...statuses.keys()].sort()).toEqual([200, 201, 503])
  const stored = await killer<{ name: string }[]>`select name from servers`
  expect(made.filter(name => !stored.some(row => row.name === name))).toEqual([])
})

test('a query that follows one which failed, or was lost, between its rows has its own rows and no more', async () => {
  const url = await newDatabase()
  const database = openDatabase(url, 1)
  const other = postgres(url, { max: 1 })
  const one = () => database.db.execute<{ one: number }>(sql`select 1 as one`)
  try {
    for (const failing of [sql`select 6 / (3 - n) as x from generate_series(1, 5) n`, sql`select 1 / 0`]) {
      await expect(Promise.resolve(database.db.execute(failing))).rejects.toThrow()
      expect([...(await one())]).toEqual([{ one: 1 }])
    }
    // Enough rows that the first ones are sent before the last is made, which takes for ever.
    const slow = sql`select repeat('x', 1000) as x, case when n > 1000 then pg_sleep(600) end from generate_series(1, 1001) n`
    const lost = database.db.execute(slow).then(
      () => null,
      error => error,
    )
    await until('the rows to be on their way', async () => {
      const waiting = await other`select 1 from pg_stat_activity where wait_event = 'PgSleep'`
      return waiting.length > 0
    })
    await endAll(other)
    expect(await lost).toBeInstanceOf(Error)
    expect([...(await until('the pool to answer', () => one().catch(() => null)))]).toEqual([{ one: 1 }])
  } finally {
    await Promise.all([database.close(), other.end()])
  }
})

test('what a transaction asks for after its connection was lost is not done, also when the connection is there again', async () => {
  const url = await newDatabase()
  const database = openDatabase(url, 1)
  const other = postgres(url, { max: 1 })
  try {
    await other`create table kept (id integer)`
    const asked = database.db.transaction(async tx => {
      await tx.execute(sql`insert into kept values (1)`)
      await endAll(other)
      // The pool has one connection: it is the same one that is made anew.
      await until('the connection to be there again', () =>
        database.db.execute(sql`select 1`).then(
          () => true,
          () => false,
        ),
      )
      await tx.execute(sql`insert into kept values (2)`)
    })
    await expect(asked).rejects.toThrow()
    expect(await other`select id from kept`).toHaveLength(0)
  } finally {
    await Promise.all([database.close(), other.end()])
  }
})

test('a reserved connection that is lost refuses what follows, and the pool has it again', async () => {
  const url = await newDatabase()
  const database = openDatabase(url, 1)
  const other = postgres(url, { max: 1 })
  try {
    const reserved = await database.client.reserve()
    await reserved`create table held (id integer)`
    await endAll(other)
    await expect(reserved`insert into held values (1)`.execute()).rejects.toThrow()
    await expect(reserved`insert into held values (2)`.execute()).rejects.toThrow()
    reserved.release()
    const rows = await until('the pool to answer', () => database.client`select id from held`.catch(() => null))
    expect(rows).toHaveLength(0)
  } finally {
    await Promise.all([database.close(), other.end()])
  }
})

/** What waits for a connection of its own gets it, or an error: the schedule would stand still for good otherwise. */
test('a reservation that waits while the last connection is lost gets the one that is made next', async () => {
  const url = await newDatabase()
  const database = openDatabase(url, 1)
  const other = postgres(url, { max: 1 })
  try {
    let held: postgres.ReservedSql | null = null
    const lost = database.client`select pg_sleep(600)`.then(
      () => false,
      () => true,
    )
    await until('the query to run', async () => {
      const running =
        await other`select 1 from pg_stat_activity where query like '%pg_sleep(600)%' and pid <> pg_backend_pid()`
      return running.length > 0
    })
    void database.client.reserve().then(reserved => {
      held = reserved
    })
    await endAll(other)
    expect(await lost).toBe(true)
    const reserved = await until('the reservation', async () => held)
    expect(await reserved`select 1 as one`).toHaveLength(1)
    reserved.release()
    expect(await database.client`select 1 as one`).toHaveLength(1)
  } finally {
    await Promise.all([database.close(), other.end()])
  }
})

test('a reservation that was refused keeps no connection', async () => {
  const url = await newDatabase()
  const later = `later_${crypto.randomUUID().replaceAll('-', '')}`
  const database = openDatabase(url.replace(/[^/]+$/, later), 1)
  const other = postgres(url, { max: 1 })
  try {
    await expect(database.client.reserve()).rejects.toThrow('does not exist')
    await other.unsafe(`create database ${later}`)
    const one = () => database.client`select 1 as one`.catch(() => null)
    expect(await until('the pool to answer', one)).toHaveLength(1)
    expect(await until('the pool to answer again', one)).toHaveLength(1)
  } finally {
    await database.close()
    await other.unsafe(`drop database if exists ${later}`)
    await other.end()
  }
})
