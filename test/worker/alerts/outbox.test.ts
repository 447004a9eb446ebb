import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { id } from '../../ingest/scripted-hub.ts'
import { until } from '../../support/until.ts'
import { type Json, ruleRecord, serverOf, WorkerRig } from '../rig.ts'

setDefaultTimeout(60_000)
const company = id('outbox company')

const answerEvents =
  (answer: (events: Json[]) => Response | null) =>
  (request: { path: string; body: unknown }): Response | null => {
    if (request.path !== '/events') return null
    return answer((request.body as { events: Json[] }).events)
  }

describe('the outbox of a running worker', () => {
  const rig = new WorkerRig()
  const { hub } = rig
  const deadLetters = join(rig.directory, 'alerting', 'dead-letters.jsonl')
  let serverCount = 0
  /** A server that no other test has. */
  const newServer = () => serverOf(company, `outbox ${++serverCount}`)

  beforeAll(async () => {
    hub.feeds.rules!.push(ruleRecord(company))
    await rig.start()
  })
  beforeEach(() => {
    hub.script = () => null
  })
  afterAll(() => rig.close())

  test('[EVT-001] [EVT-030] events reach POST /events in the order of seq, of each series', async () => {
    const servers = [newServer(), newServer(), newServer()]
    const startMs = Date.now() - 60_000
    for (let step = 0; step < 6; step++)
      for (const server of servers) await rig.swap(server, step % 2 === 0 ? 90 : 10, startMs + step * 1000)
    // The fourth transition of a series makes it flap: what follows is withheld.
    const expected = ['alert.opened', 'alert.resolved', 'alert.opened', 'alert.flapping']
    for (const server of servers) {
      await until('the events of a server', () => rig.typesOf(server).length >= expected.length)
      expect(rig.typesOf(server)).toEqual(expected)
      const seqs = rig.eventsOf(server).map(event => event.seq)
      expect(seqs).toEqual([...seqs].sort((a, b) => a - b))
      expect(new Set(seqs).size).toBe(seqs.length)
    }
  })

  test('[EVT-002] a backlog goes out in batches of at most 200, oldest first', async () => {
    hub.script = answerEvents(() => hub.error(503, 'unavailable'))
    const servers = Array.from({ length: 450 }, newServer)
    for (const server of servers) await rig.swap(server, 90)
    await until('the outbox to hold all', async () => (await rig.status()).outbox_depth === 450)
    const before = hub.to('/events').length
    hub.script = () => null
    await until('the outbox to be empty', async () => (await rig.status()).outbox_depth === 0, 70_000)
    const sizes = hub
      .to('/events')
      .slice(before)
      .map(request => (request.body as { events: Json[] }).events.length)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeGreaterThanOrEqual(450)
    expect(Math.max(...sizes)).toBe(200)
    expect(servers.every(server => rig.typesOf(server).join() === 'alert.opened')).toBe(true)
  })

  for (const [name, answer] of [
    ['500', () => hub.error(500, 'server_error')],
    ['503', () => hub.error(503, 'unavailable')],
    ['401', () => hub.error(401, 'unauthorized')],
    ['403', () => hub.error(403, 'forbidden')],
    ['429', () => hub.error(429, 'rate_limited', { 'retry-after': '1' })],
    ['404 of an address that is no hub', () => new Response('not found', { status: 404 })],
    ['200 of a page that is no hub', () => new Response('<html></html>')],
  ] as const)
    test(`[EVT-026] [EVT-005] events that meet ${name} stay in the outbox and are sent later, with the same event_id`, async () => {
      const server = newServer()
      const refused: Json[] = []
      hub.script = answerEvents(events => {
        refused.push(...events)
        return answer()
      })
      await rig.swap(server, 90)
      await until('the first try', () => refused.length >= 1)
      expect(await rig.metric('svc_outbox_depth')).toBe(1)
      expect((await rig.status()).outbox_depth).toBe(1)
      hub.script = () => null
      await until('the event', () => rig.eventsOf(server).length > 0, 20_000)
      expect(rig.typesOf(server)).toEqual(['alert.opened'])
      expect(refused.every(event => event.event_id === rig.eventsOf(server)[0].event_id)).toBe(true)
      expect(existsSync(deadLetters)).toBe(false)
    })

  test('[EVT-026] [EVT-027] events of a time without the hub stay in the outbox, in order, and its depth is told', async () => {
    const server = newServer()
    await hub.stop()
    const startMs = Date.now() - 60_000
    await rig.swap(server, 90, startMs)
    await rig.swap(server, 10, startMs + 1000)
    await until('two events', async () => (await rig.status()).outbox_depth === 2)
    expect(await rig.metric('svc_outbox_depth')).toBe(2)
    hub.restart()
    await until('the events', () => rig.eventsOf(server).length === 2, 70_000)
    expect(rig.typesOf(server)).toEqual(['alert.opened', 'alert.resolved'])
    await until('an empty outbox', async () => (await rig.metric('svc_outbox_depth')) === 0)
  })

  test('[EVT-026] Retry-After is honoured: nothing is sent before, whatever arrives meanwhile', async () => {
    const times: number[] = []
    hub.script = answerEvents(() => {
      times.push(performance.now())
      return times.length === 1 ? hub.error(429, 'rate_limited', { 'retry-after': '3' }) : null
    })
    await rig.swap(newServer(), 90)
    await until('the first try', () => times.length === 1)
    for (let count = 0; count < 5; count++) await rig.swap(newServer(), 90)
    await until('the second try', () => times.length >= 2)
    expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(2900)
  })

  test('[EVT-026] the first pause after a failure is a second, also when more events come meanwhile', async () => {
    const times: number[] = []
    hub.script = answerEvents(() => {
      times.push(performance.now())
      return times.length < 3 ? hub.error(500, 'server_error') : null
    })
    for (let count = 0; count < 20; count++) await rig.swap(newServer(), 90)
    await until('the third try', () => times.length >= 3)
    expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(900)
    expect(times[2]! - times[1]!).toBeGreaterThanOrEqual(1900)
  })

  test('the time from a sample to its event is counted in a histogram', async () => {
    const before = await rig.metric('svc_sample_to_event_seconds_count')
    const server = newServer()
    await rig.swap(server, 90, Date.now() - 90_000)
    await until('the event', () => rig.typesOf(server).length > 0)
    expect((await rig.metric('svc_sample_to_event_seconds_count')) - before).toBe(1)
    expect(await rig.metric('svc_sample_to_event_seconds_sum')).toBeGreaterThanOrEqual(90)
    expect(await rig.metric('svc_sample_to_event_seconds_bucket{le="+Inf"}')).toBe(before + 1)
  })

  test('[EVT-028] rejected events are logged, counted and not sent again', async () => {
    const [bad, good] = [newServer(), newServer()]
    const before = await rig.metric('svc_outbox_sent_total{result="rejected"}')
    const sent: Json[] = []
    hub.script = answerEvents(events => {
      sent.push(...events)
      const refused = events.filter(event => event.server_id === bad.serverId)
      return hub.ok({
        accepted: events.filter(event => !refused.includes(event)).map(event => event.event_id),
        // An id that was never sent, and one twice: what a hub may say must not stop the outbox.
        rejected: [...refused, ...refused, { event_id: 'unknown' }].map(event => ({
          event_id: event.event_id,
          reason: 'unknown_server',
        })),
      })
    })
    await rig.swap(bad, 90)
    await rig.swap(good, 90)
    await until('both to be sent', () => new Set(sent.map(event => event.server_id)).size === 2)
    await until('an empty outbox', async () => (await rig.status()).outbox_depth === 0)
    expect(sent.filter(event => event.server_id === bad.serverId)).toHaveLength(1)
    const lines = rig.logged('the hub rejected an event')
    expect(lines.some(line => line.reason === 'unknown_server' && line.event_id === sent[0].event_id)).toBe(true)
    expect((await rig.metric('svc_outbox_sent_total{result="rejected"}')) - (before || 0)).toBe(1)
  })

  test('[EVT-026] [EVT-028] an event that the hub passes over while it names others is sent again, the others are not', async () => {
    const servers = Array.from({ length: 4 }, newServer)
    const sent: string[] = []
    let isOpen = false
    hub.script = answerEvents(events => {
      if (!isOpen) return hub.error(503, 'unavailable')
      sent.push(...events.map(event => event.server_id))
      return hub.ok({ accepted: events.slice(0, 1).map(event => event.event_id), rejected: [] })
    })
    for (const server of servers) await rig.swap(server, 90)
    await until('four events', async () => (await rig.status()).outbox_depth === 4)
    isOpen = true
    await until('an empty outbox', async () => (await rig.status()).outbox_depth === 0, 20_000)
    const ids = servers.map(server => server.serverId)
    const order = sent.slice(0, 4)
    expect([...order].sort()).toEqual([...ids].sort())
    expect(sent).toEqual([...order, ...order.slice(1), ...order.slice(2), ...order.slice(3)])
    expect(rig.logged('the hub passed over events of a batch; they are sent again').length).toBe(3)
  })

  test('[EVT-026] a batch that is refused as a whole is halved; the one bad event goes to the dead-letter file, the rest arrives', async () => {
    const servers = Array.from({ length: 9 }, newServer)
    const bad = servers[4]!
    let isOpen = false
    hub.script = answerEvents(events => {
      if (!isOpen) return hub.error(503, 'unavailable')
      return events.some(event => event.server_id === bad.serverId) ? hub.error(422, 'invalid_envelope') : null
    })
    for (const server of servers) await rig.swap(server, 90)
    await until('nine events', async () => (await rig.status()).outbox_depth === 9)
    isOpen = true
    await until('an empty outbox', async () => (await rig.status()).outbox_depth === 0, 20_000)
    for (const server of servers) expect(rig.typesOf(server)).toEqual(server === bad ? [] : ['alert.opened'])
    const letters = readFileSync(deadLetters, 'utf8').trim().split('\n')
    expect(letters).toHaveLength(1)
    expect(JSON.parse(letters[0]!).event.server_id).toBe(bad.serverId)
    expect(await rig.metric('svc_outbox_sent_total{result="dead_lettered"}')).toBe(1)
  })

  for (const status of [400, 404, 409, 410])
    test(`[EVT-026] a ${status} of the hub dead-letters the event, and what comes after it is delivered`, async () => {
      const [bad, good] = [newServer(), newServer()]
      const refused: string[] = []
      hub.script = answerEvents(events => {
        if (!events.some(event => event.server_id === bad.serverId)) return null
        refused.push(...events.map(event => String(event.event_id)))
        return hub.error(status, 'not_taken')
      })
      await rig.swap(bad, 90)
      await until('the refusal', () => refused.length > 0)
      await rig.swap(good, 90)
      await until('the other event', () => rig.typesOf(good).length > 0)
      expect(rig.typesOf(bad)).toEqual([])
      expect(refused).toHaveLength(1)
      expect(readFileSync(deadLetters, 'utf8')).toContain(refused[0]!)
      expect(
        rig
          .logged('the hub will not take an event; it is in the dead-letter file')
          .some(line => line.event_id === refused[0]),
      ).toBe(true)
    })

  test('[EVT-023] [EVT-024] [EVT-025] nothing but alert, agent and group events is sent to /events, and nothing but the hub is called', () => {
    const types = new Set(hub.taken.map(event => String(event.type)))
    for (const type of types)
      expect(type).toMatch(/^(alert|agent)\.(opened|resolved|reminder|flapping|down|up)$|^group_/)
    expect([...new Set(hub.requests.map(request => request.path))].sort()).toEqual(['/events', '/rules', '/silences'])
  })
})
