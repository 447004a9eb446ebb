import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { startPostgres } from '../../apps/standalone/postgres.ts'

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
}, 60_000)
