// The file of the evaluation: what an older program left in it is taken over.
import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EvaluationStore } from '../../apps/collector/store/evaluation-store.ts'
import { company, RULE_ID, ruleRecord } from '../support/rule-record.ts'

const directories: string[] = []
afterAll(() => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'svc-evaluation-'))
  directories.push(directory)
  return directory
}

test('a file of format 1 is taken over: every shard has its keys, and the rules that were in force are known', () => {
  const directory = newDirectory()
  const before = new Database(join(directory, 'evaluation.db'), { create: true })
  before.run('CREATE TABLE series_keys (full_key TEXT PRIMARY KEY) WITHOUT ROWID')
  before.run("INSERT INTO series_keys VALUES ('cpu_usage_percent'), ('mem_used_percent')")
  before.run(`CREATE TABLE applied_rules (thread INTEGER NOT NULL, company_id TEXT NOT NULL, since INTEGER NOT NULL,
    rules TEXT NOT NULL, PRIMARY KEY (thread, company_id)) WITHOUT ROWID`)
  const rule = ruleRecord({ sync_version: 4 })
  before.query('INSERT INTO applied_rules VALUES (1, ?, 4, ?)').run(company, JSON.stringify([rule]))
  before.run('PRAGMA user_version = 1')
  before.close()
  const store = new EvaluationStore(directory, directory)
  expect(store.keys(0)).toEqual(['cpu_usage_percent', 'mem_used_percent'])
  expect(store.keys(63)).toEqual(['cpu_usage_percent', 'mem_used_percent'])
  expect(store.ruleNotes(1)).toEqual([{ position: 0, since: 4, ruleId: RULE_ID, before: null, after: rule }])
  expect(store.ruleNotes(0)).toEqual([])
  store.close()
})

test('a file of a newer format is refused, with both formats in the message', () => {
  const directory = newDirectory()
  new EvaluationStore(directory, directory).close()
  const file = new Database(join(directory, 'evaluation.db'))
  file.run('PRAGMA user_version = 9')
  file.close()
  expect(() => new EvaluationStore(directory, directory)).toThrow(
    /it is of format 9, this program knows 2; use the newer/,
  )
})

test('notes of rules go when every snapshot has passed them; the last of a rule stays without what was before it', () => {
  const directory = newDirectory()
  const store = new EvaluationStore(directory, directory)
  const first = ruleRecord({ sync_version: 1 })
  const second = ruleRecord({ sync_version: 2 })
  const third = ruleRecord({ sync_version: 3 })
  const note = { ruleId: RULE_ID }
  store.keepRules(0, [{ ...note, position: 10, since: 2, before: first, after: second }])
  store.keepRules(0, [{ ...note, position: 20, since: 3, before: second, after: third }])
  store.passRules(0, 9)
  expect(store.ruleNotes(0).map(({ position }) => position)).toEqual([10, 20])
  store.passRules(0, 20)
  expect(store.ruleNotes(0)).toEqual([{ ...note, position: 0, since: 3, before: null, after: third }])
  store.close()
})
