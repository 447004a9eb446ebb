// The file of the evaluation: what an older program left in it is taken over.
import { Database } from 'bun:sqlite'
import { afterAll, expect, spyOn, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EvaluationStore } from '../../apps/collector/store/file-evaluation-store.ts'
import { newTurns, WriteTurns } from '../../apps/collector/store/write-turns.ts'
import { packRule } from '../../core/alerting/rules/packed-rule.ts'
import { uuidFromText } from '../../core/series/hash.ts'
import { HAS_NAME_SPACES, onSmallDisk } from '../support/full-disk.ts'
import { company, RULE_ID, ruleRecord } from '../support/rule-record.ts'
import { until } from '../support/until.ts'
import type { CommittingThread } from './committing-thread.ts'

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
  expect(store.ruleChanges(1)).toEqual([{ position: 0, since: 4, ruleId: RULE_ID, before: null, after: rule }])
  expect(store.ruleChanges(0)).toEqual([])
  store.close()
})

test('a file of format 2 is taken over: changes of rules keep what was before and after', () => {
  const directory = newDirectory()
  const before = new Database(join(directory, 'evaluation.db'), { create: true })
  before.run(`CREATE TABLE rule_notes (id INTEGER PRIMARY KEY AUTOINCREMENT, thread INTEGER NOT NULL, position INTEGER NOT NULL,
    since INTEGER NOT NULL, rule_id TEXT NOT NULL, before TEXT, after TEXT)`)
  const [first, second] = [ruleRecord({ sync_version: 4 }), ruleRecord({ sync_version: 9 })]
  const insert = before.query(
    'INSERT INTO rule_notes (thread, position, since, rule_id, before, after) VALUES (?, ?, ?, ?, ?, ?)',
  )
  insert.run(0, 7, 9, RULE_ID, JSON.stringify(first), JSON.stringify(second))
  insert.run(1, 8, 9, RULE_ID, JSON.stringify(first), null)
  before.run('PRAGMA user_version = 2')
  before.close()
  const store = new EvaluationStore(directory, directory)
  expect(store.ruleChanges(0)).toEqual([{ position: 7, since: 9, ruleId: RULE_ID, before: first, after: second }])
  expect(store.ruleChanges(1)).toEqual([{ position: 8, since: 9, ruleId: RULE_ID, before: first, after: null }])
  store.close()
})

test('a file of a newer format is refused, with both formats in the message', () => {
  const directory = newDirectory()
  new EvaluationStore(directory, directory).close()
  const file = new Database(join(directory, 'evaluation.db'))
  file.run('PRAGMA user_version = 9')
  file.close()
  expect(() => new EvaluationStore(directory, directory)).toThrow(
    /it is of format 9, this program knows 3; use the newer/,
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
  expect(store.ruleChanges(0).map(({ position }) => position)).toEqual([10, 20])
  store.passRules(0, 20)
  expect(store.ruleChanges(0)).toEqual([{ ...note, position: 0, since: 3, before: null, after: third }])
  store.close()
  const file = new Database(join(directory, 'evaluation.db'))
  expect(file.query('SELECT name FROM rule_records').values()).toEqual([[`${RULE_ID}:3`]])
  file.close()
})

test('of a rule that was handed over packed the whole record is kept', () => {
  const directory = newDirectory()
  const store = new EvaluationStore(directory, directory)
  const ids = Array.from({ length: 1000 }, (_, index) => uuidFromText(`server ${index}`))
  const rule = ruleRecord({ scope: { ...ruleRecord({}).scope, all: false }, resolved_server_ids: ids })
  const packed = packRule(rule)
  expect(packed.resolved_server_ids).toEqual([])
  store.keepRules(0, [{ ruleId: RULE_ID, position: 1, since: 1, before: null, after: packed }])
  expect(store.ruleChanges(0)[0]?.after).toEqual(rule)
  store.close()
})

test('[EVT-026] while a thread commits without a pause, another that writes the same file waits for one commit, not for seconds', async () => {
  const directory = newDirectory()
  const turns = newTurns()
  const counts = new Int32Array(new SharedArrayBuffer(8))
  const store = new EvaluationStore(directory, directory, turns)
  const thread = new Worker(new URL('./committing-thread.ts', import.meta.url))
  const ended = new Promise(resolve => {
    thread.onmessage = resolve
  })
  thread.postMessage({ directory, turns, counts: counts.buffer } satisfies CommittingThread)
  await until('the thread to commit', () => Atomics.load(counts, 0) > 1)
  const waited: number[] = []
  while (waited.length < 15) {
    const [row] = store.nextEvents(1)
    const before = Atomics.load(counts, 0)
    store.removeEvents([row!.id])
    waited.push(Atomics.load(counts, 0) - before)
  }
  Atomics.store(counts, 1, 1)
  await ended
  // One or two each; a few more when this thread is held up between its looks at the count.
  expect(waited.reduce((sum, count) => sum + count)).toBeLessThan(60)
  store.close()
}, 60_000)

test('[EVT-026] a turn that its thread did not end is waited for once, and by nobody after that', () => {
  const shared = newTurns()
  const [tickets, later] = [new Int32Array(shared), new WriteTurns(shared)]
  Atomics.add(tickets, 0, 1)
  new WriteTurns(shared, 1).run(() => {})
  expect([...tickets]).toEqual([2, 2])
  const waited = spyOn(Atomics, 'wait')
  later.run(() => {})
  expect(waited).not.toHaveBeenCalled()
  waited.mockRestore()
})

test.skipIf(!HAS_NAME_SPACES)(
  '[SNAP-002] on a full disk the snapshot before stays in force and no part of a new one is left; a commit is made whole with room, or not at all',
  async () => {
    const directory = newDirectory()
    const script = [process.execPath, join(import.meta.dir, 'full-disk-store.ts')]
    const child = Bun.spawn(onSmallDisk(directory, 24, script), {
      env: { ...process.env, TMPDIR: directory },
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    expect([await child.exited, err]).toEqual([0, ''])
    expect(JSON.parse(out)).toEqual({
      full: { refused: [true, true, true], snapshots: ['shard-01.snapshot'], isOld: true, added: 0 },
      added: 40,
      isNew: true,
      left: 40,
    })
  },
)
