import { afterAll, expect, test } from 'bun:test'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { bringUpToDate } from '../../apps/hub/hub.ts'
import { openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { makeHubRole } from '../../apps/hub/platform/db/hub-role.ts'
import { startPostgres } from '../../apps/standalone/postgres.ts'
import { findPrograms, programsFor } from '../../apps/standalone/postgres-programs.ts'

const root = mkdtempSync(join(tmpdir(), 'embedded-postgres-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

test('the pid file of a restored copy is of no server: it is neither taken for one that is ready, nor is its process stopped', async () => {
  const directory = join(root, 'postgres')
  const start = () => startPostgres(directory, 'a-password', join(root, 'postgres.log'))
  const first = await start()
  const pidFile = join(directory, 'postmaster.pid')
  const lines = readFileSync(pidFile, 'utf8').split('\n')
  expect(lines[7]?.trim()).toBe('ready')
  await first.stop()

  // As in a copy that was made while it ran, restored where another process has that number.
  const innocent = Bun.spawn(['sleep', '600'])
  try {
    writeFileSync(pidFile, [String(innocent.pid), ...lines.slice(1)].join('\n'))
    const second = await start()
    const sql = new SQL(second.url)
    expect(await sql`select 1 as one`.values()).toEqual([[1]])
    await sql.close()
    expect(innocent.exitCode).toBeNull()
    expect(innocent.killed).toBe(false)
    process.kill(innocent.pid, 0)
    await second.stop()
  } finally {
    innocent.kill()
    await innocent.exited
  }
}, 120_000)

/** Why a statement is refused; null when it is not. */
async function refusalOf(url: string, statement: string): Promise<string | null> {
  const sql = new SQL(url)
  try {
    await sql.unsafe(statement)
    return null
  } catch (error) {
    return String(error)
  } finally {
    await sql.close()
  }
}

test("the hub's role is no superuser: it reads no file of the system and runs no program", async () => {
  const server = await startPostgres(join(root, 'role'), 'a-password', join(root, 'role.log'))
  try {
    const url = await makeHubRole(server.url, "it's a password")
    for (const statement of [
      "select pg_read_file('/etc/passwd')",
      "create table t (line text); copy t from program 'id'",
      "select lo_import('/etc/passwd')",
      "copy (select 1) to '/tmp/written'",
      'alter role hub superuser',
      'set role svc',
      "create function f() returns int language c as '/tmp/x.so'",
    ])
      expect([statement, await refusalOf(url, statement)]).toEqual([
        statement,
        expect.stringMatching(/permission denied|must be superuser|only roles with|superuser privilege/i),
      ])
    expect(
      await refusalOf(
        url,
        'create schema of_its_own; create table of_its_own.t (id int); drop schema of_its_own cascade',
      ),
    ).toBeNull()
  } finally {
    await server.stop()
  }
}, 120_000)

test('a database that a hub filled as superuser is handed over whole, and the hub goes on with it', async () => {
  const directory = join(root, 'earlier')
  const server = await startPostgres(directory, 'a-password', join(root, 'earlier.log'))
  try {
    const before = openDatabase(server.url, 2)
    await bringUpToDate(before)
    await before.client`insert into companies (id, name, slug, plan_code)
      values (gen_random_uuid(), 'Kept', 'kept', 'dedicated')`
    await before.client.unsafe(`
      create sequence alone; create view seen as select 1 as one; create type mood as enum ('good');
      create domain short as text; create type pair as (a int, b int); create function two() returns int language sql as 'select 2'`)
    await before.close()
    const url = await makeHubRole(server.url, 'first')
    expect(await makeHubRole(server.url, 'second')).not.toBe(url)
    const after = openDatabase(url.replace('first', 'second'), 2)
    // What an extension brought stays with it.
    const left = await after.client`
      select 'relation ' || relname as what from pg_class where relowner = 'svc'::regrole and relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
        and not exists (select 1 from pg_depend d where d.objid = pg_class.oid and d.deptype = 'e')
      union all select 'routine ' || proname from pg_proc where proowner = 'svc'::regrole and pronamespace::regnamespace::text !~ '^(pg_|information_schema)'
        and not exists (select 1 from pg_depend d where d.objid = pg_proc.oid and d.deptype = 'e')
      union all select 'type ' || typname from pg_type where typowner = 'svc'::regrole and typnamespace::regnamespace::text !~ '^(pg_|information_schema)'
        and not exists (select 1 from pg_depend d where d.objid in (pg_type.oid, pg_type.typelem) and d.deptype = 'e')
      union all select 'schema ' || nspname from pg_namespace where nspowner = 'svc'::regrole and nspname !~ '^(pg_|information_schema)'`
    expect(left.map(row => row.what)).toEqual([])
    expect(await bringUpToDate(after)).toEqual([])
    const kept = await after.client`update companies set name = 'Kept on' where name = 'Kept' returning name`
    expect(kept.map(row => row.name)).toEqual(['Kept on'])
    await after.client.unsafe(
      'alter table companies add column trial int; alter table companies drop column trial; drop view seen; drop type mood',
    )
    await after.close()
  } finally {
    await server.stop()
  }
}, 120_000)

test('as root the server has no capability and no way to more, below folders that only root may enter', async () => {
  const above = join(root, 'of-root')
  mkdirSync(above, { mode: 0o700 })
  const directory = join(above, 'postgres')
  const server = await startPostgres(directory, 'a-password', join(root, 'of-root.log'))
  try {
    expect(statSync(above).mode & 0o777).toBe(0o700)
    expect(readdirSync(above)).toEqual(['postgres'])
    const pid = Number(readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')[0])
    const facts = new Map(
      readFileSync(`/proc/${pid}/status`, 'utf8')
        .split('\n')
        .map(line => line.split(':\t') as [string, string]),
    )
    for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb'])
      expect([name, facts.get(name)]).toEqual([name, '0'.repeat(16)])
    expect(facts.get('Uid')?.split('\t')[1]).toBe(String(statSync(directory).uid))
    expect(facts.get('Uid')?.split('\t')[1]).not.toBe('0')
    // What its user may not read the superuser of the database may not either.
    const secret = join(above, 'secret')
    writeFileSync(secret, 'secret', { mode: 0o600 })
    if (process.getuid?.() === 0)
      expect(await refusalOf(server.url, `select pg_read_file('${secret}')`)).toContain('denied')
    // Work that reaches for files by name: a checkpoint, a table space of the default, a sort on disk.
    expect(
      await refusalOf(
        server.url,
        "create table t as select generate_series(1, 200000) n; set work_mem = '64kB'; select * from t order by n desc limit 1; checkpoint",
      ),
    ).toBeNull()
  } finally {
    await server.stop()
  }
  const again = await startPostgres(directory, 'a-password', join(root, 'of-root.log'))
  expect(await refusalOf(again.url, 'drop table t')).toBeNull()
  await again.stop()
}, 120_000)

test('programs below folders that only root may enter are copied to where their user can run them', () => {
  const native = findPrograms()
  const copies = join(root, 'copies')
  if (process.getuid?.() !== 0) {
    expect(programsFor(null, native, copies).postgres).toBe(join(native, 'bin/postgres'))
    return
  }
  const hidden = join(root, 'hidden')
  mkdirSync(hidden, { mode: 0o700 })
  cpSync(native, join(hidden, 'native'), { recursive: true, verbatimSymlinks: true })
  // The folders of the system above are open to all; that of this test is root's.
  chmodSync(root, 0o755)
  const nobody = { uid: 65_534, gid: 65_534 }
  const { postgres } = programsFor(nobody, join(hidden, 'native'), copies)
  expect(postgres.startsWith(copies)).toBe(true)
  const run = () =>
    Bun.spawnSync(['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', postgres, '--version'])
  expect(run().stdout.toString()).toContain('PostgreSQL')
  expect(programsFor(nobody, join(hidden, 'native'), copies).postgres).toBe(postgres)
  expect(readdirSync(copies).length).toBe(1)
  // Somebody else's folder is not taken for root's.
  chmodSync(join(copies, readdirSync(copies)[0]!), 0o777)
  expect(() => programsFor(nobody, join(hidden, 'native'), copies)).toThrow("is not root's own")
})

test('data that were half made are made anew, and what is none is left alone', async () => {
  const directory = join(root, 'half')
  mkdirSync(`${directory}.new`, { recursive: true })
  writeFileSync(join(`${directory}.new`, 'PG_VERSION'), '18')
  const server = await startPostgres(directory, 'a-password', join(root, 'half.log'))
  await server.stop()
  expect(existsSync(`${directory}.new`)).toBe(false)
  const other = join(root, 'other')
  mkdirSync(other)
  writeFileSync(join(other, 'mine'), 'kept')
  await expect(startPostgres(other, 'a-password', join(root, 'other.log'))).rejects.toThrow(
    'holds something that is none',
  )
  expect(readdirSync(other)).toEqual(['mine'])
}, 120_000)
