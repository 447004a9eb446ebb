import { afterAll, expect, test } from 'bun:test'
import { targetMatchers } from '../../apps/hub/checks/check-target.ts'
import { bringUpToDate } from '../../apps/hub/hub.ts'
import { openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { migrateDatabase, migrations } from '../../apps/hub/platform/db/migrate.ts'
import { installQueues } from '../../apps/hub/platform/jobs/job-store.ts'
import { truncateLabelValue } from '../../core/series/labels.ts'
import { newDatabase, stopPostgres } from '../support/postgres.ts'

afterAll(stopPostgres)

const url = (end: string): string => `https://x.example/${'a'.repeat(120)}${end}`

test('[AGT-065] rules of checks with a long target, made while labels were cut, match the label with the hash after an upgrade', async () => {
  const database = openDatabase(await newDatabase(), 2)
  try {
    const { client } = database
    const before = migrations.findIndex(({ name }) => name === 'check_labels')
    await migrateDatabase(client, () => installQueues(database), migrations.slice(0, before))
    const company = crypto.randomUUID()
    await client`insert into companies (id, name, slug) values (${company}, 'x', 'x')`
    await client`update monitoring_feed_counters set value = 41 where feed = 'rules'`
    const made = new Map<string, string>()
    const add = async (
      name: string,
      type: string,
      target: Record<string, string>,
      matchers: Record<string, string>,
    ) => {
      const [check, rule] = [crypto.randomUUID(), crypto.randomUUID()]
      await client`
        insert into monitoring_checks (id, company_id, name, scope, type, target, interval_seconds, timeout_seconds)
        values (${check}, ${company}, ${name}, ${JSON.stringify({ all: true })}::text::jsonb, ${type}, ${JSON.stringify(target)}::text::jsonb, 60, 5)`
      await client`
        insert into monitoring_rules (id, company_id, name, kind, scope, metric, matchers, operator, threshold, severity, check_id, sync_version)
        values (${rule}, ${company}, ${name}, 'check', ${JSON.stringify({ all: true })}::text::jsonb, 'http_up', ${JSON.stringify(matchers)}::text::jsonb, '<', 1, 'critical',
          ${check}, 7)`
      made.set(rule, name)
    }
    const http = (name: string, target: string, label = truncateLabelValue(target)) =>
      add(name, 'http', { url: target }, { target: label })
    await http('long', url('1'))
    await http('characters', `https://x.example/${'ä'.repeat(90)}`)
    await http('exact', url('').slice(0, 128))
    await http('short', 'https://x.example/')
    await http('edited', url('3'), 'https://of-its-operator/')
    const host = `${'h'.repeat(130)}:443`
    await add('tcp', 'tcp', { target: host }, { target: truncateLabelValue(host) })
    await bringUpToDate(database)
    const rows = await client`
      select r.id, r.matchers, r.version, r.sync_version::int as number, c.type, c.target
      from monitoring_rules r join monitoring_checks c on c.id = r.check_id`
    const byName = new Map(rows.map(row => [made.get(String(row.id)), row]))
    for (const name of ['long', 'characters', 'tcp']) {
      const row = byName.get(name)!
      expect([name, row.matchers, row.version]).toEqual([name, targetMatchers(row.type, row.target), 2])
      expect(row.matchers.target).toContain('~')
    }
    for (const name of ['exact', 'short', 'edited'])
      expect([name, byName.get(name)!.version, byName.get(name)!.number]).toEqual([name, 1, 7])
    expect(byName.get('edited')!.matchers).toEqual({ target: 'https://of-its-operator/' })
    // Collectors hear of the three: numbers of the feed that nobody had.
    const numbers = ['long', 'characters', 'tcp'].map(name => Number(byName.get(name)!.number))
    expect(numbers.sort()).toEqual([42, 43, 44])
    const [counter] = await client`select value::int from monitoring_feed_counters where feed = 'rules'`
    expect(counter!.value).toBe(44)
  } finally {
    await database.close()
  }
})
