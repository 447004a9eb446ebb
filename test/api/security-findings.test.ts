import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { addUpFindingCounts } from '../../apps/hub/security/findings/finding-page.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'
import { finding, type SeededFinding, seedFindings, seedHost } from './security-rig.ts'

let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
})
afterAll(() => hub.stop())

const get = async (path: string, by: Pick<Tenant, 'call'> = tenant): Promise<Json> => {
  const { status, body } = await by.call('GET', path)
  if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`)
  return body
}
const server = async (by: Tenant, name: string = crypto.randomUUID()): Promise<string> =>
  (await by.call('POST', '/servers', { name })).body.data.id

/** A small generator whose seed is printed. */
function random(seed: number): { below(max: number): number; of<T>(items: readonly T[]): T } {
  let state = seed >>> 0
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const below = (max: number) => Math.floor(next() * max)
  return { below, of: items => items[below(items.length)]! }
}

const STATUSES = ['open', 'resolved', 'accepted', 'false_positive']
const PRIORITIES = ['p1', 'p2', 'p3', 'p4']
const FIXES = ['fixed', 'no_fix', 'wont_fix', 'undetermined', 'upgrade_release']
const LABELS = ['critical', 'high', 'medium', 'low', '']
const PACKAGES = ['openssl', 'linux', 'curl', 'libxml2', 'nginx', '50%_\\off']

describe('the list of findings', () => {
  test('[SECU-003] any combination of filters has the rows, the order and the total of a list that is filtered one by one', async () => {
    const seed = Number(process.env.SVC_FUZZ_SEED ?? Date.now() % 1_000_000)
    console.log(`seed ${seed}`)
    const { below, of } = random(seed)
    const owner = await hub.tenant()
    const other = await hub.tenant()
    const servers = [await server(owner), await server(owner)]
    const hosts = [
      ...(await Promise.all(servers.map(id => seedHost(hub, owner.companyId, id)))),
      await seedHost(hub, owner.companyId),
    ]
    const rows: SeededFinding[] = Array.from({ length: 700 }, () => {
      const host = below(3)
      const number = below(12)
      return finding(owner.companyId, hosts[host]!, {
        server_id: servers[host] ?? null,
        vuln_id: `CVE-2024-${1000 + number}`,
        aliases: below(3) === 0 ? [`GHSA-${number}-${below(3)}`, 'DSA-1'] : [],
        package_key: of(PACKAGES),
        kind: of(['vulnerability', 'vulnerability', 'release_eol', 'secret', 'sensitive_data']),
        status: of(STATUSES),
        priority: of(PRIORITIES),
        severity_label: of(LABELS),
        fix_status: of(FIXES),
        kev: below(4) === 0,
        risk: below(6) * 20,
      })
    })
    await seedFindings(hub, rows.slice(0, 400))
    await seedFindings(hub, [finding(other.companyId, await seedHost(hub, other.companyId))])
    const { client, db } = hub.hub.database
    const change = async () => {
      // Counts stand in two tables: some added up, some not yet.
      for (const row of rows) {
        if (below(6) !== 0) continue
        row.status = of(STATUSES)
        row.kev = below(2) === 0
        await client`update security_findings set status = ${row.status}, kev = ${row.kev} where id = ${row.id}`
      }
    }
    await addUpFindingCounts(db)
    await seedFindings(hub, rows.slice(400))
    await change()
    const contains = (row: SeededFinding, term: string) =>
      [row.vuln_id, row.package_key, ...row.aliases].some(text => text.toLowerCase().includes(term.toLowerCase()))
    const check = async () => {
      const filter: Record<string, string> = {}
      if (below(3) === 0) filter.status = of(STATUSES)
      if (below(4) === 0) filter.kind = of(['vulnerability', 'release_eol', 'secret'])
      if (below(4) === 0) filter.priority = of(PRIORITIES)
      if (below(4) === 0) filter.severity_label = of(['critical', 'high', 'medium'])
      if (below(4) === 0) filter.fix_status = of(FIXES)
      if (below(4) === 0) filter.kev = of(['true', 'false', '1', '0'])
      if (below(3) === 0) filter.server_id = of([...servers, 'none', crypto.randomUUID()])
      if (below(4) === 0) filter.vuln_id = `CVE-2024-${1000 + below(14)}`
      if (below(3) === 0) filter.search = of(['cve-2024-100', 'SSL', 'ghsa-3', 'DSA', '%', '_', '\\', 'nothing', 'x'])
      const expected = rows.filter(
        row =>
          (filter.status === undefined || row.status === filter.status) &&
          (filter.kind === undefined || row.kind === filter.kind) &&
          (filter.priority === undefined || row.priority === filter.priority) &&
          (filter.severity_label === undefined || row.severity_label === filter.severity_label) &&
          (filter.fix_status === undefined || row.fix_status === filter.fix_status) &&
          (filter.kev === undefined || row.kev === (filter.kev === 'true' || filter.kev === '1')) &&
          (filter.server_id === undefined || (row.server_id ?? 'none') === filter.server_id) &&
          (filter.vuln_id === undefined || row.vuln_id === filter.vuln_id) &&
          (filter.search === undefined || contains(row, filter.search)),
      )
      const query = new URLSearchParams(filter).toString()
      const found: Json[] = []
      const pages = Math.max(1, Math.ceil(expected.length / 15))
      for (let page = 1; page <= pages; page++) {
        const body = await get(`/security/findings?${query}&page=${page}`, owner)
        expect([query, page, body.meta.total]).toEqual([query, page, expected.length])
        expect([query, page, body.data.length]).toEqual([query, page, Math.min(15, expected.length - (page - 1) * 15)])
        found.push(...body.data)
      }
      expect([query, found.map(row => row.id).sort()]).toEqual([query, expected.map(row => row.id).sort()])
      const risks = found.map(row => row.risk)
      expect([query, risks]).toEqual([query, risks.toSorted((a, b) => b - a)])
      expect((await get(`/security/findings?${query}&page=999`, owner)).data).toEqual([])
    }
    for (let round = 0; round < 25; round++) await check()
    await addUpFindingCounts(db)
    for (let round = 0; round < 25; round++) await check()
    await client`delete from security_findings where company_id = ${owner.companyId} and risk < 60`
    rows.splice(0, rows.length, ...rows.filter(row => row.risk >= 60))
    await change()
    for (let round = 0; round < 10; round++) await check()
  })

  test('[SECU-003] a great many findings that only names tell apart are paged through to the last, each once', async () => {
    const owner = await hub.tenant()
    const hostId = await seedHost(hub, owner.companyId)
    const alike = Array.from({ length: 760 }, (_, index) =>
      finding(owner.companyId, hostId, { vuln_id: `CVE-2024-${index % 9}`, aliases: index % 2 ? ['DSA-1'] : [] }),
    )
    const others = Array.from({ length: 20 }, () => finding(owner.companyId, hostId, { risk: 10 }))
    await seedFindings(hub, alike.slice(0, 500))
    await addUpFindingCounts(hub.hub.database.db)
    await seedFindings(hub, [...others, ...alike.slice(500)])
    const found: string[] = []
    for (let page = 1; page <= 52; page++)
      found.push(...(await get(`/security/findings?status=open&page=${page}`, owner)).data.map((row: Json) => row.id))
    expect(found).toHaveLength(780)
    expect(found.slice(0, 760).sort()).toEqual(alike.map(row => row.id).sort())
    expect(found.slice(760).sort()).toEqual(others.map(row => row.id).sort())
  })

  test('[SECU-003] a great many changes are added up before the clock comes to it', async () => {
    const owner = await hub.tenant()
    const hostId = await seedHost(hub, owner.companyId)
    const { database, findingSums } = hub.hub
    await hub.holdTask('finding_counts')
    const waiting = async () =>
      (await database.client`select 1 from security_finding_count_changes where company_id = ${owner.companyId}`).length
    await seedFindings(hub, [finding(owner.companyId, hostId), finding(owner.companyId, hostId, { risk: 10 })])
    findingSums.note(2)
    await findingSums.settled()
    // So few are left to the clock.
    expect(await waiting()).toBe(2)
    findingSums.note(1998)
    await findingSums.settled()
    expect(await waiting()).toBe(0)
    expect((await get('/security/findings', owner)).meta.total).toBe(2)
  })

  test('[SECU-003] a finding has every column, its server, and its events in the detail', async () => {
    const owner = await hub.tenant()
    const serverId = await server(owner, 'web-1')
    const hostId = await seedHost(hub, owner.companyId, serverId)
    const row = finding(owner.companyId, hostId, { server_id: serverId, aliases: ['GHSA-1'] })
    await seedFindings(hub, [row])
    const { client } = hub.hub.database
    await client`insert into security_finding_events (event_id, company_id, host_id, server_id, finding_id, seq, type, occurred_at, payload)
      values (${'a'.repeat(64)}, ${owner.companyId}, ${hostId}, ${serverId}, ${row.id}, 1, 'finding.opened', now(), '{"x": 1}')`
    const [listed] = (await get('/security/findings', owner)).data
    expect(listed).toMatchObject({
      id: row.id,
      company_id: owner.companyId,
      server_id: serverId,
      server: { id: serverId, name: 'web-1', hostname: null },
      host_id: hostId,
      finding_key: row.finding_key,
      packages: [{ name: 'openssl', version: '1.0', arch: 'amd64' }],
      risk: 80,
      priority: 'p2',
      aliases: ['GHSA-1'],
      first_seen_at: row.first_seen_at,
    })
    const { data } = await get(`/security/findings/${row.id}`, owner)
    expect(data).toMatchObject({ ...listed, vulnerability: null })
    expect(data.events).toMatchObject([{ seq: 1, type: 'finding.opened', payload: { x: 1 } }])
  })

  test('[SECU-003] values outside the filters are refused, and empty ones count as absent', async () => {
    for (const query of [
      'status=closed',
      'kind=x',
      'priority=p5',
      'server_id=web',
      'fix_status=x',
      'kev=maybe',
      'page=0',
    ])
      expect([query, (await tenant.call('GET', `/security/findings?${query}`)).status]).toEqual([query, 422])
    expect((await tenant.call('GET', '/security/findings?status=&search=')).status).toBe(200)
  })

  test('[SECU-010] [SECU-011] findings of secrets and of personal data are shown to those only who may see them', async () => {
    const owner = await hub.tenant()
    const hostId = await seedHost(hub, owner.companyId)
    const [plain, secret, personal] = ['vulnerability', 'secret', 'sensitive_data'].map(kind =>
      finding(owner.companyId, hostId, { kind }),
    ) as [SeededFinding, SeededFinding, SeededFinding]
    await seedFindings(hub, [plain, secret, personal])
    const ids = async (path: string, permissions: string[]) =>
      (await get(path, await hub.user(owner.companyId, permissions))).data.map((row: Json) => row.id).sort()
    expect(await ids('/security/findings', ['security.view'])).toEqual([plain.id])
    expect(await ids('/security/findings', ['security.view', 'security.secrets.view'])).toEqual(
      [plain.id, secret.id].sort(),
    )
    expect(await ids('/security/secrets', ['security.secrets.view'])).toEqual([secret.id])
    expect(await ids('/security/pii-map', ['security.pii.view'])).toEqual([personal.id])
    const viewer = await hub.user(owner.companyId, ['security.view'])
    expect((await viewer.call('GET', `/security/findings/${secret.id}`)).status).toBe(404)
    expect((await viewer.call('GET', '/security/secrets')).status).toBe(403)
    expect((await viewer.call('GET', '/security/pii-map')).status).toBe(403)
  })

  test('a finding of another company does not exist, and a company below is reached by its header', async () => {
    const child = await hub.tenant(undefined, { parentId: tenant.companyId })
    const row = finding(child.companyId, await seedHost(hub, child.companyId))
    await seedFindings(hub, [row])
    const foreign = await hub.tenant()
    expect((await foreign.call('GET', `/security/findings/${row.id}`)).status).toBe(404)
    expect((await get('/security/findings', foreign)).meta.total).toBe(0)
  })

  test('texts of findings are text, whatever stands in them', async () => {
    const owner = await hub.tenant()
    const hostile = [
      '<script>alert(1)</script>',
      "'; drop table servers; --",
      '=cmd|calc',
      '\u202Eexe',
      '😀'.repeat(60),
    ]
    const hostId = await seedHost(hub, owner.companyId)
    await seedFindings(
      hub,
      hostile.map(text => finding(owner.companyId, hostId, { vuln_id: text, package_key: text, aliases: [text] })),
    )
    for (const text of hostile) {
      for (const name of ['search', 'vuln_id']) {
        const { data } = await get(`/security/findings?${name}=${encodeURIComponent(text)}`, owner)
        expect(data.map((row: Json) => [row.vuln_id, row.package_key, row.aliases])).toEqual([[text, text, [text]]])
      }
    }
  })
})

describe('the overview', () => {
  test('[SEC-049] [SECU-001] [SECU-002] counts are those of the findings: by status all, by priority and kind the open ones', async () => {
    const owner = await hub.tenant()
    const serverId = await server(owner)
    const hostId = await seedHost(hub, owner.companyId, serverId, { lastReportAt: new Date() })
    await seedHost(hub, owner.companyId, null, { enrolledAt: new Date(Date.now() - 60 * 3_600_000) })
    await seedFindings(hub, [
      finding(owner.companyId, hostId, { priority: 'p1', kev: true, server_id: serverId }),
      finding(owner.companyId, hostId, { priority: 'p1', sla_due_at: new Date(Date.now() - 1000).toISOString() }),
      finding(owner.companyId, hostId, { priority: 'p3', kind: 'release_eol' }),
      finding(owner.companyId, hostId, { priority: 'p1', status: 'resolved' }),
      finding(owner.companyId, hostId, { priority: 'p2', status: 'accepted' }),
    ])
    const { client } = hub.hub.database
    await client`insert into security_server_scans (host_id, company_id, server_id, last_event_seq, scanned_at, db_version, os, match_status,
      reboot_required) values (${hostId}, ${owner.companyId}, ${serverId}, 1, now(), 2026010101, '{}', 'ok', true)`
    const { data } = await get('/security/overview', owner)
    expect(data).toMatchObject({
      by_status: { open: 3, resolved: 1, accepted: 1, false_positive: 0 },
      by_priority: { p1: 2, p2: 0, p3: 1, p4: 0 },
      by_kind: { vulnerability: 2, release_eol: 1, check: 0, secret: 0, sensitive_data: 0 },
      kev: 1,
      sla: { overdue: 1, due_soon: 0 },
      coverage: { servers: 1, scanned_servers: 1, hosts: 2, unattached_hosts: 1, stale_hosts: 1, reboot_required: 1 },
      match_status: { ok: 1, no_db: 0 },
      matcher: { available: false, reason: 'not_configured', db_version: 2026010101 },
    })
    expect(data.top_findings).toHaveLength(3)
    const trends = (await get('/security/trends', owner)).data
    expect(trends).toHaveLength(30)
    expect(trends.at(-1)).toEqual({ date: new Date().toISOString().slice(0, 10), opened: 0, resolved: 0 })
    const ofServer = (await get(`/servers/${serverId}/security`, owner)).data
    expect(ofServer).toMatchObject({
      server_id: serverId,
      by_status: { open: 1 },
      scan: { match_status: 'ok', db_version: 2026010101 },
      host: { host_id: hostId, state: 'active', stale: false },
    })
    expect(ofServer.findings).toHaveLength(1)
    const foreign = await hub.tenant()
    expect((await foreign.call('GET', `/servers/${serverId}/security`)).status).toBe(404)
  })

  test('[SECU-014] software is counted by package from open findings, the highest risk first', async () => {
    const owner = await hub.tenant()
    const hostId = await seedHost(hub, owner.companyId)
    await seedFindings(hub, [
      finding(owner.companyId, hostId, { package_key: 'curl', risk: 40 }),
      finding(owner.companyId, hostId, { package_key: 'curl', risk: 95, vuln_id: 'CVE-2', fix_status: 'no_fix' }),
      finding(owner.companyId, hostId, { package_key: 'bash', risk: 50 }),
      finding(owner.companyId, hostId, { package_key: 'gone', status: 'resolved' }),
    ])
    const body = await get('/security/software', owner)
    expect(body.data).toEqual([
      { package_key: 'curl', open_findings: 2, vulnerabilities: 2, risk: 95, fixable: 1 },
      { package_key: 'bash', open_findings: 1, vulnerabilities: 1, risk: 50, fixable: 1 },
    ])
    expect(body).toMatchObject({ meta: { total: 2 }, inventory: null, matcher: { available: false } })
    expect((await get('/security/software?search=CUR', owner)).data).toHaveLength(1)
  })
})

test('[SECU-001] [SECU-002] [SECU-003] [SECU-004] [SECU-005] [SECU-006] [SECU-007] [SECU-013] [SECU-014] what is shown needs security.view', async () => {
  const serverId = await server(tenant)
  const stranger = await hub.user(tenant.companyId, ['monitoring.view', 'servers.view', 'security.manage'])
  const viewer = await hub.user(tenant.companyId, ['security.view'])
  const paths = [
    '/security/overview',
    '/security/trends',
    '/security/findings',
    `/servers/${serverId}/security`,
    `/servers/${serverId}/packages`,
    '/security/packages/search?name=openssl',
    '/security/services',
    '/security/software',
  ]
  for (const path of paths) {
    expect([path, (await stranger.call('GET', path)).status]).toEqual([path, 403])
    expect([path, (await viewer.call('GET', path)).status]).toEqual([path, 200])
  }
})
