// What section 16 of resources.md asks from outside, as far as no test of one part asks it already: over HTTP, on one
// hub.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { judgeDueCertificates, lookAtDuePlaces } from '../../apps/hub/certificates/certificate-watch.ts'
import { kinds } from '../../apps/hub/kinds.ts'
import { refreshUsage, watchAddresses } from '../../apps/hub/network/network-watch.ts'
import { tellConditions } from '../../apps/hub/resources/tell-conditions.ts'
import { CertificateMaker, type Issued } from '../support/certificates.ts'
import { PROXY_ADDRESS, startTinyproxy } from '../support/forward-proxy.ts'
import { TlsServer } from '../support/tls-server.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'
import { acme, applied, manifest, submit } from './iac-rig.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let tenant: Tenant
const folder = mkdtempSync(join(tmpdir(), 'acceptance-'))

beforeAll(async () => {
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
  for (const task of ['conditions', 'certificate_places', 'certificate_dates', 'address_watch'])
    await hub.holdTask(task)
  tenant = await hub.tenant()
})
afterAll(async () => {
  await hub.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function made(path: string, body: Json, by: Pick<Tenant, 'call'> = tenant): Promise<Json> {
  const answer = await by.call('POST', path, body)
  if (![200, 201].includes(answer.status)) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
const got = async (path: string, by: Pick<Tenant, 'call'> = tenant): Promise<Json> =>
  (await by.call('GET', path)).body.data
const bell = async (type: string): Promise<Json[]> =>
  (await got('/notifications?per_page=100')).filter((each: Json) => each.type === type)

/** Numbers below `max` that a seed leads to; the seed is printed by whoever fails. */
function randomOf(seed: number): (max: number) => number {
  let state = seed
  return max => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state % max
  }
}
const freshSeed = (): number => Number(process.env.SVC_FUZZ_SEED ?? Date.now() % 100_000)

test('[check 16.3] the built-in viewer reads every list and writes nothing', async () => {
  const roles: Json[] = await got('/roles')
  const role = roles.find(each => each.name === 'viewer')
  const viewer = await hub.user(tenant.companyId, role.permissions)
  for (const { info } of kinds.filter(kind => kind.parent === null)) {
    expect([info.kind, (await viewer.call('GET', info.path)).status]).toEqual([info.kind, 200])
    expect([info.kind, (await viewer.call('POST', info.path, {})).status]).toEqual([info.kind, 403])
  }
  for (const path of ['/options', '/iac/runs', '/approvals/tickets', '/files', '/search?q=xx', '/mobile/devices'])
    expect([path, (await viewer.call('GET', path)).status]).toEqual([path, 200])
})

test('[check 16.11] two servers that report one address are told of, and of its end', async () => {
  const collector = await hub.collector()
  const report = async (serverId: string, ips: string[]): Promise<void> => {
    const agentId = crypto.randomUUID()
    await hub.hub.database.client`
      insert into monitoring_agents (id, company_id, server_id, token_hash, state, last_seen_at)
      values (${agentId}, ${tenant.companyId}, ${serverId}, ${agentId}, 'active', now())`
    const facts = { nics: [{ name: 'eth0', ips }] }
    const ids = { agent_id: agentId, company_id: tenant.companyId, server_id: serverId }
    const sent = await collector.call('POST', '/inventory', {
      items: [{ ...ids, reported_at: new Date().toISOString(), facts }],
    })
    expect(sent.body.data).toMatchObject({ accepted: 1 })
  }
  const address = await made('/ips', { address: '10.66.0.5' })
  const [one, two] = [await made('/servers', { name: 'first' }), await made('/servers', { name: 'second' })]
  for (const each of [one, two]) await report(each.id, ['10.66.0.5/24'])
  for (let round = 0; round < 2; round++) {
    await watchAddresses(hub.hub)
    await tellConditions(hub.hub)
  }
  const codes = async () => (await got(`/ips/${address.id}`)).conditions.map((each: Json) => each.code)
  expect(await codes()).toEqual(['duplicate_address'])
  const told = (await bell('resource.problem')).filter(each => each.link.endsWith(address.id))
  expect(told).toHaveLength(1)
  expect(told[0].body).toContain('first, second')
  await hub.hub.database.client`
    update ip_observations set last_seen_at = now() - interval '11 minutes' where server_id = ${two.id}`
  await watchAddresses(hub.hub)
  await tellConditions(hub.hub)
  expect(await codes()).toEqual([])
  expect((await bell('resource.recovered')).filter(each => each.link.endsWith(address.id))).toHaveLength(1)
})

test('[check 16.13] usage of a random tree is what a count by hand says', async () => {
  const seed = freshSeed()
  const random = randomOf(seed)
  const own = await hub.tenant()
  const base = 10 * 2 ** 24
  const text = (value: number) => [24, 16, 8, 0].map(shift => Math.floor(value / 2 ** shift) % 256).join('.')
  const blocks = new Map<string, { from: number; size: number; id: string }>()
  for (let index = 0; index < 12; index++) {
    const prefix = 20 + random(8)
    const size = 2 ** (32 - prefix)
    const from = base + Math.floor(random(4096) / size) * size
    const cidr = `${text(from)}/${prefix}`
    if (!blocks.has(cidr)) blocks.set(cidr, { from, size, id: (await made('/subnets', { cidr }, own)).id })
  }
  const taken = new Set(Array.from({ length: 60 }, () => base + random(4096)))
  const rows = ['address', ...[...taken].map(text)].join('\n')
  const csv = await own.call('POST', '/ips', rows, { 'Content-Type': 'text/csv' })
  expect(csv.body.data.created).toBe(taken.size)
  await refreshUsage(hub.hub)
  for (const [cidr, { from, size, id }] of blocks) {
    const inside = [...taken].filter(address => address >= from && address < from + size)
    const around = [...blocks.values()].filter(each => each.from >= from && each.from + each.size <= from + size)
    const { usage, children_count } = await got(`/subnets/${id}`, own)
    const direct = around.filter(
      each => each.id !== id && !around.some(other => other.id !== id && other.id !== each.id && holds(other, each)),
    )
    expect([seed, cidr, usage.used, children_count]).toEqual([seed, cidr, inside.length, direct.length])
  }
})
type Block = { readonly from: number; readonly size: number }
const holds = (outer: Block, inner: Block): boolean =>
  outer.size > inner.size && inner.from >= outer.from && inner.from + inner.size <= outer.from + outer.size

describe('certificates', () => {
  const maker = new CertificateMaker(folder)
  const root = maker.make({ subject: '/CN=Root', isAuthority: true, days: 3650 })
  const issue = (name: string, days: number): Issued =>
    maker.make({ subject: `/CN=${name}`, sans: `DNS:${name}`, issuer: root, days })
  const serve = ({ pem, key }: Issued) => TlsServer.start({ cert: pem, key })
  const watched = async (name: string, { port }: TlsServer): Promise<string> => {
    const endpoint = { host: '127.0.0.1', port, sni: name }
    const { id } = await made('/certificates', { name, endpoint })
    await until('the first look', async () => (await show(id)).last_run?.finished_at != null)
    return id
  }
  const show = (id: string): Promise<Json> => got(`/certificates/${id}`)
  const codesOf = async (id: string) => (await show(id)).conditions.map((each: Json) => each.code)

  beforeAll(async () => {
    const path = '/system/settings/certificates.extra_roots?level=company'
    expect((await tenant.call('PUT', path, { value: root.pem })).status).toBe(200)
  })

  test('[check 16.15] a leaf that ends in five days is told of once, and a new one ends it', async () => {
    const server = await serve(issue('five.example.com', 5))
    try {
      const id = await watched('five.example.com', server)
      const first = await show(id)
      expect(first.conditions.map((each: Json) => [each.code, each.severity])).toEqual([['expiring', 'critical']])
      for (let round = 0; round < 3; round++) await tellConditions(hub.hub)
      const told = (await bell('resource.problem')).filter(each => each.link.endsWith(id))
      expect(told).toHaveLength(1)
      await until('a second has passed', async () => Date.now() >= Date.parse(first.not_before) + 1000)
      const { pem, key } = issue('five.example.com', 200)
      await server.show({ cert: pem, key })
      await hub.hub.database
        .client`update certificate_deployments set next_check_at = now() - interval '1 second' where certificate_id = ${id}`
      await lookAtDuePlaces(hub.hub)
      const after = await show(id)
      expect([after.conditions, after.versions.length, after.days_left]).toEqual([[], 2, 199])
    } finally {
      await server.stop()
    }
  })

  test('[RES-105] other days of warning are judged with the next turn of the clock', async () => {
    const upload = async (name: string, more: Json) =>
      (await made('/certificates', { name, pem: issue(name, 60).pem, renew_before_days: 20, ...more })).id
    const usual = await upload('usual.example.com', {})
    const own = await upload('own.example.com', { warn_days: [5] })
    expect(await codesOf(usual)).toEqual([])
    const path = '/system/settings/certificates.warn_days?level=company'
    expect((await tenant.call('PUT', path, { value: [90, 10] })).status).toBe(200)
    await judgeDueCertificates(hub.hub)
    expect([await codesOf(usual), await codesOf(own)]).toEqual([['expiring'], []])
    expect((await tenant.call('DELETE', path)).status).toBe(204)
    await judgeDueCertificates(hub.hub)
    expect(await codesOf(usual)).toEqual([])
  })

  test('[R-028] [R-032] places are looked at by the way out of the company, and by no other', async () => {
    const proxy = await startTinyproxy(join(folder, 'proxy'))
    const server = await serve(issue('out.example.com', 90))
    try {
      const url = `http://127.0.0.1:${proxy.port}`
      const way = await made('/proxies', { name: 'out', mode: 'forward', url, use_for: ['probes'] })
      const id = await watched('out.example.com', server)
      const place = async () => (await got(`/certificates/${id}/deployments`))[0]
      expect([(await show(id)).subject, (await place()).state]).toEqual(['CN=out.example.com', 'ok'])
      expect(server.addresses.at(-1)).toBe(PROXY_ADDRESS)
      await proxy.stop()
      const before = server.addresses.length
      const { body } = await tenant.call('POST', `/certificates/${id}/check`, {})
      await until('the second look', async () => {
        const { last_run } = await show(id)
        return last_run.id === body.data.id && last_run.finished_at !== null
      })
      expect([(await place()).state, server.addresses.length]).toEqual(['unreachable', before])
      expect((await tenant.call('DELETE', `/proxies/${way.id}`)).status).toBe(204)
    } finally {
      await proxy.stop()
      await server.stop()
    }
  })
})

test('[check 16.20] [RES-052] impact in 500 nodes with cycles is what a walk by hand finds', async () => {
  const seed = freshSeed()
  const random = randomOf(seed)
  const own = await hub.tenant()
  const COUNT = 500
  const edges = Array.from({ length: 900 }, (_, port) => {
    const source = random(COUNT)
    const target = (source + 1 + random(COUNT - 1)) % COUNT
    return { source, target, hard: random(3) > 0, port: port + 1 }
  })
  await hub.hub.database.client`
    insert into connections (id, company_id, name, source_kind, source_name, source_key, target_kind, target_name,
      target_key, port, criticality, state_since)
    select gen_random_uuid(), ${own.companyId}, 'edge ' || e.port, 'service', 'n' || e.source, 'service:n' || e.source,
      'service', 'n' || e.target, 'service:n' || e.target, e.port, case when e.hard then 'hard' else 'soft' end, now()
    from jsonb_to_recordset(${JSON.stringify(edges)}::text::jsonb) as e (source int, target int, hard boolean, port int)`
  const reach = (isHard: boolean): Set<number> => {
    const found = new Set<number>()
    const next = [edges[0]!.target]
    for (let node = next.pop(); node !== undefined; node = next.pop())
      for (const edge of edges)
        if (edge.target === node && (!isHard || edge.hard) && !found.has(edge.source)) {
          found.add(edge.source)
          next.push(edge.source)
        }
    found.delete(edges[0]!.target)
    return found
  }
  const root = `service:n${edges[0]!.target}`
  const answer = await own.call('GET', `/connections/graph?root=${root}&direction=dependents&depth=10&max_nodes=2000`)
  expect(answer.status).toBe(200)
  const { impact, nodes, edges: drawn } = answer.body.data
  const affected = (hard: boolean) =>
    impact.affected.filter((each: Json) => each.hard === hard).map((each: Json) => each.key)
  const [hard, all] = [reach(true), reach(false)]
  const keys = (found: Iterable<number>) => [...found].map(node => `service:n${node}`).sort()
  expect([seed, impact.total, affected(true).sort()]).toEqual([seed, all.size, keys(hard)])
  expect(affected(false).sort()).toEqual(keys([...all].filter(node => !hard.has(node))))
  const listed = new Set(nodes.map((node: Json) => node.key))
  const between = edges.filter(edge => listed.has(`service:n${edge.source}`) && listed.has(`service:n${edge.target}`))
  expect([seed, drawn.length]).toEqual([seed, between.length])
})

const RECORDS: readonly ((index: number) => string)[] = [
  index => `a${index} 300 IN A 192.0.2.${1 + (index % 250)}`,
  index => `a${index} 300 IN AAAA 2001:db8::${index.toString(16)}`,
  index => `c${index} IN CNAME a${index}`,
  index => `m${index} IN MX ${index % 100} mail.example.net.`,
  index => `t${index} 1h IN TXT "part ${index} \\"quoted\\"" "; and more"`,
  index => `_sip._tcp.s${index} IN SRV 1 2 ${1 + index} sip.example.net.`,
  index => `x${index} IN CAA 0 issue "ca.example.net"`,
  index => `d${index} IN NS ns${index}.example.net.`,
]

test('[check 16.21] [RES-203] [RES-204] a file of 2,000 records of all types is imported, exported and imported again unchanged', async () => {
  const text = (rows: readonly string[], zone: string) =>
    [
      `$ORIGIN ${zone}.`,
      '$TTL 1h',
      `@ IN SOA ns1.${zone}. hostmaster.${zone}. (`,
      '  2026010101 ; serial',
      '  3600 900 1209600 300 )',
      ...rows,
    ].join('\n')
  const reverse = Array.from({ length: 200 }, (_, index) => `${index + 1} IN PTR host-${index}.example.com.`)
  const forward = Array.from({ length: 1800 }, (_, index) => RECORDS[index % 8]?.(index) ?? '')
  for (const [zone, rows] of [
    ['files.example.com', forward],
    ['2.0.192.in-addr.arpa', reverse],
  ] as const) {
    const { id } = await made('/dns/zones', { name: zone, verify_interval_minutes: 0 })
    const send = async (content: string) =>
      (await tenant.call('POST', `/dns/zones/${id}/import`, { content })).body.data
    expect(await send(text(rows, zone))).toMatchObject({ created: rows.length, skipped: [] })
    const exported = await fetch(`${hub.url}/api/v1/dns/zones/${id}/export`, {
      headers: { Authorization: `Bearer ${tenant.token}` },
    })
    const again = await send(await exported.text())
    expect(again).toMatchObject({ created: 0, updated: 0, deleted: 0, unchanged: rows.length })
  }
})

test('[check 16.28] a subnet, a server, an address, a check and a zone are applied whatever their order', async () => {
  const by = await acme(hub)
  const of = (kind: string, name: string, spec: Json) => manifest(by.slug, kind, name, spec)
  const files = [
    of('dns-zone', 'shop', {
      zone: 'shop.example.com',
      records: [
        { name: '@', type: 'MX', ttl: 3600, values: ['10 mail.example.com.'] },
        { name: 'www', type: 'A', ttl: 300, value: '10.9.0.5' },
      ],
    }),
    of('check', 'ssh', { type: 'port', target: { port: 22, proto: 'tcp' }, scope: { servers: ['app'] } }),
    of('ip-address', 'app-address', { address: '10.9.0.5', server: 'app' }),
    of('server', 'app', { name: 'The App', subnet: 'lan' }),
    of('subnet', 'lan', { name: 'The LAN', cidr: '10.9.0.0/24', gateway: '10.9.0.1' }),
  ]
  const run = await applied(by, (await submit(hub, by, files)).id)
  expect([run.status, run.items.map((item: Json) => [item.kind, item.status, item.error])]).toEqual([
    'applied',
    ['subnet', 'server', 'ip-address', 'check', 'dns-zone'].map(kind => [kind, 'applied', null]),
  ])
  const [server] = await got('/servers', by)
  const [address] = await got('/ips', by)
  const [subnet] = await got('/subnets', by)
  expect([server.name, server.subnet_id, address.server_id, address.subnet_id]).toEqual([
    'The App',
    subnet.id,
    server.id,
    subnet.id,
  ])
  expect(address.dns_records.map((each: Json) => each.fqdn)).toEqual(['www.shop.example.com'])
  const again = await submit(hub, by, files)
  expect(again.items.map((item: Json) => [item.action, item.diff])).toEqual(files.map(() => ['none', []]))
})

test('[check 16.34] upload that is off in one company is on in the other, the form works in both', async () => {
  const [off, on] = [await acme(hub), await acme(hub)]
  const setting = '/system/settings/iac.yaml_upload_enabled?level=company'
  expect((await off.call('PUT', setting, { value: false })).status).toBe(200)
  for (const [by, status] of [
    [off, 403],
    [on, 201],
  ] as const) {
    const file = manifest(by.slug, 'server', 'any', {})
    expect((await by.call('POST', '/iac/runs', { manifests: [file] })).status).toBe(status)
    expect((await by.call('POST', '/iac/form', { manifests: [file] })).status).toBe(201)
  }
})
