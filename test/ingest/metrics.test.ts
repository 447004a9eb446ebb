import { afterAll, beforeAll, expect, test } from 'bun:test'
import { ackOf, agentId, companyId, errorOf, type Rig, serverId, someSeries, startRig } from './rig.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig({ keys: { 'ingest.limits.metrics_burst': 1000, 'ingest.limits.metrics_per_minute': 60_000 } })
})
afterAll(() => rig.stop())

test('[ING-001] [ING-004] [ING-005] [ING-007] [ING-008] a batch is answered with an acknowledgement', async () => {
  const beforeMs = Date.now()
  const ack = await ackOf(await rig.send({ seq: 18_446_744_073_709_551_615n, series: someSeries(3) }))
  expect(ack.ackSeq).toBe(18_446_744_073_709_551_615n)
  expect(Number(ack.serverTimeMs)).toBeGreaterThanOrEqual(beforeMs)
  expect(Number(ack.serverTimeMs)).toBeLessThanOrEqual(Date.now())
  expect(ack.acceptedPoints).toBe(3)
  expect(ack.droppedPoints).toBe(0)
  expect(ack.warnings).toEqual([])
  const [batch] = await rig.published()
  expect(batch).toMatchObject({ companyId, serverId, agentId, points: 3 })
})

test('[WIRE-043] a missing and a wrong token answer 401 unauthorized', async () => {
  expect(await errorOf(await rig.call('/metrics', { method: 'POST', token: null }))).toBe('401 unauthorized')
  expect(await errorOf(await rig.send({ series: [] }, { token: 'agt_wrong' }))).toBe('401 unauthorized')
})
