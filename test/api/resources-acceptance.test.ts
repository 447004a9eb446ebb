// What section 16 of resources.md asks from outside, as far as no test of one part asks it already: over HTTP, on one
// hub.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { judgeDueCertificates, lookAtDuePlaces } from '../../apps/hub/certificates/certificate-watch.ts'
import { kinds } from '../../apps/hub/kinds.ts'
import { watchAddresses } from '../../apps/hub/network/network-watch.ts'
import { refreshUsage } from '../../apps/hub/network/subnet-fullness.ts'
import { createLogger } from '../../apps/hub/platform/telemetry.ts'
import type { Kind } from '../../apps/hub/resources/kind.ts'
import { onePath } from '../../apps/hub/resources/kind-routes.ts'
import { tellConditions } from '../../apps/hub/resources/tell-conditions.ts'
import { CertificateMaker, type Issued } from '../support/certificates.ts'
import { PROXY_ADDRESS, startTinyproxy } from '../support/forward-proxy.ts'
import { TlsServer } from '../support/tls-server.ts'
import { type Call, type Json, type Tenant, TestHub, until } from './hub-harness.ts'
import { acme, applied, manifest, submit } from './iac-rig.ts'
import { kindSamples } from './kind-samples.ts'

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
    // The low bits of such a row turn in short circles.
    return Math.floor((state / 2_147_483_648) * max)
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

test('[check 16.8] [RES-017] [RES-018] each write of a run is in the audit log once, and no secret in any answer or line', async () => {
  const lines: string[] = []
  const log = createLogger('trace', { write: line => lines.push(line) })
  const own = await TestHub.start({ 'webhooks.allow_private': true }, log)
  try {
    const by = await own.tenant()
    const answers: string[] = []
    const writes: string[] = []
    const call: Call = async (method, path, ...rest) => {
      const answer = await by.call(method, path, ...rest)
      if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
      answers.push(JSON.stringify(answer.body))
      if (method !== 'GET') writes.push(`${method} ${path}`)
      return answer
    }
    const secrets: string[] = []
    const make = async (kind: Kind, hasSecrets: boolean): Promise<string> => {
      const { info, parent, fields } = kind
      const list = parent ? (await make(parent.of, false)) + info.path.slice(onePath(parent.of).length) : info.path
      const sample = kindSamples[info.kind]!
      const body = { ...(await sample.body(writes.length, call)), ...(hasSecrets ? sample.withSecret : {}) }
      for (const [name, { isSecret }] of Object.entries(fields)) {
        if (!isSecret || !hasSecrets) continue
        secrets.push(`s3cr3t-${crypto.randomUUID()}`)
        body[name] = secrets.at(-1)
      }
      return `${list}/${(await call('POST', list, body)).body.data.id}`
    }
    for (const kind of kinds) {
      const one = await make(kind, true)
      await call('PATCH', one, kindSamples[kind.info.kind]!.change)
      for (const [name, { isSecret }] of Object.entries(kind.fields)) {
        if (!isSecret) continue
        secrets.push(`s3cr3t-${crypto.randomUUID()}`)
        await call('PATCH', one, { [name]: secrets.at(-1) })
      }
      await call('DELETE', one)
      await call('PATCH', one, { deleted_at: null })
      await call('GET', one.slice(0, one.lastIndexOf('/')))
    }
    // What is refused is answered and logged too, with what was sent.
    const refused = await by.call('POST', '/proxies', {
      name: 7,
      mode: 'forward',
      password: secrets[0],
    })
    answers.push(JSON.stringify(refused.body))
    const entries = await own.hub.database.client<{ action: string; row: string }[]>`
      select action, to_jsonb(a)::text as row from audit_log a where company_id = ${by.companyId}`
    expect([refused.status, secrets.length > 5]).toEqual([422, true])
    const kindNames = new Set(kinds.map(({ info }) => info.kind))
    expect(entries.filter(({ action }) => kindNames.has(action.split('.')[0] ?? ''))).toHaveLength(writes.length)
    expect(lines.length).toBeGreaterThan(0)
    const everything = [...answers, ...entries.map(({ row }) => row), ...lines].join('\n')
    expect(secrets.filter(secret => everything.includes(secret))).toEqual([])
  } finally {
    await own.running.stop()
  }
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

test('[check 16.12] [RES-220] a hundred random orders of creating and deleting leave the tree that containment says', async () => {
  const seed = freshSeed()
  const random = randomOf(seed)
  const own = await hub.tenant()
  const number = (address: string) => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
  /** The first and last number of a block, by its text. */
  const rangeOf = (cidr: string): readonly [number, number] => {
    const [base = '', bits = ''] = cidr.split('/')
    return [number(base), number(base) + 2 ** (32 - Number(bits)) - 1]
  }
  const holds = (outer: string, inner: string) => {
    const [[from, to], [first, last]] = [rangeOf(outer), rangeOf(inner)]
    return outer !== inner && from <= first && last <= to
  }
  // Each run has an address space of its own; blocks of few places and lengths lie in each other often.
  const plans = Array.from({ length: 100 }, (_, run) => ({
    vrf: `run ${run}`,
    blocks: Array.from({ length: 5 }, () => `10.${16 * random(3)}.${64 * random(2)}.0/${8 + 2 * random(9)}`),
  }))
  const standing = new Map<string, ReadonlyMap<string, string>>()
  const play = async ({ vrf, blocks }: (typeof plans)[number]) => {
    const ids = new Map<string, string>()
    for (const text of blocks) {
      const bits = Number(text.split('/')[1])
      const start = number(text.split('/')[0] ?? '')
      const from = start - (start % 2 ** (32 - bits))
      const cidr = `${[24, 16, 8, 0].map(shift => Math.floor(from / 2 ** shift) % 256).join('.')}/${bits}`
      const id = ids.get(cidr)
      if (id === undefined) ids.set(cidr, (await made('/subnets', { cidr, vrf }, own)).id)
      else if ((await own.call('DELETE', `/subnets/${id}`)).status === 204) ids.delete(cidr)
    }
    for (const [cidr, id] of [...ids].filter((_, at) => at % 3 === 0))
      if ((await own.call('DELETE', `/subnets/${id}`)).status === 204) ids.delete(cidr)
    standing.set(vrf, ids)
  }
  const waiting = [...plans]
  await Promise.all(
    Array.from({ length: 6 }, async () => {
      for (let plan = waiting.pop(); plan; plan = waiting.pop()) await play(plan)
    }),
  )
  const rows = await hub.hub.database.client<Json[]>`
    select id, vrf, cidr::text as cidr, parent_id, depth from subnets
    where company_id = ${own.companyId} and deleted_at is null`
  const byHand = [...standing].flatMap(([vrf, ids]) =>
    [...ids].map(([cidr, id]) => {
      const around = [...ids.keys()].filter(each => holds(each, cidr))
      const parent = around.sort((x, y) => Number(y.split('/')[1]) - Number(x.split('/')[1]))[0]
      return { id, vrf, cidr, parent_id: ids.get(parent ?? '') ?? null, depth: around.length }
    }),
  )
  const sorted = (all: readonly Json[]) => [...all].sort((x, y) => (x.id < y.id ? -1 : 1))
  expect([seed, ...sorted([...rows])]).toEqual([seed, ...sorted(byHand)])
  expect(Math.max(...byHand.map(({ depth }) => depth))).toBeGreaterThan(1)
})

test('[check 16.13] usage of a random tree is what a count by hand says', async () => {
  const seed = freshSeed()
  const random = randomOf(seed)
  const own = await hub.tenant()
  const base = 10 * 2 ** 24
  const text = (value: number) => [24, 16, 8, 0].map(shift => Math.floor(value / 2 ** shift) % 256).join('.')
  type Reserved = readonly { readonly first: number; readonly last: number }[]
  type Made = Block & {
    readonly id: string
    readonly gateway: number | null
    readonly reserved: Reserved
    readonly full: boolean
  }
  const blocks = new Map<string, Made>()
  for (let index = 0; index < 12; index++) {
    const prefix = 20 + random(8)
    const size = 2 ** (32 - prefix)
    const from = base + Math.floor(random(4096) / size) * size
    const cidr = `${text(from)}/${prefix}`
    if (blocks.has(cidr)) continue
    const gateway = random(2) ? from + 1 + random(size - 2) : null
    const first = from + random(size)
    const last = Math.min(first + random(40), from + size - 1)
    const reserved = random(3) ? [] : [{ first, last }]
    const full = random(8) === 0
    const body = {
      cidr,
      gateway: gateway && text(gateway),
      reserved: reserved.map(each => ({ from: text(each.first), to: text(each.last), note: 'DHCP' })),
      full,
    }
    blocks.set(cidr, { from, size, gateway, reserved, full, id: (await made('/subnets', body, own)).id })
  }
  const taken = new Set(Array.from({ length: 60 }, () => base + random(4096)))
  const rows = ['address', ...[...taken].map(text)].join('\n')
  const csv = await own.call('POST', '/ips', rows, { 'Content-Type': 'text/csv' })
  expect(csv.body.data.created).toBe(taken.size)
  await refreshUsage(hub.hub)
  for (const [cidr, { from, size, id }] of blocks) {
    const around = [...blocks.values()].filter(each => each.from >= from && each.from + each.size <= from + size)
    const isUsed = (address: number) =>
      taken.has(address) ||
      around.some(
        each =>
          each.gateway === address ||
          (each.full && address >= each.from && address < each.from + each.size) ||
          each.reserved.some(range => range.first <= address && address <= range.last),
      )
    const used = Array.from({ length: size }, (_, at) => from + at).filter(isUsed).length
    const { usage, children_count } = await got(`/subnets/${id}`, own)
    const direct = around.filter(
      each => each.id !== id && !around.some(other => other.id !== id && other.id !== each.id && holds(other, each)),
    )
    const usable = size - 2
    const percent = (part: number, whole: number) => Math.min(100, Math.floor((part * 1000) / whole) / 10)
    const delegated = direct.reduce((sum, each) => sum + each.size, 0)
    expect([seed, cidr, usage, children_count]).toEqual([
      seed,
      cidr,
      {
        size,
        usable,
        used,
        used_percent: percent(used, usable),
        delegated_percent: percent(delegated, size),
        free: Math.max(0, usable - used),
        discovered: 0,
      },
      direct.length,
    ])
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

test('[check 16.33] [RES-129] bombs of aliases, twenty documents, a secret and an unknown key are invalid, and take no memory', async () => {
  const by = await acme(hub)
  const head = `apiVersion: hub/v1\nkind: server\nmetadata: {company: ${by.slug}, name: a}\n`
  const letters = [...'abcdefghij']
  const bomb = letters.map((name, at) => {
    const of = at === 0 ? 'x' : `*${letters[at - 1]}`
    return `${name}: &${name} [${Array(10).fill(of).join(',')}]`
  })
  // As many as a manifest holds; the whole of a million is longer than one may be.
  const many = `a: &a 1\nb: [${'*a,'.repeat(80_000)}]`
  const before = process.memoryUsage.rss()
  for (const [contents, word] of [
    [bomb.join('\n'), 'alias'],
    [many, 'alias'],
    [Array(20).fill(`${head}spec: {}\n`).join('---\n'), 'one YAML document'],
    [`${head}spec: {password: hunter2}\n`, 'secret'],
    [`${head}spec: {colour: red}\n`, 'unknown key'],
  ] as const) {
    const run = await submit(hub, by, [{ path: 'x.yml', contents }])
    const said = run.errors.map((each: Json) => each.message).join('\n')
    expect([word, run.status, said]).toEqual([word, 'invalid', expect.stringContaining(word)])
    expect(said).not.toContain('hunter2')
  }
  const million = { manifests: [{ path: 'x.yml', contents: `a: &a 1\nb: [${'*a,'.repeat(1_000_000)}]` }] }
  const answer = await by.call('POST', '/iac/runs', million)
  expect([answer.status, Object.keys(answer.body.errors)]).toEqual([422, ['manifests.0.contents']])
  // What the bombs say is gigabytes.
  expect(process.memoryUsage.rss() - before).toBeLessThan(300 * 1024 * 1024)
})
