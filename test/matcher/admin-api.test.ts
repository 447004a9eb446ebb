// The internal API: what the hub asks of packages, and what it deletes.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import type { SecurityEvent } from '../../core/matching/finding-event.ts'
import { until } from '../support/until.ts'
import { nameDatabase } from './databases.ts'
import { Rig } from './rig.ts'
import { packagesOf, reportOf, type ScanClient } from './scan-client.ts'

type Row = { name: string; arch: string; version: string; server_id: string; source_name: string; ecosystem: string }
let rig: Rig

beforeAll(async () => {
  rig = await new Rig({
    keys: { 'admin.token_previous': 'token-before' },
    prepare: async dir => void (await nameDatabase(dir, { openssl: { 'CVE-2024-0001': '3.0.13-1~deb12u1' } })),
  }).start()
  await until('the first whole sync', () => rig.state.feed().syncedAtMs !== null && rig.state.currentVersion() > 0)
})
afterAll(() => rig.dispose())

type Packages = ReturnType<typeof packagesOf>

/** An attached host of a company that has reported. */
async function attached(company: string, name: string, packages?: Packages): Promise<ScanClient & { server: string }> {
  rig.hub.codes.set(company, company)
  const client = await rig.enrolled(name, company)
  const server = randomUUID()
  rig.hub.putHost({ host_id: client.hostId, server_id: server })
  await until('the server', () => rig.state.host(client.hostId)?.serverId === server)
  const report = reportOf(name, packages ? { packages } : {})
  expect((await client.report(report)).status).toBe(200)
  return Object.assign(client, { server })
}

const itemsOf = (data: Record<string, unknown>): Row[] => data.items as Row[]

async function allPages(path: string, limit: number): Promise<Row[]> {
  const rows: Row[] = []
  for (let cursor: string | null = null; ; ) {
    const answer = await rig.admin('GET', `${path}&limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`)
    expect(answer.status).toBe(200)
    expect(itemsOf(answer.data).length).toBeLessThanOrEqual(limit)
    rows.push(...itemsOf(answer.data))
    cursor = answer.data.next_cursor as string | null
    if (cursor === null) return rows
  }
}

describe('who may call, and how faults look', () => {
  test('a token is needed, the one before counts while it is configured', async () => {
    for (const token of ['', 'wrong', 'token-before ', `${'a'.repeat(10_000)}`])
      expect(await rig.admin('GET', '/status', token === 'token-before ' ? 'x' : token)).toMatchObject({
        status: 401,
        code: 'unauthorized',
      })
    expect((await rig.admin('GET', '/status', 'token-before')).status).toBe(200)
    expect(await rig.admin('GET', '/nothing')).toMatchObject({ status: 404, code: 'not_found' })
    expect(await rig.admin('POST', '/status')).toMatchObject({ status: 405, code: 'method_not_allowed' })
    expect(await rig.admin('POST', '/status', 'wrong')).toMatchObject({ status: 401 })
  })

  test('[MAT-200] company_id is required and a UUID; what is not there is 404, whoever has it', async () => {
    const [company, other] = [randomUUID(), randomUUID()]
    const { server } = await attached(company, 'mine')
    const unattached = randomUUID()
    for (const query of ['', '?company_id=', '?company_id=1', '?company_id=..%2f'])
      expect(await rig.admin('GET', `/servers/${server}/packages${query}`)).toMatchObject({
        status: 400,
        code: 'bad_request',
      })
    expect(await rig.admin('GET', `/companies/none/summary`)).toMatchObject({ status: 400 })
    const answers = [
      await rig.admin('GET', `/servers/${server}/packages?company_id=${other}`),
      await rig.admin('GET', `/servers/${unattached}/packages?company_id=${company}`),
    ]
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, code: 'not_found' })
    expect(answers[0]!.body).toEqual(answers[1]!.body)
    expect(
      (await rig.admin('GET', `/servers/${server.toUpperCase()}/packages?company_id=${company.toUpperCase()}`)).status,
    ).toBe(200)
  })
})

describe('packages of a server', () => {
  test('[MAT-201] pages are in order, and q is a literal part of a name in any case', async () => {
    const company = randomUUID()
    const names = Array.from({ length: 120 }, (_, index) => `pkg-${String((index * 37) % 120).padStart(3, '0')}`)
    const packages = packagesOf(...names.map(name => [name, '1', name === 'pkg-007' ? 'Source_x' : name] as const))
    const { server } = await attached(company, 'many', packages)
    const path = `/servers/${server}/packages?company_id=${company}`
    const rows = await allPages(path, 7)
    expect(rows.map(row => row.name)).toEqual(names.toSorted())
    expect(rows[0]).toEqual({
      server_id: server,
      name: 'pkg-000',
      version: '1',
      arch: 'amd64',
      source_name: 'pkg-000',
      source_version: '1',
      ecosystem: 'debian:12',
    } as never)
    const found = async (q: string) =>
      itemsOf((await rig.admin('GET', `${path}&q=${encodeURIComponent(q)}`)).data).map(row => row.name)
    expect(await found('KG-00')).toHaveLength(10)
    expect(await found('source_')).toEqual(['pkg-007'])
    expect([await found('%'), await found('pkg.0'), await found('p_g')]).toEqual([[], [], []])
    expect(itemsOf((await rig.admin('GET', path)).data)).toHaveLength(100)
    for (const wrong of ['limit=0', 'limit=501', 'limit=x', 'q=', `q=${'a'.repeat(129)}`])
      expect(await rig.admin('GET', `${path}&${wrong}`)).toMatchObject({ status: 400, code: 'bad_request' })
    expect((await rig.admin('GET', `${path}&limit=500&q=${'a'.repeat(128)}`)).status).toBe(200)
  })

  test('[MAT-201] a cursor is of its company, server and q; a foreign or broken one is refused', async () => {
    const company = randomUUID()
    const [a, b] = [await attached(company, 'a'), await attached(company, 'b')]
    const pageOf = (server: string, more: string) =>
      rig.admin('GET', `/servers/${server}/packages?company_id=${company}&limit=1${more}`)
    const cursor = String((await pageOf(a.server, '')).data.next_cursor)
    expect((await pageOf(a.server, `&cursor=${cursor}`)).status).toBe(200)
    const refused = { status: 400, code: 'bad_request' }
    expect(await pageOf(b.server, `&cursor=${cursor}`)).toMatchObject(refused)
    expect(await pageOf(a.server, `&q=b&cursor=${cursor}`)).toMatchObject(refused)
    const flipped = `${cursor[0] === 'A' ? 'B' : 'A'}${cursor.slice(1)}`
    for (const wrong of [flipped, cursor.slice(0, -1), `${cursor}AAAA`, '', 'null', '%00', 'x'.repeat(9000)])
      expect(await pageOf(a.server, `&cursor=${wrong}`)).toMatchObject(refused)
  })

  test('[MAT-201] no name that a report may have hides the packages behind it', async () => {
    const company = randomUUID()
    for (const character of ['\u4e2d', '\u0001']) {
      const long = character.repeat(256)
      const listed = packagesOf(['a', '1'], [long, long], [`${long.slice(1)}\uffee`, '1'], ['\uffef', '1'])
      const client = await attached(company, `long ${character.charCodeAt(0)}`, listed)
      expect(await allPages(`/servers/${client.server}/packages?company_id=${company}`, 1)).toHaveLength(4)
    }
  })

  test('[MAT-202] a report that comes between pages lets no row come twice', async () => {
    const company = randomUUID()
    const names = Array.from({ length: 60 }, (_, index) => `n${String(index).padStart(2, '0')}`)
    const client = await attached(company, 'moves', packagesOf(...names.map(name => [name, '1'] as const)))
    const path = `/servers/${client.server}/packages?company_id=${company}&limit=20`
    const first = await rig.admin('GET', path)
    const later = names.filter(name => name !== 'n05' && name !== 'n40').concat('n00a', 'n30a')
    await client.report(reportOf('moves', { packages: packagesOf(...later.map(name => [name, '2'] as const)) }))
    const rows = [...itemsOf(first.data)]
    for (let cursor = first.data.next_cursor; cursor !== null; ) {
      const page = await rig.admin('GET', `${path}&cursor=${String(cursor)}`)
      rows.push(...itemsOf(page.data))
      cursor = page.data.next_cursor
    }
    const seen = rows.map(row => `${row.name} ${row.arch} ${row.version}`)
    expect(new Set(seen).size).toBe(seen.length)
    // The row after which it goes on has another version now, and so is another row.
    const rest = rows.slice(20).map(row => row.name)
    expect(rest).toEqual(later.filter(name => name >= 'n19').toSorted())
  })
})

describe('search', () => {
  test('[MAT-203] [MAT-204] servers by a package, its version from and below, one row each', async () => {
    const company = randomUUID()
    const versions = ['1.0-1', '1.0-2', '2.0~rc1-1', '2.0-1', '10.0-1']
    const servers = new Map<string, string>()
    for (const version of versions) {
      const packages = packagesOf(['libx', version, 'xsource'], ['bash', '5'])
      servers.set((await attached(company, `v ${version}`, packages)).server, version)
    }
    const search = async (query: string) => {
      const rows = await allPages(`/companies/${company}/packages/search?${query}`, 2)
      expect(rows.map(row => row.server_id)).toEqual(rows.map(row => row.server_id).toSorted())
      return rows.map(row => servers.get(row.server_id)!).toSorted((a, b) => versions.indexOf(a) - versions.indexOf(b))
    }
    expect(await search('name=libx')).toEqual(versions)
    expect(await search('name=xsource')).toEqual(versions)
    expect(await search('name=lib')).toEqual([])
    expect(await search('name=libx&version_lt=2.0-1')).toEqual(['1.0-1', '1.0-2', '2.0~rc1-1'])
    expect(await search('name=libx&version_gte=1.0-2&version_lt=10.0-1')).toEqual(['1.0-2', '2.0~rc1-1', '2.0-1'])
    expect(await search('name=xsource&version_gte=2.0-1')).toEqual(['2.0-1', '10.0-1'])
    expect(await search('name=libx&ecosystem=debian:12')).toEqual(versions)
    expect(await search('name=libx&ecosystem=debian:11')).toEqual([])
    const path = `/companies/${company}/packages/search`
    for (const wrong of [
      '',
      '?name=',
      '?name=libx&version_lt=a%20b',
      '?name=libx&version_gte=x%3A1',
      '?name=libx&limit=0',
    ])
      expect(await rig.admin('GET', `${path}${wrong}`)).toMatchObject({ status: 400, code: 'bad_request' })
    // The bound at fault is named, whichever of the two it is.
    for (const [from, below, named] of [
      ['a%20b', '2.0', 'version_gte'],
      ['2.0', 'a%20b', 'version_lt'],
    ] as const) {
      const answer = await rig.admin('GET', `${path}?name=libx&version_gte=${from}&version_lt=${below}`)
      expect(JSON.stringify(answer.body)).toContain(named)
    }
  })
})

describe('companies', () => {
  test('[MAT-189] two companies with equal packages: no answer shows the other', async () => {
    const [company, other] = [randomUUID(), randomUUID()]
    const mine = await attached(company, 'twin 1')
    await attached(other, 'twin 2')
    const search = await rig.admin('GET', `/companies/${company}/packages/search?name=openssl`)
    expect(itemsOf(search.data).map(row => row.server_id)).toEqual([mine.server])
    expect((await rig.admin('GET', `/companies/${company}/summary`)).data).toMatchObject({
      servers: 1,
      ecosystems: { 'debian:12': 1 },
      open_findings: 1,
    })
    const nobody = await rig.admin('GET', `/companies/${randomUUID()}/summary`)
    expect(nobody.data).toEqual({ servers: 0, oldest_report_ms: null, ecosystems: {}, open_findings: 0 })
  })

  test('[MAT-207] [MAT-208] data are deleted, again and for what never was; a report of before is refused, one of after is taken', async () => {
    const company = randomUUID()
    const client = await attached(company, 'purged')
    const old = reportOf('purged', { packages: packagesOf(['bash', '1']) })
    expect((await rig.admin('DELETE', `/companies/${company}/data`)).status).toBe(204)
    expect((await rig.admin('DELETE', `/companies/${company}/data`)).status).toBe(204)
    expect((await rig.admin('DELETE', `/companies/${randomUUID()}/data`)).status).toBe(204)
    expect((await rig.admin('DELETE', `/servers/${randomUUID()}/data?company_id=${company}`)).status).toBe(204)
    expect(await rig.admin('DELETE', `/servers/${client.server}/data`)).toMatchObject({ status: 400 })
    expect((await rig.admin('GET', `/servers/${client.server}/packages?company_id=${company}`)).status).toBe(404)
    expect(await client.report(old)).toMatchObject({ status: 409, code: 'purged' })
    expect((await client.report(reportOf('purged'))).status).toBe(200)
    expect((await rig.admin('GET', `/servers/${client.server}/packages?company_id=${company}`)).status).toBe(200)
    expect((await rig.admin('DELETE', `/servers/${client.server}/data?company_id=${company}`)).status).toBe(204)
    expect((await rig.admin('GET', `/servers/${client.server}/packages?company_id=${company}`)).status).toBe(404)
  })

  test('[MAT-209] a company that is deleted while it reports, resyncs and is matched again: what comes after the 204 was reported after it', async () => {
    const company = randomUUID()
    rig.hub.settings.set(company, { scan_interval_hours: 1e-9, min_scan_interval_hours: 1e-9 })
    const quiet = await attached(company, 'quiet')
    const clients = await Promise.all(Array.from({ length: 6 }, (_, index) => attached(company, `busy ${index}`)))
    const taken = () => rig.hub.taken.filter(event => event.company_id === company)
    await until('all to be told', () => new Set(taken().map(event => event.host_id)).size === 7)
    const { promise: isLetGo, resolve: letGo } = Promise.withResolvers<void>()
    rig.hub.script = ({ path, body }) => {
      const events = (body.events ?? []) as SecurityEvent[]
      if (path !== '/events' || events[0]?.company_id !== company) return null
      return isLetGo.then(() => {
        rig.hub.taken.push(...events)
        return rig.hub.ok({ accepted: events.map(event => event.event_id), rejected: [] })
      })
    }
    let isOver = false
    const statuses = new Set<string>()
    let takenAfter = 0
    let deletedAtMs = Number.POSITIVE_INFINITY
    const reporting = clients.map(async client => {
      for (let round = 0; !isOver; round++) {
        const sentAtMs = client.nextTimeMs()
        const packages = packagesOf(['openssl', `3.0.${round % 12}`])
        const { status, code } = await client.report(reportOf(client.name, { collected_at_ms: sentAtMs, packages }))
        statuses.add(`${status} ${code}`)
        if (status === 200 && sentAtMs > deletedAtMs) takenAfter++
      }
    })
    await until('much to wait', () => rig.state.counters().outboxDepth > 100)
    expect(await rig.admin('POST', `/resync?company_id=${company}`)).toMatchObject({ status: 200 })
    await nameDatabase(rig.dir, { openssl: { 'CVE-2024-0001': '3.0.99-1' } })
    const version = rig.state.currentVersion()
    await until('the next database', () => rig.state.currentVersion() > version)
    const askedAtMs = Date.now()
    const deleted = rig.admin('DELETE', `/companies/${company}/data`)
    letGo()
    expect((await deleted).status).toBe(204)
    deletedAtMs = Date.now()
    const before = taken().length
    await until('reports of after it', () => takenAfter > 20)
    isOver = true
    await Promise.all(reporting)
    await rig.delivered()
    rig.hub.script = () => null
    expect([...statuses].filter(status => status !== '200 ' && status !== '409 purged')).toEqual([])
    const after = taken().slice(before)
    expect(after.length).toBeGreaterThan(20)
    expect(after.filter(event => event.host_id === quiet.hostId || Date.parse(event.occurred_at) < askedAtMs)).toEqual(
      [],
    )
    // Each host begins anew: nothing is left of what it had open.
    const openedAt = after.flatMap(({ payload }) => ('first_seen_at' in payload ? [payload.first_seen_at] : []))
    expect(openedAt.length).toBeGreaterThan(0)
    expect(openedAt.filter(time => Date.parse(time) < askedAtMs)).toEqual([])
  })

  test('[MAT-171] a resync opens every open finding anew, and a second one adds nothing while it lasts', async () => {
    const company = randomUUID()
    const client = await attached(company, 'again')
    await rig.delivered()
    const before = rig.told(client.hostId)
    const answer = await rig.admin('POST', `/resync?company_id=${company}`)
    expect(answer).toMatchObject({ status: 200, data: { events: 1 } })
    await until('the finding', () => rig.told(client.hostId).length === before.length + 1)
    const last = rig.told(client.hostId).at(-1)!
    expect(last.type).toBe('finding.opened')
    expect(last.seq).toBeGreaterThan(Math.max(...before.map(event => event.seq)))
    expect(await rig.admin('POST', '/resync')).toMatchObject({ status: 400 })
  })
})

test('[MAT-210] the status says versions, sources, hosts, outbox and re-match; an update is started', async () => {
  const { data } = await rig.admin('GET', '/status')
  expect(data).toMatchObject({
    version: expect.any(String),
    db_version: rig.state.currentVersion(),
    sources: [{ name: 'debian', age_seconds: expect.any(Number), fault: null }],
    hosts: { ok: expect.any(Number) },
    outbox: { depth: expect.any(Number), dead_letters: 0, unauthorized: false },
    rematch: { state: 'idle' },
  })
  expect((await rig.admin('POST', '/db/update')).status).toBe(202)
})
