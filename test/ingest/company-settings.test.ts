import { afterEach, beforeEach, expect, test } from 'bun:test'
import pino from 'pino'
import { CompanySettingsCache } from '../../apps/collector/hub-link/company-settings.ts'
import { HubClient } from '../../apps/collector/hub-link/hub-client.ts'
import { until } from '../support/until.ts'
import { hubToken, id, ScriptedHub } from './scripted-hub.ts'

const companyId = id('company')
const clock = { nowMs: 0 }
let hub: ScriptedHub
let cache: CompanySettingsCache
let days: number | null = 30
const asked = () => hub.to(`/settings/${companyId}`).length

beforeEach(() => {
  hub = new ScriptedHub()
  clock.nowMs = 1_795_000_000_000
  days = 30
  hub.script = ({ path }) =>
    path.startsWith('/settings/')
      ? hub.ok({
          company_id: companyId,
          group_down_min: 3,
          group_down_ratio: 0.5,
          group_down_window_seconds: null,
          metrics_retention_days: days,
          metrics_retention_previous_days: null,
          metrics_retention_grace_until: '2026-12-01T00:00:00Z',
        })
      : null
  const client = new HubClient({
    url: hub.url,
    token: hubToken,
    collectorId: null,
    isPlainAllowed: false,
    log: pino({ level: 'silent' }),
    nowMs: Date.now,
    onClockSkew: () => {},
  })
  cache = new CompanySettingsCache(client, 300_000, () => clock.nowMs)
})
afterEach(() => hub.stop())

test('[SYNC-035] settings of a company are asked once in five minutes', async () => {
  expect(await cache.get(companyId)).toEqual({
    groupDownMin: 3,
    groupDownRatio: 0.5,
    groupDownWindowSeconds: null,
    retentionDays: 30,
    previousDays: null,
    graceUntilMs: Date.parse('2026-12-01T00:00:00Z'),
  })
  clock.nowMs += 299_999
  await cache.get(companyId)
  expect(asked()).toBe(1)
  clock.nowMs += 1
  await Promise.all([cache.get(companyId), cache.get(companyId)])
  expect(asked()).toBe(2)
})

test('[SYNC-036] after an error the last known answer holds, and the hub is asked again after 30 s', async () => {
  await cache.get(companyId)
  await hub.stop()
  clock.nowMs += 300_000
  expect((await cache.get(companyId))?.retentionDays).toBe(30)
  hub.restart()
  days = 7
  clock.nowMs += 29_999
  expect((await cache.get(companyId))?.retentionDays).toBe(30)
  clock.nowMs += 1
  expect((await cache.get(companyId))?.retentionDays).toBe(7)
})

test('a company that the hub never told of has no settings', async () => {
  hub.script = () => hub.error(500, 'server_error')
  expect(await cache.get(companyId)).toBeNull()
  expect(await cache.fresh(companyId)).toBeNull()
})

test('[SYNC-037] a reload-settings call makes the next use ask, even when an older answer is still on its way', async () => {
  await cache.get(companyId)
  days = 7
  cache.clear()
  expect((await cache.get(companyId))?.retentionDays).toBe(7)

  const { script } = hub
  let release = () => {}
  const held = new Promise<void>(settle => {
    release = settle
  })
  hub.script = async request => {
    const answer = await script(request)
    await held
    return answer as Response
  }
  clock.nowMs += 300_000
  const calls = asked()
  const old = cache.get(companyId)
  await until('the old call is on its way', () => asked() > calls)
  days = 90
  hub.script = script
  cache.clear()
  expect((await cache.get(companyId))?.retentionDays).toBe(90)
  release()
  expect((await old)?.retentionDays).toBe(7)
  expect((await cache.get(companyId))?.retentionDays).toBe(90)
})
