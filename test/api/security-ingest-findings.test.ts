// What events make of findings and of the scans of a host: transitions, columns, risk, priority and term.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { countStatements } from '../support/count-statements.ts'
import { type Call, type Json, type Tenant, TestHub, until } from './hub-harness.ts'
import {
  enroll,
  eventOf,
  findingPayload,
  findingsOf,
  type Host,
  hex64,
  newServer,
  nextSeq,
  opened,
  resolvedPayload,
  scannedPayload,
  send,
} from './security-event.ts'

let hub: TestHub
let owner: Tenant
let matcher: Call
let host: Host
let serverId: string

beforeAll(async () => {
  hub = await TestHub.start()
  owner = await hub.tenant(undefined, { planCode: 'business' })
  matcher = (await hub.matcher()).call
  serverId = await newServer(owner)
  host = await enroll(owner, matcher, { serverId })
})
afterAll(() => hub.stop())

const finding = async (key: string): Promise<Json> => (await findingsOf(hub, owner.companyId)).get(key)
/** Times as the database shows them. */
const at = (text: string | null): number | null => (text === null ? null : Date.parse(text))
const DAY_MS = 86_400_000

/** Sends one event of a finding, and gives the finding. */
async function tell(type: string, payload: Json, change: Json = {}): Promise<Json> {
  const event = eventOf(host, type, payload, change)
  expect((await send(matcher, [event])).accepted).toEqual([event.event_id])
  return finding(payload.finding_key)
}
const see = (payload: Json, change: Json = {}) => tell('finding.opened', payload, change)
const update = (payload: Json, change: Json = {}) => tell('finding.updated', payload, change)
const resolve = (key: string, payload: Json = {}, change: Json = {}) =>
  tell('finding.resolved', resolvedPayload(key, payload), change)

describe('transitions', () => {
  test.each(['finding.opened', 'finding.updated'])(
    '[SEC-038] [SEC-039] %s of an unknown finding opens it',
    async type => {
      const payload = findingPayload()
      const seq = nextSeq()
      const row = await tell(type, payload, { seq, occurred_at: '2026-06-02T08:00:00.5Z' })
      expect([row.status, Number(row.last_event_seq), at(row.last_seen_at), row.reopened_at]).toEqual([
        'open',
        seq,
        at('2026-06-02T08:00:00.500Z'),
        null,
      ])
    },
  )

  test('[SEC-040] [SEC-041] [SEC-081] an event with a greater seq replaces every column of the payload', async () => {
    const first = findingPayload()
    await see(first)
    const second = {
      ...findingPayload({
        kind: 'release_eol',
        vuln_id: 'SVC-EOL-debian-12',
        aliases: [],
        advisory_ids: ['DSA-2-1', 'DSA-3-1'],
        ecosystem: 'debian:13',
        package_key: '',
        packages: [],
        installed_version: '',
        fixed_version: '',
        fix_status: 'upgrade_release',
        fix_channel: 'elts',
        severity_label: 'high',
        minor: true,
        kernel: true,
        reboot_required: true,
        no_distro_fix: true,
        eol_date: '2026-06-30',
        upgrade_to: ['debian:13'],
        cvss_score: undefined,
        cvss_vector: undefined,
        score_source: undefined,
        db_version: 2026060201,
      }),
      finding_key: first.finding_key,
    }
    const row = await update(second, { server_id: null })
    const { kev: _kev, epss: _epss, first_seen_at: _first, finding_key: _key, ...columns } = second
    for (const [name, value] of Object.entries(columns))
      expect([name, name === 'db_version' ? Number(row[name]) : row[name]]).toEqual([name, value ?? null])
    expect([row.host_id, row.server_id, row.company_id]).toEqual([host.hostId, serverId, owner.companyId])
  })

  test('[SEC-043] [SEC-042] resolving sets reason and time, an opening with a greater seq reopens', async () => {
    const payload = findingPayload()
    await see(payload, { occurred_at: '2026-06-01T12:00:00Z' })
    const seq = nextSeq()
    const gone = await resolve(payload.finding_key, { resolved_at: '2026-06-03T10:00:00Z' }, { seq })
    expect([gone.status, gone.resolved_reason, at(gone.resolved_at), Number(gone.last_event_seq)]).toEqual([
      'resolved',
      'package_updated',
      at('2026-06-03T10:00:00Z'),
      seq,
    ])
    expect(Number(gone.db_version)).toBe(2026060301)
    const back = await see(payload, { occurred_at: '2026-06-05T12:00:00Z' })
    expect([back.status, back.resolved_at, back.resolved_reason, at(back.reopened_at)]).toEqual([
      'open',
      null,
      null,
      at('2026-06-05T12:00:00Z'),
    ])
    expect(back.id).toBe(gone.id)
  })

  test('[SEC-042] an update of a resolved finding reopens it; resolving it again only raises its seq', async () => {
    const payload = findingPayload()
    await see(payload)
    const gone = await resolve(payload.finding_key)
    const seq = nextSeq()
    const again = await resolve(payload.finding_key, { resolved_reason: 'out_of_scope', db_version: 9 }, { seq })
    expect(again).toEqual({ ...gone, last_event_seq: String(seq) })
    expect((await update(payload)).status).toBe('open')
  })

  test('[SEC-044] resolving a finding that there is none of creates none and is stored', async () => {
    const key = hex64()
    expect(await resolve(key)).toBeUndefined()
    const [row] = await hub.hub.database.client`
      select finding_id, type from security_finding_events where payload->>'finding_key' = ${key}`
    expect([row?.finding_id, row?.type]).toEqual([null, 'finding.resolved'])
  })

  test('[SEC-045] [SEC-016] an event with a seq that is not greater changes nothing and is accepted', async () => {
    const payload = findingPayload()
    const seq = nextSeq()
    const before = await see(payload, { seq })
    const changed = { ...payload, severity_label: 'critical', db_version: 9 }
    expect(await update(changed, { seq })).toEqual(before)
    expect(await update(changed, { seq: seq - 1 })).toEqual(before)
    expect(await resolve(payload.finding_key, {}, { seq: 0 })).toEqual(before)
    const rows = await hub.hub.database.client`
      select type from security_finding_events where finding_id = ${before.id} order by seq`
    expect(rows.map(row => row.type)).toEqual([
      'finding.resolved',
      'finding.updated',
      'finding.opened',
      'finding.updated',
    ])
  })

  test('first_seen_at keeps the smallest, last_seen_at the newest applied time', async () => {
    const payload = findingPayload({ first_seen_at: '2026-06-01T00:00:00Z' })
    await see(payload, { occurred_at: '2026-06-10T00:00:00Z' })
    const later = await update(
      { ...payload, first_seen_at: '2026-06-20T00:00:00Z' },
      { occurred_at: '2026-06-05T00:00:00Z' },
    )
    expect([at(later.first_seen_at), at(later.last_seen_at)]).toEqual([
      at('2026-06-01T00:00:00Z'),
      at('2026-06-10T00:00:00Z'),
    ])
    const earlier = await update(
      { ...payload, first_seen_at: '2026-05-01T00:00:00Z' },
      { occurred_at: '2026-06-11T00:00:00Z' },
    )
    expect([at(earlier.first_seen_at), at(earlier.last_seen_at)]).toEqual([
      at('2026-05-01T00:00:00Z'),
      at('2026-06-11T00:00:00Z'),
    ])
  })

  test('[SEC-080] a resync leaves open findings open and makes none twice', async () => {
    const loose = await enroll(owner, matcher)
    const payloads = Array.from({ length: 150 }, () => findingPayload())
    await send(
      matcher,
      payloads.map(payload => opened(loose, payload)),
    )
    const before = await hub.hub.database
      .client`select id from security_findings where host_id = ${loose.hostId} order by id`
    await send(
      matcher,
      payloads.map(payload => opened(loose, payload)),
    )
    const after = await hub.hub.database.client`
      select id, status from security_findings where host_id = ${loose.hostId} order by id`
    expect(after.map(row => [row.id, row.status])).toEqual(before.map(row => [row.id, 'open']))
  })

  test('[SEC-046] [SEC-079] a release past its end is one finding more, and only its own event closes it', async () => {
    const other = findingPayload()
    await see(other)
    const eol = findingPayload({
      kind: 'release_eol',
      vuln_id: 'SVC-EOL-debian-10',
      package_key: '',
      fix_status: 'upgrade_release',
      severity_label: 'high',
      cvss_score: null,
      eol_date: '2024-06-30',
      upgrade_to: ['debian:11'],
    })
    expect((await see(eol)).risk).toBe(80)
    await send(matcher, [eventOf(host, 'server.scanned', scannedPayload({ os: { id: 'debian', version_id: '11' } }))])
    expect((await finding(eol.finding_key)).status).toBe('open')
    const closed = await resolve(eol.finding_key, { kind: 'release_eol', resolved_reason: 'release_upgraded' })
    expect([closed.status, closed.resolved_reason]).toEqual(['resolved', 'release_upgraded'])
    expect((await finding(other.finding_key)).status).toBe('open')
  })
})

describe('risk, priority and term', () => {
  const rated = async (change: Json): Promise<Json> => {
    const row = await see(findingPayload(change))
    const days = row.sla_due_at === null ? null : ((at(row.sla_due_at) ?? 0) - (at(row.first_seen_at) ?? 0)) / DAY_MS
    return [row.risk, row.priority, days]
  }

  test.each([
    [{ cvss_score: 9.8 }, [98, 'p1', 7]],
    [{ cvss_score: 9 }, [90, 'p1', 7]],
    [{ cvss_score: 8.9 }, [89, 'p2', 30]],
    [{ cvss_score: 7 }, [70, 'p2', 30]],
    [{ cvss_score: 4 }, [40, 'p3', 90]],
    [{ cvss_score: 3.9 }, [39, 'p4', 180]],
    [{ cvss_score: 0 }, [0, 'p4', 180]],
    [{ cvss_score: 12 }, [100, 'p1', 7]],
    [{ cvss_score: null, severity_label: 'critical' }, [95, 'p1', 7]],
    [{ cvss_score: null, severity_label: 'high' }, [80, 'p2', 30]],
    [{ cvss_score: null, severity_label: 'important' }, [80, 'p2', 30]],
    [{ cvss_score: null, severity_label: 'medium' }, [50, 'p3', 90]],
    [{ cvss_score: null, severity_label: 'moderate' }, [50, 'p3', 90]],
    [{ cvss_score: null, severity_label: 'low' }, [20, 'p4', 180]],
    [{ cvss_score: null, severity_label: 'negligible' }, [20, 'p4', 180]],
    [{ cvss_score: null, severity_label: 'unimportant' }, [20, 'p4', 180]],
    [{ cvss_score: null, severity_label: '' }, [10, 'p4', 180]],
    [{ cvss_score: null, severity_label: 'constructor' }, [10, 'p4', 180]],
    [{ cvss_score: 9.8, minor: true }, [98, 'p4', 180]],
    [{ cvss_score: 9.8, fix_status: 'no_fix' }, [98, 'p1', null]],
    [{ cvss_score: 9.8, fix_status: 'wont_fix' }, [98, 'p1', null]],
    [{ cvss_score: 9.8, fix_status: 'undetermined' }, [98, 'p1', 7]],
  ])('[SEC-070] %j', async (change, expected) => {
    expect(await rated(change)).toEqual(expected)
  })

  test('[SEC-071] what an event says of kev and epss is a placeholder', async () => {
    const row = await see(findingPayload({ kev: true, epss: 0.9, cvss_score: 5 }))
    expect([row.kev, row.epss, row.risk, row.priority]).toEqual([false, null, 50, 'p3'])
  })

  test('the term of a reopened finding counts from its reopening', async () => {
    const payload = findingPayload({ cvss_score: 9.8, first_seen_at: '2026-01-01T00:00:00Z' })
    await see(payload)
    await resolve(payload.finding_key)
    const back = await see(payload, { occurred_at: '2026-06-05T00:00:00Z' })
    expect([at(back.first_seen_at), at(back.sla_due_at)]).toEqual([
      at('2026-01-01T00:00:00Z'),
      at('2026-06-12T00:00:00Z'),
    ])
  })
})

describe('reference data', () => {
  const vuln = () => `CVE-2026-${randomUUID()}`
  const put = async (...items: Json[]) => {
    const { status, body } = await matcher('PUT', '/vulnerabilities', { items })
    expect([status, body.error]).toEqual([200, undefined])
    return body.data
  }

  test('[SECU-017] kev and epss reach open findings of every company, which are rated again; kev then stays', async () => {
    const id = vuln()
    const stranger = await hub.tenant()
    const theirs = await enroll(stranger, matcher)
    const [ours, others] = [
      findingPayload({ vuln_id: id, cvss_score: 5 }),
      findingPayload({ vuln_id: id, cvss_score: 5 }),
    ]
    const bystander = findingPayload({ cvss_score: 5 })
    await send(matcher, [opened(host, ours), opened(theirs, others), opened(host, bystander)])
    expect(await put({ vuln_id: id, kev: true, kev_due_date: '2026-07-01', epss: 0.5, aliases: ['A-1'] })).toEqual({
      upserted: 1,
    })
    const shown = (row: Json) => [row.kev, row.kev_due_date, row.epss, row.aliases, row.risk, row.priority]
    const expected = [true, '2026-07-01', 0.5, ['A-1'], 60, 'p1']
    expect(shown(await finding(ours.finding_key))).toEqual(expected)
    expect(shown((await findingsOf(hub, stranger.companyId)).get(others.finding_key))).toEqual(expected)
    expect((await finding(bystander.finding_key)).priority).toBe('p3')
    const row = await finding(ours.finding_key)
    expect((at(row.sla_due_at) ?? 0) - (at(row.first_seen_at) ?? 0)).toBe(7 * DAY_MS)
    // A later event does not know of it.
    expect((await update({ ...ours, installed_version: '3.0.1-0' })).kev).toBe(true)
    // Nor does a new finding of the same vulnerability.
    expect((await see(findingPayload({ vuln_id: id, cvss_score: 5 }))).priority).toBe('p1')
    await put({ vuln_id: id, kev: false })
    expect(shown(await finding(ours.finding_key)).slice(0, 3)).toEqual([false, '2026-07-01', 0.5])
    expect((await finding(ours.finding_key)).priority).toBe('p3')
  })

  test('a resolved finding takes them over when it opens again', async () => {
    const payload = findingPayload({ vuln_id: vuln(), cvss_score: 5 })
    await see(payload)
    await resolve(payload.finding_key)
    await put({ vuln_id: payload.vuln_id, kev: true })
    expect((await finding(payload.finding_key)).kev).toBe(false)
    expect((await see(payload)).priority).toBe('p1')
  })

  test('more findings than one transaction rates are rated by jobs', async () => {
    const id = vuln()
    const seed = findingPayload({ vuln_id: id, cvss_score: 5 })
    await see(seed)
    await hub.hub.database.client`
      insert into security_findings (id, company_id, host_id, finding_key, kind, vuln_id, ecosystem, package_key, installed_version,
        fixed_version, fix_status, fix_channel, severity_label, minor, kernel, reboot_required, cvss_score, risk, priority, status,
        first_seen_at, last_seen_at, last_event_seq, db_version)
      select gen_random_uuid(), company_id, host_id, md5(n::text) || md5((-n)::text), kind, vuln_id, ecosystem, package_key,
        installed_version, fixed_version, fix_status, fix_channel, severity_label, minor, kernel, reboot_required, cvss_score, risk,
        priority, status, first_seen_at, last_seen_at, last_event_seq, db_version
      from security_findings, generate_series(1, 4500) n where finding_key = ${seed.finding_key}`
    await put({ vuln_id: id, kev: true })
    await until('all are rated', async () => {
      const [row] = await hub.hub.database.client`
        select count(*)::int as left from security_findings where vuln_id = ${id} and priority <> 'p1'`
      return row?.left === 0
    })
  }, 120_000)

  test('members that are left out stay, those that are null go', async () => {
    const id = vuln()
    await put({
      vuln_id: id,
      title: 'T',
      description: 'D',
      cvss_score: 5.5,
      references: ['https://x.example/'],
      severity: 'low',
    })
    await put({ vuln_id: id, title: 'U', description: null, modified_at: '2026-06-01T00:00:00Z' })
    const [row] = await hub.hub.database.client`select * from security_vulnerabilities where vuln_id = ${id}`
    expect([row?.title, row?.description, row?.cvss_score, row?.reference_urls, row?.severity]).toEqual([
      'U',
      null,
      5.5,
      ['https://x.example/'],
      'low',
    ])
  })

  test.each([
    [{}],
    [{ items: [] }],
    [{ items: Array.from({ length: 501 }, () => ({ vuln_id: 'x' })) }],
    [{ items: [{ title: 'x' }] }],
    [{ items: [{ vuln_id: '' }] }],
    [{ items: [{ vuln_id: 'x', cvss_score: 11 }] }],
    [{ items: [{ vuln_id: 'x', kev: 'yes' }] }],
    [{ items: [{ vuln_id: 'x', epss: 2 }] }],
    [{ items: [{ vuln_id: 'x', kev_due_date: '2026-02-30' }] }],
    [{ items: [{ vuln_id: 'x', references: 'none' }] }],
    ['{'],
  ])('a body that is wrong answers 422 invalid_data', async body => {
    const { status, body: answer } = await matcher('PUT', '/vulnerabilities', body)
    expect([status, answer.error.code]).toEqual([422, 'invalid_data'])
  })
})

describe('scans', () => {
  const scan = async (hostId: string): Promise<Json> =>
    (await hub.hub.database.client`select * from security_server_scans where host_id = ${hostId}`)[0]

  test('[SEC-034] [SEC-035] [SEC-051] the newest report of a host is one row; an older one leaves it and is accepted', async () => {
    const seq = nextSeq()
    const told = async (change: Json, number: number) => {
      const { accepted } = await send(matcher, [
        eventOf(host, 'server.scanned', scannedPayload(change), { seq: number }),
      ])
      expect(accepted).toHaveLength(1)
      return scan(host.hostId)
    }
    const first = await told({ package_count: 10, error_codes: ['no_packages'] }, seq + 10)
    expect([first.package_count, first.error_codes, first.server_id, Number(first.last_event_seq)]).toEqual([
      10,
      ['no_packages'],
      serverId,
      seq + 10,
    ])
    expect(await told({ package_count: 9 }, seq + 10)).toEqual(first)
    expect(await told({ package_count: 9 }, seq + 5)).toEqual(first)
    const second = await told({ package_count: 11, match_status: 'no_db', release_support: '' }, seq + 11)
    expect([second.package_count, second.match_status, second.release_support]).toEqual([11, 'no_db', ''])
    const [known] = await hub.hub.database
      .client`select scanner_version, last_report_at from scan_hosts where host_id = ${host.hostId}`
    expect([known?.scanner_version, at(String(known?.last_report_at))]).toEqual(['1.2.3', at('2026-06-01T12:00:00Z')])
  })

  test('[MAT-153] [MAT-254] what a first database finds tells that the report is compared now, without another one', async () => {
    const fresh = async (): Promise<Host> => {
      const made = await enroll(owner, matcher)
      await send(matcher, [eventOf(made, 'server.scanned', scannedPayload({ match_status: 'no_db', db_version: 0 }))])
      return made
    }
    const told = async ({ hostId }: Host) => {
      const { match_status, db_version, package_count, scanned_at } = await scan(hostId)
      return [match_status, Number(db_version), package_count, at(scanned_at)]
    }
    const reported = [800, at('2026-06-01T12:00:00Z')]
    const found = await fresh()
    await send(matcher, [opened(found, findingPayload())])
    expect(await told(found)).toEqual(['ok', 2026060101, ...reported])
    const ended = await fresh()
    const end = findingPayload({ kind: 'release_eol', package_key: '', fix_status: 'upgrade_release' })
    await send(matcher, [opened(ended, end), opened(ended, findingPayload())])
    expect(await told(ended)).toEqual(['release_eol', 2026060101, ...reported])
    // What says nothing of a newer database, or was sent before the report, leaves it.
    const unknown = await fresh()
    await send(matcher, [opened(unknown, findingPayload({ db_version: 0 }))])
    await send(matcher, [opened(unknown, findingPayload(), { seq: 1 })])
    await send(matcher, [
      opened(unknown, findingPayload()),
      eventOf(unknown, 'server.scanned', scannedPayload({ match_status: 'no_db' })),
      opened(unknown, findingPayload()),
    ])
    expect(await told(unknown)).toEqual(['no_db', 2026060101, ...reported])
    await send(matcher, [
      eventOf(unknown, 'server.scanned', scannedPayload({ match_status: 'no_db' })),
      opened(unknown, findingPayload({ db_version: 2026060102 })),
    ])
    expect(await told(unknown)).toEqual(['ok', 2026060102, ...reported])
  })

  test('a batch with reports and findings of several hosts is applied as a whole', async () => {
    const hosts = [await enroll(owner, matcher), await enroll(owner, matcher)]
    await send(
      matcher,
      hosts.flatMap(each => [opened(each, findingPayload()), eventOf(each, 'server.scanned', scannedPayload())]),
    )
    for (const each of hosts) expect((await scan(each.hostId)).match_status).toBe('ok')
  })
})

test('a batch of many findings takes no more statements than a batch of few', async () => {
  const sentFor = (count: number): Promise<number> =>
    countStatements(hub.hub.database.client, () =>
      send(
        matcher,
        Array.from({ length: count }, () => opened(host, findingPayload())),
      ),
    )
  // Other statements than those of the batch come now and then.
  const least = async (count: number) => Math.min(await sentFor(count), await sentFor(count), await sentFor(count))
  const few = await least(2)
  expect(few).toBeLessThanOrEqual(12)
  expect(await least(200)).toBe(few)
})
