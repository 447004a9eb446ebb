import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { id } from '../../ingest/scripted-hub.ts'
import { until } from '../../support/until.ts'
import { type Json, ruleRecord, serverOf, silenceRecord, WorkerRig } from '../rig.ts'

setDefaultTimeout(60_000)
const company = id('rules company')
const other = id('rules other company')

describe('rules and silences in a running worker', () => {
  const rig = new WorkerRig({ keys: { 'alerting.silences_sync_interval': '300ms' } })
  const { hub } = rig
  const server = serverOf(company, 'one')
  let firstSilence: Record<string, unknown>

  beforeAll(async () => {
    hub.feeds.rules!.push(ruleRecord(company))
    firstSilence = silenceRecord(company, Date.now() - 60_000, Date.now() + 3_600_000)
    hub.feeds.silences!.push(firstSilence)
    await rig.start()
  })
  beforeEach(() => {
    hub.script = () => null
  })
  afterAll(() => rig.close())

  const change = (records: Record<string, unknown>[], record: Record<string, unknown>): void => {
    records.splice(0, records.length, ...records.filter(each => each.id !== record.id), record)
  }
  const reload = async (feed: 'rules' | 'silences') => {
    const { status, body } = await rig.admin('POST', `/reload/${feed}`)
    expect([status, body.data ?? body.error.code]).toEqual([202, { reload: feed, accepted: true }])
  }

  test('[SYNC-016] [SYNC-001] rules and silences are pulled at the start: the first event is marked', async () => {
    await rig.swap(server, 90)
    await until('the event', () => rig.eventsOf(server).length === 1)
    expect(rig.eventsOf(server)[0]).toMatchObject({
      type: 'alert.opened',
      suppressed: true,
      suppress_reason: 'silence',
    })
    const { rules, silences } = await rig.status()
    expect([rules.loaded, rules.firing, silences.loaded, silences.active]).toEqual([1, 1, 1, 1])
    expect(silences.since).toBe(firstSilence.sync_version)
  })

  test('[SYNC-020] [SYNC-017] [SYNC-022] a silence that is gone is gone after the interval, without any call', async () => {
    change(hub.feeds.silences!, { ...silenceRecord(company, 0, 1, { id: firstSilence.id }), deleted: true })
    await until('the silence to go', async () => (await rig.status()).silences.loaded === 0)
    await rig.swap(server, 10)
    await until('the event', () => rig.eventsOf(server).length === 2)
    expect(rig.eventsOf(server)[1]).toMatchObject({ type: 'alert.resolved', suppressed: false, suppress_reason: null })
  })

  test('[SYNC-018] [SYNC-034] a silence holds from the answer of reload-silences on', async () => {
    const now = Date.now()
    hub.feeds.silences!.push(silenceRecord(company, now - 60_000, now + 60_000, { id: id('second silence') }))
    await reload('silences')
    const next = serverOf(company, 'after the reload')
    await rig.swap(next, 90)
    await until('the event', () => rig.eventsOf(next).length === 1)
    expect(rig.eventsOf(next)[0].suppress_reason).toBe('silence')
  })

  test('a silence that cannot be read is said in the log, and the others of its pull hold', async () => {
    const now = Date.now()
    const odd = silenceRecord(company, now, now + 60_000, { id: id('odd silence'), scope: { server_ids: 5 } })
    const other = silenceRecord('another company', now, now + 60_000, { id: id('silence beside it') })
    const { loaded } = (await rig.status()).silences
    hub.feeds.silences!.push(odd, other)
    await reload('silences')
    expect((await rig.status()).silences.loaded).toBe(loaded + 1)
    const message = 'silences of the hub cannot be read (company_id, scope, starts_at or ends_at): they silence nothing'
    expect(rig.logged(message).at(-1)?.silences).toBe(1)
    for (const { id: gone } of [odd, other])
      change(hub.feeds.silences!, silenceRecord(company, 0, 1, { id: gone, deleted: true }))
    await reload('silences')
    expect((await rig.status()).silences.loaded).toBe(loaded)
  })

  test('[SYNC-019] [SYNC-008] [SYNC-015] an error in the middle of a pull keeps the old sets and cursors; the reload answers 503', async () => {
    const before = await rig.status()
    const failing = Array.from({ length: 600 }, (_, index) =>
      silenceRecord(company, 0, 1, { id: id(`page silence ${index}`) }),
    )
    const failingRules = Array.from({ length: 600 }, (_, index) =>
      ruleRecord(company, { id: id(`page rule ${index}`) }),
    )
    hub.feeds.silences!.push(...failing)
    hub.feeds.rules!.push(...failingRules)
    hub.script = ({ path, query }) =>
      (path === '/silences' && Number(query.get('since')) >= Number(failing[400]!.sync_version)) ||
      (path === '/rules' && Number(query.get('since')) >= Number(failingRules[400]!.sync_version))
        ? hub.error(500, 'server_error')
        : null
    for (const feed of ['silences', 'rules']) expect((await rig.admin('POST', `/reload/${feed}`)).status).toBe(503)
    const after = await rig.status()
    expect([after.silences.since, after.silences.loaded]).toEqual([before.silences.since, before.silences.loaded])
    expect([after.rules.since, after.rules.loaded]).toEqual([before.rules.since, before.rules.loaded])
    expect(after.silences.last_sync_error).toContain('500')
    hub.feeds.silences!.splice(-600)
    hub.feeds.rules!.splice(-600)
  })

  test('[RUL-029] [RUL-030] [RUL-031] [RUL-032] [RUL-033] [OPS-003] an invalid rule is told once a version: log, counter, status; the others run', async () => {
    const bad = (version: number) =>
      ruleRecord(other, { id: id('bad rule'), version, matchers: { nonsense: 'x' }, name: 'bad' })
    const counted = () => rig.metric('svc_rules_rejected_total{reason="matcher_label"}')
    const told = () => rig.logged('a rule of the hub is not valid and is skipped').map(line => line.version)
    hub.feeds.rules!.push(bad(1), ruleRecord(other, { id: id('good rule') }))
    await reload('rules')
    await reload('rules')
    hub.feeds.rules!.push(ruleRecord(other, { id: id('good rule two'), threshold: 60 }))
    await reload('rules')
    expect(told()).toEqual([1])
    expect(await counted()).toBe(1)
    expect(await rig.metric('svc_rules_invalid')).toBe(1)
    expect((await rig.status()).rules.invalid_rules).toEqual([
      {
        rule_id: id('bad rule'),
        company_id: other,
        version: 1,
        reason: 'matcher_label',
        message: expect.any(String),
      },
    ])
    change(hub.feeds.rules!, bad(2))
    await reload('rules')
    expect(told()).toEqual([1, 2])
    expect(await counted()).toBe(2)
    const foreign = serverOf(other, 'other')
    await rig.swap(foreign, 90)
    await until('the alerts of the good rules', () => rig.eventsOf(foreign).length === 2)
    expect(rig.failures).toEqual([])
    change(hub.feeds.rules!, ruleRecord(other, { id: id('bad rule'), version: 3, deleted: true }))
    await reload('rules')
    expect(await rig.metric('svc_rules_invalid')).toBe(0)
    expect((await rig.status()).rules.invalid).toBe(0)
  })

  test('[RUL-034] a firing rule that is edited into an invalid one closes its alert with reason rule_removed', async () => {
    const edited = serverOf(other, 'edited')
    const rule = (changes: Record<string, unknown>) =>
      ruleRecord(other, { id: id('edited rule'), metric: 'cpu_usage_percent', ...changes })
    hub.feeds.rules!.push(rule({}))
    await reload('rules')
    await rig.publish(edited, [{ metric: 'cpu_usage_percent', points: [[Date.now(), 99]] }])
    await until('the alert', () => rig.eventsOf(edited).length === 1)
    change(hub.feeds.rules!, rule({ version: 2, threshold: null }))
    await reload('rules')
    await until('its end', () => rig.eventsOf(edited).length === 2)
    expect(rig.eventsOf(edited)[1]).toMatchObject({ type: 'alert.resolved', reason: 'rule_removed' })
  })

  test('[RUL-007] a rule that lists a thousand servers covers these and no others; who leaves the list has its alert ended', async () => {
    const listing = id('company of a long list')
    const [leaving, coming] = [serverOf(listing, 'leaving'), serverOf(listing, 'coming')]
    const many = Array.from({ length: 1000 }, (_, index) => id(`server of the long list ${index}`))
    const put = async (serverId: string): Promise<void> => {
      const scope = { all: false, server_ids: [], tags: ['t'], environments: [], roles: [], datacenters: [] }
      const record = ruleRecord(listing, { scope, resolved_server_ids: [...many, serverId].sort() })
      change(hub.feeds.rules!, record)
      await reload('rules')
    }
    await put(leaving.serverId)
    for (const each of [coming, leaving]) await rig.swap(each, 90)
    await until('the alert', () => rig.typesOf(leaving).length === 1)
    await put(coming.serverId)
    await until('its end', () => rig.eventsOf(leaving)[1]?.reason === 'out_of_scope')
    for (const each of [leaving, coming]) await rig.swap(each, 95)
    await until('the alert of who came', () => rig.typesOf(coming).length === 1)
    expect(rig.typesOf(leaving)).toEqual(['alert.opened', 'alert.resolved'])
    change(hub.feeds.rules!, ruleRecord(listing, { deleted: true }))
    await reload('rules')
    await until('its end', () => rig.eventsOf(coming)[1]?.reason === 'rule_removed')
  })

  test('[SYNC-012] [SYNC-013] [SYNC-014] [SYNC-021] restarted without the hub it runs the last rules and silences, and shows them', async () => {
    const fresh = serverOf(company, 'without the hub')
    const before = await rig.status()
    await rig.stop()
    await hub.stop()
    await rig.start()
    const { rules, silences } = await rig.status()
    expect([rules.loaded, rules.since, silences.loaded, silences.since]).toEqual([
      before.rules.loaded,
      before.rules.since,
      before.silences.loaded,
      before.silences.since,
    ])
    expect(rules.last_sync_error).toContain('cannot be reached')
    expect(rig.running.hasRules()).toBe(true)
    for (const feed of ['rules', 'silences']) expect((await rig.admin('POST', `/reload/${feed}`)).status).toBe(503)
    await rig.swap(fresh, 90)
    await until('the event in the outbox', async () => (await rig.status()).outbox_depth > 0)
    hub.restart()
    await until('the event', () => rig.eventsOf(fresh).length > 0)
    expect(rig.eventsOf(fresh)[0]).toMatchObject({ type: 'alert.opened', suppress_reason: 'silence' })
  })

  test('[SNAP-003, SNAP-005, SNAP-006, SNAP-007] a restart in order loses no open alert and opens none again', async () => {
    const stays = serverOf(company, 'stays open')
    await rig.swap(stays, 90)
    await until('the alert', () => rig.typesOf(stays).length === 1)
    const { firing } = (await rig.status()).rules
    await rig.stop()
    await rig.start()
    expect((await rig.status()).rules.firing).toBe(firing)
    await rig.swap(stays, 91)
    await rig.swap(stays, 10)
    await until('its end', () => rig.typesOf(stays).length >= 2)
    expect(rig.typesOf(stays)).toEqual(['alert.opened', 'alert.resolved'])
  })

  test('[SYNC-003] [SYNC-034] started again with nothing on the bus, it still puts new rules in force', async () => {
    await rig.stop()
    await rig.start()
    const { loaded } = (await rig.status()).rules
    hub.feeds.rules!.push(ruleRecord(other, { id: id('rule on an empty bus') }))
    await reload('rules')
    expect((await rig.status()).rules.loaded).toBe(loaded + 1)
  })

  test('a snapshot that cannot be read is said in the log and counted; the journal gives its open alerts, which are neither lost nor doubled', async () => {
    const kept = serverOf(company, 'unreadable snapshot')
    await rig.swap(kept, 90)
    await until('the alert', () => rig.typesOf(kept).length === 1)
    await rig.stop()
    const directory = join(rig.directory, 'alerting', 'snapshots')
    for (let shard = 0; shard < 64; shard++) {
      const path = join(directory, `shard-${String(shard).padStart(2, '0')}.snapshot`)
      if (await Bun.file(path).exists()) writeFileSync(path, 'damaged')
    }
    await rig.start()
    const lines = rig.logged('a snapshot cannot be used; the journal gives the open alerts')
    expect(lines.length).toBeGreaterThan(0)
    expect(lines[0].fault).toMatch(/^snapshot of shard \d+ is not used: /)
    expect(await rig.metric('svc_snapshot_errors_total')).toBe(lines.length)
    expect(rig.failures).toEqual([])
    await rig.swap(kept, 10)
    await until('the end of the alert', () => rig.typesOf(kept).includes('alert.resolved'))
    expect(rig.typesOf(kept)).toEqual(['alert.opened', 'alert.resolved'])
  })

  test('[OPS-017] [BUS-001] /status names the role, and the batches that wait', async () => {
    const status: Json = await rig.status()
    expect(status.role).toBe('worker')
    expect(status.checks).toBeNull()
    await until('nothing to wait', async () => (await rig.status()).bus_lag === 0)
  })
})
