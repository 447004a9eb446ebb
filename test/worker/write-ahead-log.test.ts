import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { useWriteAheadLog } from '../../apps/collector/store/write-ahead-log.ts'

test('[BUS-004] two processes that make one file side by side both open it', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'write-ahead-log-')), 'made.sqlite')
  const holder = Bun.spawn(['bun', join(import.meta.dir, 'lock-holder.ts'), path], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const reader = holder.stdout.getReader()
  expect(new TextDecoder().decode((await reader.read()).value)).toContain('held')
  const database = new Database(path, { create: true, strict: true })
  useWriteAheadLog(database)
  expect(database.query('SELECT count(*) AS made FROM made').get()).toEqual({ made: 0 })
  expect(database.query('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
  database.close()
  expect(await holder.exited).toBe(0)
})
