// Random streams of events of two companies against a second reading of the contract: repeats, old seqs, hosts that are
// attached and revoked, exceptions in between. And batches at once, which must come out as one after the other.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Random, runsOf, seedOf } from '../fuzz/seeded.ts'
import { type Call, type Json, type Tenant, TestHub, until } from './hub-harness.ts'
import {
  enroll,
  eventOf,
  findingPayload,
  findingsOf,
  type Host,
  hex64,
  newServer,
  opened,
  resolvedPayload,
  scannedPayload,
  send,
} from './security-event.ts'

const seed = seedOf('streams of findings')
const STEPS = runsOf(120)
const DAY_MS = 86_400_000

let hub: TestHub
let matcher: Call

beforeAll(async () => {
  hub = await TestHub.start()
  matcher = (await hub.matcher()).call
})
afterAll(() => hub.stop())

/** What the contract says of a finding, written down anew and in another way than the hub has it. */
type Life = {
  status: string
  seq: number
  first: number
  last: number
  reopened: number | null
  resolvedAt: number | null
  reason: string | null
  payload: Json
  dbVersion: number
  host: Known
  exception: { id: string; type: string } | null
}

type Known = { host: Host; serverId: string | null; isRevoked: boolean; scanSeq: number }

class Company {
  readonly lives = new Map<string, Life>()
  readonly hosts: Known[] = []
  readonly servers: string[] = []
  readonly exceptions: { id: string; type: string; keys: string[] }[] = []

  constructor(
    readonly tenant: Tenant,
    readonly approver: Call,
  ) {}
}

const LABELS: Record<string, number> = { critical: 95, high: 80, medium: 50, low: 20, '': 10 }
const TERMS = [7, 30, 90, 180]

function rating(life: Life): [number, string, number | null] {
  const { cvss_score, severity_label, minor, fix_status } = life.payload
  const risk = cvss_score == null ? LABELS[severity_label]! : Math.round(cvss_score * 10)
  const level = minor ? 4 : risk >= 90 ? 1 : risk >= 70 ? 2 : risk >= 40 ? 3 : 4
  const due = (life.reopened ?? life.first) + TERMS[level - 1]! * DAY_MS
  return [risk, `p${level}`, ['no_fix', 'wont_fix'].includes(fix_status) ? null : due]
}

/** Applies an event that the hub accepts to what is expected. */
function live(company: Company, known: Known, event: Json): void {
  if (event.type === 'server.scanned') {
    known.scanSeq = Math.max(known.scanSeq, event.seq)
    return
  }
  const { payload } = event
  const held = company.lives.get(payload.finding_key)
  if (held && event.seq <= held.seq) return
  const at = Date.parse(event.occurred_at)
  if (event.type === 'finding.resolved') {
    if (!held) return
    held.seq = event.seq
    if (held.status === 'resolved') return
    held.status = 'resolved'
    held.resolvedAt = Date.parse(payload.resolved_at)
    held.reason = payload.resolved_reason
    held.dbVersion = payload.db_version
    held.last = Math.max(held.last, at)
    return
  }
  const first = Date.parse(payload.first_seen_at)
  const fresh = { seq: event.seq, payload, dbVersion: payload.db_version, host: known, resolvedAt: null, reason: null }
  if (!held) {
    company.lives.set(payload.finding_key, {
      ...fresh,
      status: 'open',
      first,
      last: at,
      reopened: null,
      exception: null,
    })
    return
  }
  const isReopened = held.status === 'resolved'
  Object.assign(held, fresh, {
    first: Math.min(held.first, first),
    last: Math.max(held.last, at),
    ...(isReopened ? { status: held.exception?.type ?? 'open', reopened: at } : {}),
  })
}

const ms = (text: string | null): number | null => (text === null ? null : Date.parse(text))

async function compare(company: Company, step: string): Promise<void> {
  const rows = await findingsOf(hub, company.tenant.companyId)
  const stored = [...rows].map(([key, row]) => [
    key,
    row.status,
    Number(row.last_event_seq),
    ms(row.first_seen_at),
    ms(row.last_seen_at),
    ms(row.reopened_at),
    ms(row.resolved_at),
    row.resolved_reason,
    row.severity_label,
    row.installed_version,
    Number(row.db_version),
    row.host_id,
    row.server_id,
    [row.risk, row.priority, ms(row.sla_due_at)],
  ])
  const expected = [...company.lives].map(([key, life]) => [
    key,
    life.status,
    life.seq,
    life.first,
    life.last,
    life.reopened,
    life.resolvedAt,
    life.reason,
    life.payload.severity_label,
    life.payload.installed_version,
    life.dbVersion,
    life.host.host.hostId,
    life.host.serverId,
    rating(life),
  ])
  expect(stored.sort(), `--seed ${seed}, after ${step}`).toEqual(expected.sort())
  // The list that people see has them all.
  const { body } = await company.tenant.call('GET', '/security/findings')
  expect(body.meta.total, `--seed ${seed}, after ${step}`).toBe(company.lives.size)
  const open = await company.tenant.call('GET', '/security/findings?status=open')
  const openCount = [...company.lives.values()].filter(life => life.status === 'open').length
  expect(open.body.meta.total, `--seed ${seed}, after ${step}`).toBe(openCount)
}

/** A stream of acts of the matcher, of people and of time. */
class Stream {
  private readonly sent: Json[] = []
  private seq = 1000
  private vulns = 0
  private readonly vulnOf = new Map<string, string>()

  constructor(
    private readonly random: Random,
    private readonly companies: readonly Company[],
  ) {}

  private time(): string {
    return new Date(Date.UTC(2026, 5, 1) + this.random.below(20 * DAY_MS)).toISOString()
  }

  private event(company: Company, known: Known): Json {
    const { random } = this
    const keys = [...company.lives].filter(([, life]) => life.host === known).map(([key]) => key)
    const key = keys.length > 0 && random.chance(0.75) ? random.pick(keys) : hex64()
    const seq = random.chance(0.15) ? random.below(this.seq) : ++this.seq
    const change = { seq, occurred_at: this.time(), server_id: random.chance(0.3) ? null : known.serverId }
    const kind = random.float()
    if (kind < 0.08) return eventOf(known.host, 'server.scanned', scannedPayload(), change)
    if (kind < 0.3)
      return eventOf(
        known.host,
        'finding.resolved',
        resolvedPayload(key, { resolved_at: this.time(), db_version: 2026060000 + random.below(99) }),
        change,
      )
    const vuln_id = this.vulnOf.get(key) ?? `CVE-2026-${++this.vulns}`
    this.vulnOf.set(key, vuln_id)
    const payload = findingPayload({
      finding_key: key,
      vuln_id,
      severity_label: random.pick(Object.keys(LABELS)),
      installed_version: `1.${random.below(100)}`,
      cvss_score: random.chance(0.5) ? null : random.below(101) / 10,
      minor: random.chance(0.1),
      fix_status: random.pick(['fixed', 'no_fix', 'wont_fix', 'undetermined']),
      first_seen_at: this.time(),
      db_version: 2026060000 + random.below(99),
    })
    return eventOf(known.host, random.pick(['finding.opened', 'finding.updated']), payload, change)
  }

  /** A batch of events of both companies, with what the hub must say of each. */
  async batch(): Promise<string> {
    const { random } = this
    const events: Json[] = []
    const verdicts = new Map<string, string>()
    for (let count = 1 + random.below(25); count > 0; count--) {
      const company = random.pick(this.companies)
      const known = random.pick(company.hosts)
      if (this.sent.length > 0 && random.chance(0.1)) {
        const again = random.pick(this.sent)
        events.push(again)
        verdicts.set(again.event_id, 'accepted')
        continue
      }
      const event = this.event(company, known)
      const other = this.companies.find(each => each !== company)!
      const fault = random.float()
      const told =
        fault < 0.04
          ? { ...event, company_id: other.tenant.companyId }
          : fault < 0.06
            ? { ...event, server_id: crypto.randomUUID() }
            : fault < 0.1
              ? { ...event, payload: { ...event.payload, db_version: 'x' } }
              : event
      const verdict = known.isRevoked || fault < 0.06 ? 'unknown_server' : fault < 0.1 ? 'invalid_payload' : 'accepted'
      events.push(told)
      verdicts.set(told.event_id, verdict)
      if (verdict !== 'accepted') continue
      this.sent.push(told)
      live(company, known, told)
    }
    const { accepted, rejected } = await send(matcher, events)
    const answered = new Map([
      ...accepted.map(id => [id, 'accepted'] as const),
      ...rejected.map(({ event_id, reason }) => [event_id, reason] as const),
    ])
    expect([...answered].sort(), `--seed ${seed}`).toEqual([...verdicts].sort())
    return `${events.length} events`
  }

  async except(): Promise<string> {
    const company = this.random.pick(this.companies)
    const open = [...company.lives].filter(([, life]) => life.status === 'open').map(([key]) => key)
    if (open.length === 0) return 'nothing to except'
    const keys = this.random.shuffle(open).slice(0, 3)
    const rows = await findingsOf(hub, company.tenant.companyId)
    const type = this.random.pick(['accepted', 'false_positive'])
    const asked = await company.tenant.call('POST', '/security/exceptions', {
      finding_ids: keys.map(key => rows.get(key).id),
      type,
      reason: 'looked at',
      expires_at: new Date(Date.now() + DAY_MS).toISOString(),
    })
    expect(asked.status).toBe(201)
    const { id } = asked.body.data
    expect((await company.approver('POST', `/security/exceptions/${id}/approve`)).status).toBe(200)
    for (const key of keys) Object.assign(company.lives.get(key)!, { status: type, exception: { id, type } })
    company.exceptions.push({ id, type, keys })
    return `exception of ${keys.length}`
  }

  async withdraw(): Promise<string> {
    const company = this.random.pick(this.companies)
    const exception = company.exceptions.pop()
    if (!exception) return 'nothing to withdraw'
    await company.tenant.call('DELETE', `/security/exceptions/${exception.id}`)
    for (const key of exception.keys) {
      const life = company.lives.get(key)!
      if (life.exception?.id !== exception.id) continue
      life.exception = null
      if (life.status !== 'resolved') life.status = 'open'
    }
    return 'withdrawal'
  }

  async move(): Promise<string> {
    const company = this.random.pick(this.companies)
    const known = this.random.pick(company.hosts.filter(each => !each.isRevoked))
    const taken = new Set(company.hosts.filter(each => !each.isRevoked).map(each => each.serverId))
    const free = company.servers.filter(id => !taken.has(id))
    const serverId = known.serverId === null ? (this.random.pick(free) ?? null) : null
    const { status } = await company.tenant.call('POST', `/security/scan-hosts/${known.host.hostId}/attach`, {
      server_id: serverId,
    })
    expect(status).toBe(200)
    known.serverId = serverId
    return serverId ? 'attachment' : 'detachment'
  }

  async replace(): Promise<string> {
    const company = this.random.pick(this.companies)
    const known = this.random.pick(company.hosts.filter(each => !each.isRevoked))
    const before = Date.now()
    const host = await enroll(company.tenant, matcher, { machineHash: known.host.machineHash })
    const rows = await findingsOf(hub, company.tenant.companyId)
    for (const [key, life] of company.lives) {
      if (life.host !== known || life.status === 'resolved') continue
      const at = ms(rows.get(key).resolved_at)!
      expect(at).toBeWithin(before - 5, Date.now() + 5)
      Object.assign(life, { status: 'resolved', reason: 'out_of_scope', resolvedAt: at })
    }
    known.isRevoked = true
    company.hosts.push({ host, serverId: null, isRevoked: false, scanSeq: -1 })
    return 'enrollment'
  }

  step(): Promise<string> {
    const act = this.random.float()
    if (act < 0.7) return this.batch()
    if (act < 0.8) return this.except()
    if (act < 0.86) return this.withdraw()
    return act < 0.96 ? this.move() : this.replace()
  }
}

async function newCompany(): Promise<Company> {
  const tenant = await hub.tenant(undefined, { planCode: 'dedicated' })
  const company = new Company(tenant, (await hub.user(tenant.companyId, ['*'])).call)
  for (let count = 0; count < 4; count++) company.servers.push(await newServer(tenant))
  for (let count = 0; count < 3; count++)
    company.hosts.push({ host: await enroll(tenant, matcher), serverId: null, isRevoked: false, scanSeq: -1 })
  return company
}

describe('streams', () => {
  test('[SEC-013] [SEC-015] [SEC-038] [SEC-040] [SEC-042] [SEC-043] [SEC-045] two companies, exceptions, repeats and old seqs come out as the contract says, after each step', async () => {
    const companies = [await newCompany(), await newCompany()]
    const stream = new Stream(new Random(seed), companies)
    for (let step = 0; step < STEPS; step++) {
      const what = await stream.step()
      for (const company of companies) await compare(company, `step ${step}: ${what}`)
    }
    expect(companies.reduce((sum, company) => sum + company.lives.size, 0)).toBeGreaterThan(STEPS / 2)
    for (const company of companies)
      for (const { host, scanSeq } of company.hosts) {
        const [row] = await hub.hub.database.client`
          select last_event_seq from security_server_scans where host_id = ${host.hostId}`
        expect(Number(row?.last_event_seq ?? -1)).toBe(scanSeq)
      }
  }, 300_000)
})

describe('at once', () => {
  const countOf = async (hosts: readonly Host[]): Promise<[number, number]> => {
    let [findings, events] = [0, 0]
    for (const { hostId } of hosts) {
      const [row] = await hub.hub.database.client`
        select (select count(*) from security_findings where host_id = ${hostId})::int as findings,
          (select count(*) from security_finding_events where host_id = ${hostId})::int as events`
      findings += row?.findings
      events += row?.events
    }
    return [findings, events]
  }

  test('[SEC-015] [SEC-037] one batch sent several times at once is applied once, and answered the same', async () => {
    const { tenant } = await newCompany()
    const host = await enroll(tenant, matcher)
    const events = Array.from({ length: 200 }, () => opened(host, findingPayload()))
    const answers = await Promise.all(Array.from({ length: 6 }, () => send(matcher, events)))
    for (const answer of answers)
      expect(answer).toEqual({ accepted: events.map(event => event.event_id), rejected: [] })
    expect(await countOf([host])).toEqual([200, 200])
  }, 120_000)

  test('[SEC-021] [SEC-036] overlapping batches of several companies in any order come out as a whole', async () => {
    const random = new Random(seed)
    const hosts: Host[] = []
    for (let count = 0; count < 4; count++) {
      const tenant = await hub.tenant()
      hosts.push(await enroll(tenant, matcher))
    }
    const events = hosts.flatMap(host =>
      Array.from({ length: 30 }, () => {
        const payload = findingPayload()
        return [
          opened(host, payload),
          eventOf(host, 'finding.updated', { ...payload, severity_label: 'high' }),
          eventOf(host, 'server.scanned', scannedPayload()),
        ]
      }).flat(),
    )
    // The order of a batch does not matter to what is stored: each finding's newest seq wins.
    const batches = Array.from({ length: 24 }, () => random.shuffle(events).slice(0, 150))
    batches.push(...[0, 1, 2].map(part => events.slice(part * 120, part * 120 + 120)))
    const answers = await Promise.all(batches.map(batch => send(matcher, batch)))
    for (const [index, { accepted, rejected }] of answers.entries())
      expect([accepted.length, rejected]).toEqual([batches[index]!.length, []])
    expect(await countOf(hosts)).toEqual([120, events.length])
    for (const { companyId } of hosts)
      for (const row of (await findingsOf(hub, companyId)).values())
        expect([row.severity_label, row.status]).toEqual(['high', 'open'])
  }, 120_000)

  test('[SEC-036] [SEC-037] what holds the tables up answers 503, and the same batch is taken once afterwards', async () => {
    const tenant = await hub.tenant()
    const host = await enroll(tenant, matcher)
    const events = [opened(host, findingPayload()), eventOf(host, 'server.scanned', scannedPayload())]
    const { client } = hub.hub.database
    const holder = await client.reserve()
    try {
      await holder`begin`
      await holder`lock table security_finding_events in access exclusive mode`
      const asked = matcher('POST', '/events', { events })
      // A statement that waits is cancelled by the operator of the database.
      await until('the statement that waits is ended', async () => {
        const [row] = await client`
          select pg_cancel_backend(pid) as ended from pg_stat_activity
          where wait_event_type = 'Lock' and query like '%security_finding_events%' and pid <> pg_backend_pid()`
        return row?.ended === true
      })
      const { status, body } = await asked
      expect([status, body.error.code]).toEqual([503, 'server_error'])
    } finally {
      await holder`rollback`
      holder.release()
    }
    expect(await countOf([host])).toEqual([0, 0])
    expect((await send(matcher, events)).accepted).toHaveLength(2)
    expect((await send(matcher, events)).accepted).toHaveLength(2)
    expect(await countOf([host])).toEqual([1, 2])
  }, 120_000)
})
