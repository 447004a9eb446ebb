import { expect, setDefaultTimeout, test } from 'bun:test'
import { id } from '../../ingest/scripted-hub.ts'
import { until } from '../../support/until.ts'
import { machineOf, ruleRecord, WorkerRig } from '../rig.ts'

setDefaultTimeout(60_000)

test('a hub that takes calls and never answers does not hold the stop; the event is sent after the next start', async () => {
  const company = id('silent hub company')
  // Far longer than the test may take.
  const rig = new WorkerRig({ hubTimeoutMs: 600_000, keys: { 'alerting.rules_sync_interval': '200ms' } })
  const machine = machineOf(company, 'one')
  rig.hub.feeds.rules!.push(ruleRecord(company))
  await rig.start()
  const unanswered: ((response: Response) => void)[] = []
  rig.hub.script = () => new Promise<Response>(resolve => void unanswered.push(resolve))
  await rig.swap(machine, 90)
  await until('the event and a pull to hang', () => {
    const paths = rig.hub.requests.slice(-unanswered.length).map(request => request.path)
    return paths.includes('/events') && paths.includes('/rules')
  })
  await rig.stop()
  rig.hub.script = () => null
  for (const answer of unanswered) answer(rig.hub.ok({}))
  await rig.start()
  await until('the event', () => rig.typesOf(machine).length > 0)
  expect(rig.typesOf(machine)).toEqual(['alert.opened'])
  await rig.close()
})
