// A reload call at one of several workers: what its 202 promises.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { redisKeys, STREAM_WORKER } from '../../apps/collector/store/redis/redis-keys.ts'
import { RedisQuestions } from '../../apps/collector/store/redis/redis-questions.ts'
import { shardOfServer } from '../../core/bus/shard-of-server.ts'
import { id } from '../ingest/scripted-hub.ts'
import { until } from '../support/until.ts'
import { ruleRecord } from '../worker/rig.ts'
import { serverOf } from './processes.ts'
import { adminToken, type TestWorker, Workers } from './workers.ts'

setDefaultTimeout(90_000)

const fleetOf = (name: string) => Array.from({ length: 6 }, (_, index) => serverOf(id(name), `server ${index}`))
const early = fleetOf('company of the start')
const late = fleetOf('company of two workers')
let site: Workers
let first: TestWorker

const reload = (worker: TestWorker, feed: string): Promise<Response> =>
  fetch(`${worker.running.adminUrl}/internal/v1/reload/${feed}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}` },
  })

beforeAll(async () => {
  site = await Workers.open()
  site.addServers([...early, ...late])
})
afterAll(() => site.close())

/** One sample of each server after the reload of a rule for them: each opens an alert, or none ever will. */
async function judgedFromTheReloadOn(fleet: typeof early): Promise<void> {
  site.hub.feeds.rules!.push(ruleRecord(fleet[0]!.companyId))
  expect((await reload(first, 'rules')).status).toBe(202)
  await site.send(fleet, 90)
  await until('an alert of each', () => fleet.every(server => site.typesOf(server).join() === 'alert.opened'))
}

test('[SYNC-034] a reload right after the start: the first sample after its 202 is judged by the new rule', async () => {
  first = await site.start()
  await judgedFromTheReloadOn(early)
})

test('[SYNC-034] a reload at one of two workers: the first sample after its 202 is judged by the new rule in the shards of both', async () => {
  await until('the first to have every shard', async () => (await site.shares()) === '64')
  await site.start()
  await until('the shards to be shared out', async () => (await site.shares()) === '32,32')
  expect(new Set(late.map(server => shardOfServer(server.serverId))).size).toBeGreaterThan(3)
  await judgedFromTheReloadOn(late)
})

test('[SYNC-034] a reload while the hub is away answers 503 and says when to call again', async () => {
  await site.hub.stop()
  const answer = await reload(first, 'rules')
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
  site.hub.restart()
  expect((await reload(first, 'rules')).status).toBe(202)
})

test('a worker that is gone is not waited for by who asks the others, nor is one that has nothing to say', async () => {
  const keys = redisKeys('questions:')
  const errors: string[] = []
  const open = (owner: string, answer: unknown) =>
    new RedisQuestions(
      site.redis,
      keys,
      owner,
      async () => answer,
      cause => errors.push(cause),
    )
  const [asker, silent, other, gone] = [open('a', 1), open('b', null), open('c', 3), open('d', 4)]
  // As it is until the time of their leases is over.
  for (const owner of ['a', 'b', 'c', 'd'])
    await site.redis.zadd(keys.workers, Date.now() + 10_000, `${owner}${STREAM_WORKER}`)
  const hearers = async () => Number((await site.redis.pubsub('NUMSUB', keys.questions))[1])
  await until('all to listen', async () => (await hearers()) === 4)
  gone!.close()
  await until('the death to be known', async () => (await hearers()) === 3)
  const startedMs = performance.now()
  expect(await asker!.ask({ kind: 'counts' }, 'all')).toEqual([3])
  expect(await asker!.ask({ kind: 'online', companyId: id('x') }, 'all')).toEqual([3])
  other!.close()
  await until('the end to be known', async () => (await hearers()) === 2)
  const untilMs = performance.now()
  expect(await asker!.ask({ kind: 'alerting', serverId: id('x') }, 'first')).toEqual([])
  // Each of them waits a second for whoever does not answer.
  expect(performance.now() - startedMs).toBeLessThan(900)
  expect(performance.now() - untilMs).toBeLessThan(900)
  silent!.close()
  asker!.close()
  expect(errors).toEqual([])
})
