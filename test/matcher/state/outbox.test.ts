// What waits for the hub: numbers that grow, batches in order, dead letters, resyncs, purges and the bound.
import { describe, expect, test } from 'bun:test'
import { openState } from '../../../apps/matcher/state/open-state.ts'
import { eventId } from '../../../core/matching/finding-key.ts'
import { advisories, rule } from './advisories.ts'
import { companyId, FleetSite, HOUR_MS, hostId, report, scanHost, serverId, wordsOf } from './fleet-site.ts'
import { stateOptions } from './state-options.ts'

const rows = { 'debian:12 bash': [rule('CVE-1', '5.3')], 'debian:12 zlib': [rule('CVE-2', null)] }

async function site(): Promise<FleetSite> {
  const at = new FleetSite()
  await at.state.switchTo(advisories(2026112200, rows), [])
  await at.hosts(scanHost(1), scanHost(2), scanHost(3, { companyId: companyId(2) }))
  return at
}

describe('numbers of events', () => {
  test('[MAT-161] [MAT-162] seq grows strictly per host, also over a restart with the clock set back an hour', async () => {
    const at = await site()
    await at.send(1, report(['bash 5.2']))
    const nowMs = at.nowMs
    at.nowMs -= HOUR_MS
    await at.reopen()
    at.state.startWith(advisories(2026112200, rows), null)
    await at.send(1, report(['zlib 1.0']), { requestTimeMs: nowMs + 1 })
    await at.state.resync(companyId(1))
    const events = await at.deliver()
    expect(wordsOf(events)).toEqual([
      'opened bash CVE-1 5.2',
      'scanned ok 1',
      'resolved bash CVE-1 package_removed',
      'opened zlib CVE-2 1.0',
      'scanned ok 1',
      'opened zlib CVE-2 1.0',
    ])
    for (const [at_, event] of events.entries()) {
      expect(event.seq).toBeGreaterThan(events[at_ - 1]?.seq ?? nowMs - 1)
      expect(event.event_id).toBe(eventId(hostId(1), event.seq))
    }
  })

  test('[MAT-161] a restored backup goes on by the clock, asks its feeds anew and gives no number twice', async () => {
    const at = await site()
    await at.send(1, report(['bash 5.2']))
    const file = `${at.dir}-backup/state.sqlite`
    const restored = new FleetSite(`${at.dir}-backup`)
    await restored.state.close()
    await Bun.file(file).delete()
    await at.state.backup(file)
    await at.send(1, report(['zlib 1.0']))
    const first = await at.deliver()
    restored.nowMs = at.nowMs + 1_000
    restored.state = openState(
      restored.dir,
      stateOptions(() => restored.nowMs),
    )
    restored.state.startWith(advisories(2026112200, rows), null)
    expect(restored.state.feed()).toEqual({ since: 0, syncedAtMs: null })
    await restored.send(1, report(['zlib 1.0']))
    const again = await restored.deliver()
    expect(wordsOf(again, [...first, ...again])).toEqual([
      'opened bash CVE-1 5.2',
      'scanned ok 1',
      'resolved bash CVE-1 package_removed',
      'opened zlib CVE-2 1.0',
      'scanned ok 1',
    ])
    const told = new Set(first.map(({ seq }) => seq))
    expect(again.slice(2).some(({ seq }) => told.has(seq))).toBe(false)
  })
})

describe('batches', () => {
  test('[MAT-163] at most 200 events of one company, in the order of their commit, the same until they are settled', async () => {
    const at = await site()
    for (let round = 0; round < 150; round++) {
      await at.send(1 + (round % 2), report([round % 4 < 2 ? 'bash 5.2' : 'zlib 1.0']))
      await at.send(3, report([`bash 5.${round % 3}`]))
    }
    const batch = await at.state.nextBatch(companyId(1))
    expect(batch?.events).toHaveLength(200)
    expect((await at.state.nextBatch(companyId(1)))?.events).toEqual(batch!.events)
    expect(at.state.companiesWaiting()).toEqual([companyId(1), companyId(2)])
    const events = await at.deliver()
    expect(new Set(events.slice(0, 200).map(event => event.company_id)).size).toBe(1)
    for (const company of [companyId(1), companyId(2)]) {
      const own = events.filter(event => event.company_id === company)
      expect(own.map(({ occurred_at }) => occurred_at)).toEqual(own.map(({ occurred_at }) => occurred_at).sort())
    }
    expect(at.state.counters()).toMatchObject({ outboxDepth: 0, outboxBytes: 0, outboxOldestMs: null })
  })

  test('[MAT-168] later events of a finding replace none that waits', async () => {
    const at = await site()
    for (const version of ['5.0', '5.1', '5.2', '5.3']) await at.send(1, report([`bash ${version}`]))
    expect(wordsOf((await at.deliver()).filter(({ type }) => type !== 'server.scanned'))).toEqual([
      'opened bash CVE-1 5.0',
      'updated bash CVE-1 5.1',
      'updated bash CVE-1 5.2',
      'resolved bash CVE-1 package_updated',
    ])
  })

  test('[MAT-167] only the faulty event becomes a dead letter, and comes back as it was', async () => {
    const at = await site()
    await at.send(1, report(['bash 5.2', 'zlib 1.0']))
    const batch = (await at.state.nextBatch(companyId(1)))!
    const faulty = batch.events[1]!
    await at.state.settle(batch, [{ eventId: faulty.event_id, reason: '422 invalid_envelope' }])
    expect(await at.deliver()).toEqual([])
    const [letter] = at.state.deadLetters(0, 10)
    expect(letter).toMatchObject({ eventId: faulty.event_id, companyId: companyId(1), reason: '422 invalid_envelope' })
    expect(letter!.event).toEqual(faulty)
    await at.reopen()
    expect(at.state.counters().deadLetters).toBe(1)
    expect(await at.state.retryDeadLetters([letter!.id])).toBe(1)
    expect(await at.deliver()).toEqual([faulty])
    expect(await at.state.dropDeadLetters(null)).toBe(0)
  })

  test('[MAT-169] a full outbox refuses reports and drops nothing; a waiting event takes less than 200 bytes', async () => {
    const at = await site()
    await at.state.close()
    const options = { ...stateOptions(() => at.nowMs), outboxBytesMax: 4_000 }
    at.state = openState(at.dir, options)
    at.state.startWith(advisories(2026112200, rows), null)
    let kept = 0
    while ((await at.send(1, report([`bash ${kept % 5}.0`, 'zlib 1.0']))).outcome === 'kept') kept++
    const { outboxDepth, outboxBytes, isOutboxFull } = at.state.counters()
    expect(isOutboxFull).toBe(true)
    expect(outboxBytes).toBeGreaterThanOrEqual(3_600)
    expect(outboxBytes / outboxDepth).toBeLessThan(200)
    expect((await at.deliver()).filter(({ type }) => type === 'server.scanned')).toHaveLength(kept)
    expect(await at.send(1, report(['zlib 1.0']))).toMatchObject({ outcome: 'kept' })
  })
})

describe('resync', () => {
  test('[MAT-171] tells every open finding after what waits, once, with new numbers', async () => {
    const at = await site()
    await at.send(1, report(['bash 5.2', 'zlib 1.0']))
    await at.send(2, report(['bash 5.1']))
    const before = (await at.deliver()).map(({ seq }) => seq)
    await at.send(2, report(['bash 5.0']))
    expect(await at.state.resync(companyId(1))).toBe(3)
    expect(await at.state.resync(companyId(1))).toBe(3)
    await at.reopen()
    at.state.startWith(advisories(2026112200, rows), null)
    const events = await at.deliver()
    expect(wordsOf(events)).toEqual([
      'updated bash CVE-1 5.0',
      'scanned ok 1',
      'opened bash CVE-1 5.2',
      'opened zlib CVE-2 1.0',
      'opened bash CVE-1 5.0',
    ])
    expect(Math.min(...events.map(({ seq }) => seq))).toBeGreaterThan(Math.max(...before))
    expect(await at.state.resync(companyId(2))).toBe(0)
    expect(await at.deliver()).toEqual([])
  })
})

describe('purge', () => {
  test('[MAT-207] [MAT-208] inventory, findings and events go; a report of before is refused, one of after is taken', async () => {
    const at = await site()
    await at.send(1, report(['bash 5.2']))
    await at.send(2, report(['bash 5.2']))
    const batch = (await at.state.nextBatch(companyId(1)))!
    expect(at.state.isCurrent(batch)).toBe(true)
    await at.state.purge(companyId(1), serverId(1))
    await at.state.purge(companyId(1), serverId(1))
    await at.state.purge(companyId(9), null)
    expect(at.state.isCurrent(batch)).toBe(false)
    expect(at.state.packages(companyId(1), serverId(1), { q: null, after: null, limit: 9 })).toBeNull()
    expect(await at.send(1, report(['bash 5.2']), { requestTimeMs: at.nowMs - 1 })).toEqual({ outcome: 'purged' })
    expect(await at.send(1, report(['bash 5.2'], { collected_at_ms: at.nowMs - 10_000 }))).toEqual({
      outcome: 'purged',
    })
    expect((await at.deliver()).map(event => event.host_id)).toEqual([hostId(2), hostId(2)])
    await at.reopen()
    at.state.startWith(advisories(2026112200, rows), null)
    expect(await at.send(1, report(['bash 5.2']))).toMatchObject({ outcome: 'kept', open_findings: 1 })
    expect(wordsOf(await at.deliver())).toEqual(['opened bash CVE-1 5.2', 'scanned ok 1'])
  })

  test('[MAT-208] a tombstone lives 30 days', async () => {
    const at = await site()
    await at.state.purge(companyId(1), null)
    const before = { requestTimeMs: at.nowMs - 1 }
    const day = 24 * 3_600_000
    // Hosts that were enrolled since: only the tombstone says that there was a purge.
    for (const [host, days, outcome] of [
      [7, 29, 'purged'],
      [8, 2, 'kept'],
    ] as const) {
      at.nowMs += days * day
      await at.state.sweep()
      await at.hosts(scanHost(host))
      expect(await at.send(host, report(['bash 5.2']), before)).toMatchObject({ outcome })
    }
  })

  test('[MAT-209] a company that is purged within a re-match and a resync is told of no more', async () => {
    const at = await site()
    const many = Array.from({ length: 300 }, (_, number) =>
      scanHost(100 + number, { companyId: companyId(1 + (number % 2)) }),
    )
    await at.hosts(...many)
    for (const { hostId: id } of many) await at.send(Number.parseInt(id.slice(-12), 16), report(['bash 5.2']))
    await at.deliver()
    await at.state.resync(companyId(1))
    await at.state.nextBatch(companyId(1))
    const after = { ...rows, 'debian:12 bash': [rule('CVE-1', '5.4')] }
    await at.state.switchTo(advisories(2026112201, after), [{ release: 'debian:12', package: 'bash', by: 'source' }])
    await at.state.purge(companyId(1), null)
    await at.state.rematched()
    const events = await at.deliver()
    expect(new Set(events.map(event => event.company_id))).toEqual(new Set([companyId(2)]))
    expect(events).toHaveLength(150)
    expect(at.state.summary(companyId(1))).toEqual({
      servers: 0,
      oldest_report_ms: null,
      ecosystems: {},
      open_findings: 0,
    })
  })
})
