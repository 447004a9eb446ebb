// The directory of the state: one matcher at a time, and none that is older than what it holds.
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SettingsRows } from '../../../apps/matcher/state/company-settings.ts'
import {
  ensureStateDir,
  lockState,
  openStateDatabase,
  STATE_FILE,
  STATE_FORMAT,
} from '../../../apps/matcher/state/state-database.ts'

const freshDir = (): string => {
  const dir = join(mkdtempSync(join(tmpdir(), 'matcher-state-')), 'data')
  ensureStateDir(dir)
  return dir
}

test('[MAT-237] a lock refuses a second matcher on one data directory, and is given back', () => {
  const dir = freshDir()
  const first = lockState(dir)
  expect(() => lockState(dir)).toThrow('another matcher uses this data directory')
  first.release()
  lockState(dir).release()
})

test('[MAT-237] a directory of a newer format is refused untouched', () => {
  const dir = freshDir()
  openStateDatabase(dir).close()
  const path = join(dir, STATE_FILE)
  const newer = new Database(path)
  newer.run(`PRAGMA user_version = ${STATE_FORMAT + 1}`)
  newer.run('PRAGMA wal_checkpoint(TRUNCATE)')
  newer.close()
  const before = readFileSync(path)
  expect(() => openStateDatabase(dir)).toThrow(
    `is of format ${STATE_FORMAT + 1} and this program knows ${STATE_FORMAT}`,
  )
  expect(readFileSync(path).equals(before)).toBe(true)
})

test('a damaged state, or a folder in its place, is refused with the name of its file and a way out, untouched', () => {
  const dir = freshDir()
  openStateDatabase(dir).close()
  const path = join(dir, STATE_FILE)
  const whole = readFileSync(path)
  const refuses = (bytes: Buffer, reason: string): void => {
    writeFileSync(path, bytes)
    expect(() => openStateDatabase(dir)).toThrow(`cannot open the state ${path}: ${reason}; keep this data directory`)
    expect(readFileSync(path).equals(bytes)).toBe(true)
  }
  refuses(Buffer.concat([Buffer.alloc(40, 7), whole.subarray(40)]), 'file is not a database')
  refuses(
    Buffer.concat([whole.subarray(0, 100), Buffer.alloc(4000, 7), whole.subarray(4100)]),
    'database disk image is malformed',
  )
  const other = freshDir()
  mkdirSync(join(other, STATE_FILE))
  expect(() => openStateDatabase(other)).toThrow(
    `cannot open the state ${join(other, STATE_FILE)}: it is a folder; keep`,
  )
})

test('a state from before a column was added opens, keeps its rows, and has the column', () => {
  const dir = freshDir()
  const first = openStateDatabase(dir)
  first.run('ALTER TABLE settings DROP COLUMN min_interval_hours')
  first.run("INSERT INTO settings VALUES ('c', 3, 1, 12, 7, NULL)")
  first.close()
  const second = openStateDatabase(dir)
  const settings = new SettingsRows(second)
  expect(settings.get('c')).toMatchObject({ version: 3, scanIntervalHours: 12, minIntervalHours: 12 })
  settings.put({ ...settings.get('c')!, minIntervalHours: 6 }, 8)
  expect(settings.get('c')).toMatchObject({ scanIntervalHours: 12, minIntervalHours: 6 })
  second.close()
})

test('the state is readable by its owner only, and opens again with what it holds', () => {
  const dir = freshDir()
  const first = openStateDatabase(dir)
  first.run("INSERT INTO meta VALUES ('current', '7')")
  first.close()
  expect(statSync(join(dir, STATE_FILE)).mode & 0o777).toBe(0o600)
  expect(statSync(dir).mode & 0o777).toBe(0o700)
  const second = openStateDatabase(dir)
  expect(second.query("SELECT value FROM meta WHERE key = 'current'").get()).toEqual({ value: '7' })
  second.close()
})
