// An ingest process whose user of Redis has no rights on its keys: what the log says, and how often.
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { pino } from 'pino'
import { allCollectorKeys, loadCollectorConfig } from '../../apps/collector/config.ts'
import { pollRegistry } from '../../apps/collector/executable.ts'
import { openIngestStorage } from '../../apps/collector/ingest/ingest-storage.ts'
import { createCollectorMetrics } from '../../apps/collector/telemetry.ts'
import { startTestRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(60_000)
const redis = await startTestRedis()
afterAll(() => redis.close())

const rightsOn = (prefix: string): Promise<unknown> =>
  redis.client.call('ACL', 'SETUSER', 'svc', 'reset', 'on', '>secret', `~${prefix}*`, `&${prefix}*`, '+@all')

test('a prefix that the user of Redis has no rights on is said once, with the way out, until it changes', async () => {
  await rightsOn('svc:')
  const { config, faults } = loadCollectorConfig(
    allCollectorKeys,
    { 'bus.kind': 'redis', 'redis.url': redis.url.replace('//', '//svc:secret@'), 'redis.prefix': 'other:' },
    {},
  )
  expect(faults).toEqual([])
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: line => lines.push(line) })
  const storage = await openIngestStorage(config, log, createCollectorMetrics('1.0.0', 'ingest'), null)
  let polls = 0
  const poll = async (): Promise<void> => {
    polls++
    await storage.poll()
  }
  const polling = pollRegistry(10, poll, log)
  const told = () => lines.filter(line => line.includes('cannot read the registry'))
  const fivePollsMore = () => {
    const from = polls
    return until('five more polls', () => polls >= from + 5)
  }
  try {
    await fivePollsMore()
    expect(told().length).toBe(1)
    expect(told()[0]).toContain('give the user of redis.url ~other:* and &other:*')
    await rightsOn('other:')
    await until('the word that it works', () => lines.some(line => line.includes('can be read again')))
    await rightsOn('svc:')
    await until('the second word', () => told().length > 1)
    // Rights that went between two commands of a poll are told of both.
    await fivePollsMore()
    const count = told().length
    expect(count).toBeLessThan(4)
    await fivePollsMore()
    expect(told().length).toBe(count)
  } finally {
    await polling.stop()
    await storage.close()
  }
})
