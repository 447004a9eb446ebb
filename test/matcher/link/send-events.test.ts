// The outbox on its way to a hub that fails in every way it can: nothing is lost, doubled or out of order.
import { afterEach, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { MatcherHub } from '../../../apps/matcher/hub-link/matcher-hub.ts'
import { EventSender } from '../../../apps/matcher/hub-link/send-events.ts'
import { noDatabase } from '../../../apps/matcher/no-database.ts'
import { openState } from '../../../apps/matcher/state/open-state.ts'
import type { MatcherState } from '../../../apps/matcher/state/state-types.ts'
import type { SecurityEvent } from '../../../core/matching/finding-event.ts'
import { until } from '../../support/until.ts'
import { contentHash, packagesOf, reportOf } from '../scan-client.ts'
import { type HubRequest, hubToken, ScriptedHub } from '../scripted-hub.ts'
import { stateOptions } from '../state/state-options.ts'

const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const eventsOf = (request: HubRequest): SecurityEvent[] => (request.body as { events: SecurityEvent[] }).events
const idsOf = (request: HubRequest): string[] => eventsOf(request).map(event => event.event_id)

class Bench {
  readonly hub = new ScriptedHub()
  readonly dir = mkdtempSync(join(tmpdir(), 'svc-sender-'))
  state: MatcherState
  sender!: EventSender
  token = hubToken
  clockMs = 0
  readonly rejected: string[] = []
  readonly warnings: string[] = []
  private readonly log = pino({ level: 'warn', base: null }, { write: line => void this.warnings.push(line) })
  private timeMs = Date.now()

  constructor() {
    this.state = this.open()
    cleanUps.push(async () => {
      await this.sender?.stop()
      await this.state.close()
      await this.hub.stop()
      rmSync(this.dir, { recursive: true, force: true })
    })
  }

  private open(): MatcherState {
    const state = openState(
      this.dir,
      stateOptions(() => ++this.timeMs),
    )
    state.startWith(noDatabase, null)
    return state
  }

  async restart(): Promise<void> {
    await this.sender.stop()
    await this.state.close()
    this.state = this.open()
  }

  /** `timeoutMs`: how long an answer may take; `jitter`: the share of a wait that is waited. */
  send(timeoutMs = 5_000, jitter = 0): void {
    const hub = new MatcherHub({
      url: this.hub.url,
      token: () => this.token,
      isPlainAllowed: false,
      log: this.log,
      nowMs: Date.now,
      onClockSkew: () => {},
      onRequest: () => {},
      timeoutMs,
    })
    this.sender = new EventSender({
      state: this.state,
      hub,
      log: this.log,
      onRejected: reason => void this.rejected.push(reason),
      onFeedBehind: () => {},
      onEmpty: () => {},
      clockMs: () => this.clockMs,
      random: () => jitter,
    })
    this.sender.start()
  }

  /** Hosts of a company, each of which has reported once: as many events. */
  async reports(company: string, count: number): Promise<string[]> {
    const hosts = Array.from({ length: count }, () => randomUUID())
    for (const hostId of hosts) {
      const host = { hostId, companyId: company, serverId: null, publicKey: 'A'.repeat(43).concat('='), version: 1 }
      await this.state.enrolled({ ...host, state: 'active', isInactive: false }, reportOf(hostId).machine_id_hash)
    }
    await Promise.all(hosts.map(hostId => this.report(hostId)))
    return hosts
  }

  async report(hostId: string, version = '1'): Promise<void> {
    const report = reportOf(hostId, { packages: packagesOf(['bash', version]) })
    const outcome = await this.state.acceptReport({
      hostId,
      report,
      contentHash: contentHash(report),
      requestTimeMs: ++this.timeMs,
      signature: randomUUID(),
      receivedAtMs: this.timeMs,
      minIntervalMs: 0,
    })
    expect(outcome.outcome).toBe('kept')
  }

  empty(): Promise<unknown> {
    return until('the outbox to be empty', () => this.state.counters().outboxDepth === 0)
  }

  /** Each event once, strictly growing by host. */
  expectWhole(count: number): void {
    const { taken } = this.hub
    expect(new Set(taken.map(event => event.event_id)).size).toBe(count)
    expect(taken).toHaveLength(count)
    for (const ofHost of Map.groupBy(taken, event => event.host_id).values()) {
      const seqs = ofHost.map(event => event.seq)
      expect(seqs).toEqual([...new Set(seqs)].toSorted((a, b) => a - b))
    }
  }
}

describe('a hub that fails', () => {
  test('[MAT-165] 500, 429 and timeouts: the same batch again, whole and in order, and nothing lost or doubled', async () => {
    const bench = new Bench()
    const company = randomUUID()
    await bench.reports(company, 25)
    let failures = 0
    const { promise: never, resolve: release } = Promise.withResolvers<Response>()
    bench.hub.script = ({ path }) => {
      if (path !== '/events' || failures >= 9) return null
      failures++
      if (failures % 3 === 0) return never
      return failures % 3 === 1 ? bench.hub.error(500, 'server_error') : bench.hub.error(429, 'rate_limited')
    }
    bench.send(200)
    await bench.empty()
    release(bench.hub.error(503, 'late'))
    const requests = bench.hub.to('/events')
    expect(requests).toHaveLength(10)
    for (const request of requests) expect(idsOf(request)).toEqual(idsOf(requests[0]!))
    bench.expectWhole(25)
  })

  test('[MAT-165] a hub that fails for ten minutes is asked 1 s to 5 minutes apart, and told all at the next of these times', async () => {
    const bench = new Bench()
    const company = randomUUID()
    const [host] = (await bench.reports(company, 3)) as [string]
    const askedAt: number[] = []
    bench.hub.script = ({ path }) => {
      if (path !== '/events') return null
      askedAt.push(bench.clockMs / 1000)
      if (bench.clockMs >= 600_000) return null
      return askedAt.length % 2 === 1 ? bench.hub.error(500, 'server_error') : bench.hub.error(429, 'rate_limited')
    }
    bench.send(5_000, 1)
    for (let tries = 1; tries <= 10; tries++) {
      await until('the refusal', () => askedAt.length === tries)
      await bench.sender.idle(company)
      // Whatever comes next looks whether the time is over.
      const waitMs = Math.min(2 ** (tries - 1), 300) * 1000
      for (const passedMs of [waitMs - 1, 1]) {
        bench.clockMs += passedMs
        await bench.report(host, `${tries}-${passedMs}`)
      }
    }
    await bench.empty()
    expect(askedAt.slice(0, 11)).toEqual([0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811])
    expect(askedAt.slice(11).every(at => at === 811)).toBe(true)
    bench.expectWhole(23)
  })

  test('an operator who knows that the hub is back need not wait for the next try', async () => {
    const bench = new Bench()
    const company = randomUUID()
    await bench.reports(company, 3)
    bench.hub.script = ({ path }) => (path === '/events' ? bench.hub.error(503, 'server_error') : null)
    bench.send(5_000, 1)
    await until('the refusal', () => bench.hub.to('/events').length === 1)
    await bench.sender.idle(company)
    bench.hub.script = () => null
    bench.sender.release()
    await bench.empty()
    expect([bench.clockMs, bench.hub.to('/events').length]).toEqual([0, 2])
    bench.expectWhole(3)
  })

  test('[MAT-165] a larger Retry-After is honoured, and other companies go on meanwhile', async () => {
    const bench = new Bench()
    const [slow, quick] = [randomUUID(), randomUUID()]
    await bench.reports(slow, 3)
    await bench.reports(quick, 3)
    let isRefusing = true
    bench.hub.script = request => {
      if (request.path !== '/events' || !isRefusing || eventsOf(request)[0]?.company_id !== slow) return null
      return bench.hub.error(429, 'rate_limited', { 'retry-after': '120' })
    }
    bench.send()
    await until('the other company', () => bench.hub.taken.length === 3)
    await until('the refusal', () => bench.hub.to('/events').length >= 2)
    // Only then is it known when to come again: the clock must not be moved before.
    await bench.sender.idle(slow)
    isRefusing = false
    bench.clockMs = 119_000
    await bench.reports(quick, 1)
    await until('the other company again', () => bench.hub.taken.length === 4)
    expect(bench.hub.taken.every(event => event.company_id === quick)).toBe(true)
    bench.clockMs = 120_001
    await bench.reports(quick, 1)
    await bench.empty()
    bench.expectWhole(8)
  })

  test('[MAT-166] a refused token: nothing is sent for 60 s, nothing is a dead letter, and the right one delivers all', async () => {
    const bench = new Bench()
    const company = randomUUID()
    const hosts = await bench.reports(company, 10)
    bench.token = 'another'
    bench.send()
    for (let minute = 1; minute <= 10; minute++) {
      if (minute === 5) {
        bench.token = hubToken
        bench.hub.script = ({ path }) => (path === '/events' ? bench.hub.error(403, 'forbidden') : null)
      }
      await until('the refusal', () => bench.hub.to('/events').length === minute)
      await bench.sender.idle(company)
      await bench.report(hosts[0]!, String(minute))
      expect(bench.hub.to('/events')).toHaveLength(minute)
      bench.clockMs += 60_001
      // Whatever comes next looks whether the time is over.
      await bench.report(hosts[1]!, String(minute))
    }
    await until('the refusal', () => bench.hub.to('/events').length === 11)
    await bench.sender.idle(company)
    expect(bench.state.counters()).toMatchObject({ deadLetters: 0, outboxDepth: 30 })
    bench.hub.script = () => null
    bench.sender.release()
    await bench.empty()
    bench.expectWhole(30)
  })

  test('[MAT-167] 422 for one event: it alone is a dead letter, with the answer, and can be sent again or dropped', async () => {
    const bench = new Bench()
    const hosts = await bench.reports(randomUUID(), 30)
    const faulty = new Set([hosts[7]!, hosts[21]!])
    bench.hub.script = request => {
      if (request.path !== '/events' || !eventsOf(request).some(event => faulty.has(event.host_id))) return null
      return bench.hub.error(422, 'invalid_envelope')
    }
    bench.send()
    await bench.empty()
    expect(bench.hub.taken).toHaveLength(28)
    const letters = bench.state.deadLetters(0, 10)
    expect(new Set(letters.map(letter => letter.event.host_id))).toEqual(faulty)
    expect(letters[0]?.reason).toContain('422 invalid_envelope: invalid_envelope is the reason')
    faulty.clear()
    expect(await bench.state.dropDeadLetters([letters[1]!.id])).toBe(1)
    expect(await bench.state.retryDeadLetters(null)).toBe(1)
    await bench.empty()
    expect(bench.state.counters().deadLetters).toBe(0)
    bench.expectWhole(29)
  })

  test('[MAT-167] 422 for everything, for ten minutes: each event is a dead letter, and sent again they come once and in order', async () => {
    const bench = new Bench()
    const hosts = await bench.reports(randomUUID(), 3)
    bench.hub.script = ({ path }) => (path === '/events' ? bench.hub.error(422, 'invalid_envelope') : null)
    bench.send()
    for (let minute = 1; minute <= 10; minute++) {
      await until('the dead letters', () => bench.state.counters().deadLetters === 2 + minute)
      expect(bench.state.counters().outboxDepth).toBe(0)
      bench.clockMs += 60_000
      await bench.report(hosts[minute % 3]!, String(minute))
    }
    await until('the last dead letter', () => bench.state.counters().deadLetters === 13)
    bench.hub.script = () => null
    expect(await bench.state.retryDeadLetters(null)).toBe(13)
    await bench.empty()
    expect(bench.state.counters().deadLetters).toBe(0)
    bench.expectWhole(13)
  })

  test('[MAT-164] rejected events are done: counted by reason, and not sent again', async () => {
    const bench = new Bench()
    await bench.reports(randomUUID(), 4)
    bench.hub.script = request => {
      if (request.path !== '/events') return null
      const [first, ...rest] = idsOf(request)
      return bench.hub.ok({ accepted: rest, rejected: [{ event_id: first, reason: 'unknown_server' }] })
    }
    bench.send()
    await bench.empty()
    expect(bench.rejected).toEqual(['unknown_server'])
    expect(bench.hub.to('/events')).toHaveLength(1)
    expect(bench.state.counters().deadLetters).toBe(0)
    // Counted each time, and logged again when an hour has gone by.
    const said = () => bench.warnings.filter(line => line.includes('the hub rejects events')).length
    expect(said()).toBe(1)
    for (const [hours, times] of [
      [0.9, 1],
      [1.1, 2],
    ] as const) {
      bench.clockMs = hours * 3_600_000
      await bench.reports(randomUUID(), 1)
      bench.sender.release()
      await bench.empty()
      expect(said()).toBe(times)
    }
    expect(bench.rejected).toEqual(['unknown_server', 'unknown_server', 'unknown_server'])
  })

  test('a page of something else at the address of the hub is no delivery', async () => {
    const bench = new Bench()
    await bench.reports(randomUUID(), 2)
    let times = 0
    bench.hub.script = ({ path }) =>
      path === '/events' && times++ < 2
        ? new Response('<html>welcome</html>', { status: times === 1 ? 200 : 404 })
        : null
    bench.send()
    await bench.empty()
    expect(bench.hub.to('/events')).toHaveLength(3)
    bench.expectWhole(2)
  })

  test('[MAT-172] what was delivered and not noted before the end is told again under the same id', async () => {
    const bench = new Bench()
    await bench.reports(randomUUID(), 5)
    const { promise: never, resolve: release } = Promise.withResolvers<Response>()
    let isFirst = true
    bench.hub.script = request => {
      if (request.path !== '/events' || !isFirst) return null
      isFirst = false
      bench.hub.taken.push(...eventsOf(request))
      return never
    }
    bench.send(300)
    await until('the first delivery', () => bench.hub.taken.length === 5)
    await bench.restart()
    release(bench.hub.error(503, 'late'))
    bench.send()
    await bench.empty()
    const [first, second] = bench.hub.to('/events')
    expect(idsOf(second!)).toEqual(idsOf(first!))
    expect(second!.body).toEqual(first!.body)
  })
})

describe('order and side by side', () => {
  test('[MAT-163] at most four companies at a time, one batch each, at most 200 events of one company', async () => {
    const bench = new Bench()
    const companies = Array.from({ length: 6 }, () => randomUUID())
    for (const [index, company] of companies.entries()) await bench.reports(company, index === 0 ? 450 : 20)
    const under = new Map<string, number>()
    let most = 0
    bench.hub.script = async request => {
      if (request.path !== '/events') return bench.hub.ok({})
      const events = eventsOf(request)
      const [company] = new Set(events.map(event => event.company_id))
      expect(new Set(events.map(event => event.company_id)).size).toBe(1)
      expect(events.length).toBeLessThanOrEqual(200)
      under.set(company!, (under.get(company!) ?? 0) + 1)
      expect(under.get(company!)).toBe(1)
      most = Math.max(
        most,
        [...under.values()].reduce((sum, count) => sum + count, 0),
      )
      // Answers come when as many as may be are under way, or nothing more comes.
      if (most < 4) await until('four companies', () => most === 4)
      under.set(company!, 0)
      bench.hub.taken.push(...events)
      return bench.hub.ok({ accepted: idsOf(request), rejected: [] })
    }
    bench.send()
    await bench.empty()
    expect(most).toBe(4)
    const sizes = bench.hub.to('/events').filter(request => eventsOf(request)[0]?.company_id === companies[0])
    expect(sizes.map(request => eventsOf(request).length)).toEqual([200, 200, 50])
    bench.expectWhole(550)
  })

  test('[MAT-209] when a company is purged, none of its events is sent after what was on its way has ended', async () => {
    const bench = new Bench()
    const [company, other] = [randomUUID(), randomUUID()]
    await bench.reports(company, 300)
    await bench.reports(other, 2)
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    bench.hub.script = async request => {
      if (request.path !== '/events' || eventsOf(request)[0]?.company_id !== company) return null as never
      await held
      return bench.hub.ok({ accepted: idsOf(request), rejected: [] })
    }
    bench.send()
    await until('the first batch', () =>
      bench.hub.to('/events').some(request => eventsOf(request)[0]?.company_id === company),
    )
    await bench.state.purge(company, null)
    let isIdle = false
    const idle = bench.sender.idle(company).then(() => {
      isIdle = true
    })
    await until('the other company', () => bench.hub.taken.length === 2)
    expect(isIdle).toBe(false)
    release()
    await idle
    const sent = bench.hub.to('/events').length
    await bench.empty()
    expect(bench.hub.to('/events')).toHaveLength(sent)
    expect(bench.state.companiesWaiting()).toEqual([])
  })
})
