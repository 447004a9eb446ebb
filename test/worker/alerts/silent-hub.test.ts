import { expect, setDefaultTimeout, test } from 'bun:test'
import { id } from '../../ingest/scripted-hub.ts'
import { until } from '../../support/until.ts'
import { adminToken, ruleRecord, serverOf, WorkerRig } from '../rig.ts'

setDefaultTimeout(60_000)

test('a hub that takes calls and never answers does not hold the stop; the event is sent after the next start', async () => {
  const company = id('silent hub company')
  // Far longer than the test may take.
  const rig = new WorkerRig({ hubTimeoutMs: 600_000, keys: { 'alerting.rules_sync_interval': '200ms' } })
  const server = serverOf(company, 'one')
  rig.hub.feeds.rules!.push(ruleRecord(company))
  await rig.start()
  const unanswered: ((response: Response) => void)[] = []
  rig.hub.script = () => new Promise<Response>(resolve => void unanswered.push(resolve))
  await rig.swap(server, 90)
  await until('the event and a pull to hang', () => {
    const paths = rig.hub.requests.slice(-unanswered.length).map(request => request.path)
    return paths.includes('/events') && paths.includes('/rules')
  })
  await rig.stop()
  rig.hub.script = () => null
  for (const answer of unanswered) answer(rig.hub.ok({}))
  await rig.start()
  await until('the event', () => rig.typesOf(server).length > 0)
  expect(rig.typesOf(server)).toEqual(['alert.opened'])
  await rig.close()
})

test('[SYNC-034] a reload call of which the hub keeps the answer gets 503 with Retry-After before its caller gives up', async () => {
  const rig = new WorkerRig({ hubTimeoutMs: 600_000 })
  await rig.start()
  const unanswered: ((response: Response) => void)[] = []
  rig.hub.script = () => new Promise<Response>(resolve => void unanswered.push(resolve))
  const answer = await fetch(`${rig.running.adminUrl}/internal/v1/reload/rules`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminToken}` },
    // The hub waits so long for it.
    signal: AbortSignal.timeout(10_000),
  })
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
  rig.hub.script = () => null
  for (const resolve of unanswered) resolve(rig.hub.ok({ rules: [], next_since: 0, more: false }))
  expect((await rig.admin('POST', '/reload/rules')).status).toBe(202)
  await rig.close()
})
