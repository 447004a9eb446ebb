// What applying would refuse is a fault of the plan, at its field and line; what was tried leaves nothing behind.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { kinds } from '../../apps/hub/kinds.ts'
import type { Kind } from '../../apps/hub/resources/kind.ts'
import { type Json, TestHub } from './hub-harness.ts'
import { type Acme, acme, applied, manifest, submit } from './iac-rig.ts'
import { kindSamples } from './kind-samples.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let by: Acme

beforeAll(async () => {
  hub = await TestHub.start()
  by = await acme(hub)
})
afterAll(() => hub.stop())

const of = (kind: string, name: string, spec: Json, more: Json = {}) => manifest(by.slug, kind, name, spec, more)
const faultsOf = (run: Json): Json[] =>
  run.errors.map((each: Json) => [each.path.split('/')[2], each.line, each.message])
const service = (name: string) => ({ kind: 'service', name })
const pools = (members: Json) => [{ name: 'web', members }]

describe('what a write refuses', () => {
  for (const kind of kinds.filter(each => each.iac !== null))
    test(`[IAC-010] [IAC-011] ${kind.info.kind}: what the API refuses is refused by the plan, with the same text`, async () => {
      const { refused, name: nameOf } = kindSamples[kind.info.kind] ?? {}
      if (!refused) throw new Error(`test/api/kind-samples.ts does not say what a write of ${kind.info.kind} refuses`)
      const name = nameOf?.() ?? 'refused'
      const answer = await by.call('POST', kind.info.path, { name, ...refused })
      expect(answer.status).toBe(422)
      const texts = Object.values<Json>(answer.body.errors).flat()
      const spec = kind.info.kind === 'dns_zone' ? { zone: name, ...refused } : refused
      const run = await submit(hub, by, [of((kind as Kind).iac?.kind ?? '', 'refused', spec)])
      expect([run.status, run.items]).toEqual(['invalid', []])
      expect(run.errors.map((each: Json) => each.message.replace(/^[^:]*: /, ''))).toEqual(texts)
      for (const { line } of run.errors) expect(line).toBeGreaterThan(6)
    })

  test('[IAC-011] what was not tried for its many parts is named by the run, its timeline and a mere validation', async () => {
    const items = Array.from({ length: 151 }, (_, index) => ({ value: `v${index}` }))
    const manifests = [of('option-list', 'environments', { items }), of('server', 'tried', {})]
    const untried = [`option-list/${by.slug}/environments.yml`]
    const run = await submit(hub, by, manifests)
    expect([run.status, run.errors, run.untried]).toEqual(['planned', [], untried])
    const validated = await by.call('POST', '/iac/validate', { manifests })
    expect([validated.status, validated.body.data.untried]).toEqual([200, untried])
    const again = await by.call('POST', `/iac/runs/${run.id}/replan`)
    expect([again.status, again.body.data.untried]).toEqual([200, untried])
    const { data } = (await by.call('GET', `/iac/runs/${run.id}/timeline`)).body
    const { text } = data.find((each: Json) => each.type === 'planned')
    expect(text).toEndWith(`; not tried beforehand, beyond 150 parts: option-list/${by.slug}/environments.yml`)
  })

  test('[IAC-010] each item has its own faults, at the key and the line that people wrote', async () => {
    const cases: readonly (readonly [kind: string, name: string, spec: Json, line: number, field: string])[] = [
      ['connection', 'itself', { source: service('a'), target: service('a') }, 10, 'target'],
      ['connection', 'portless', { source: service('b'), target: service('c'), probe: { by: 'hub' } }, 6, 'port'],
      [
        'load-balancer',
        'addressless',
        // Members are kept in the order of their names; the place is that of the manifest.
        {
          vendor: 'nginx',
          pools: pools([
            { name: 'b', port: 80 },
            { name: 'a', address: '192.0.2.1', port: 80 },
          ]),
        },
        11,
        'pools.0.members.0.server',
      ],
      [
        'load-balancer',
        'poolless',
        { vendor: 'nginx', virtual_servers: [{ name: 'www', address: '192.0.2.1', port: 80, pool: 'none' }] },
        12,
        'virtual_servers.0.pool',
      ],
      [
        'proxy',
        'twice',
        { sites: [{ hostnames: ['a.example'] }, { name: 'b', hostnames: ['b.example', 'a.example'] }] },
        13,
        'sites.1.hostnames.1',
      ],
      [
        'dns-zone',
        'same',
        {
          zone: 'same.example',
          records: [
            { name: 'www', type: 'A', value: '192.0.2.1' },
            { name: 'WWW.same.example.', type: 'A', values: ['192.0.2.2', '192.0.2.1'] },
          ],
        },
        12,
        'records.1',
      ],
      ['webhook', 'inside', { url: 'https://127.0.0.1/x', events: ['alert.opened'] }, 7, 'url'],
      ['check', 'no-port', { type: 'port', target: {}, scope: { all: true } }, 8, 'target.port'],
    ]
    const run = await submit(
      hub,
      by,
      cases.map(([kind, name, spec]) => of(kind, name, spec)),
    )
    expect(run.status).toBe('invalid')
    const found = faultsOf(run).map(([file, line, message]) => [file, line, message.split(':')[0]])
    for (const [, name, , line, field] of cases) expect(found).toContainEqual([`${name}.yml`, line, `spec.${field}`])
    expect(found).toHaveLength(cases.length)
  })

  test('[IAC-010] what depends on an item with a fault has none of its own, what does not is tried', async () => {
    const run = await submit(hub, by, [
      of('ip-address', 'host', { address: '10.5.0.9', server: 'web' }),
      of('server', 'web', { environment: 'prod', subnet: 'broken' }),
      of('subnet', 'broken', { cidr: '10.5.0.0/24', gateway: '10.6.0.1' }),
      of('subnet', 'other', { cidr: '10.4.0.0/24', gateway: '10.6.0.1' }),
      of('subnet', 'good', { cidr: '10.3.0.0/24', gateway: '10.3.0.1' }),
    ])
    expect(faultsOf(run).map(([file]) => file)).toEqual(['broken.yml', 'other.yml'])
  })

  test('[IAC-010] [RES-083] [RES-128] what only two items together break is a fault of the second', async () => {
    const run = await submit(hub, by, [
      of('subnet', 'first', { cidr: '10.2.0.0/24' }),
      of('subnet', 'second', { cidr: '10.2.0.0/24' }),
      of('proxy', 'way-a', { mode: 'forward', url: 'http://8.8.8.8:3128', use_for: ['webhooks'] }),
      of('proxy', 'way-b', { mode: 'forward', url: 'http://8.8.4.4:3128', use_for: ['webhooks'] }),
    ])
    expect(faultsOf(run)).toEqual([
      ['second.yml', null, expect.stringMatching(/first.yml and .*second.yml are about the same resource$/)],
      ['way-b.yml', expect.any(Number), expect.stringMatching(/^spec.use_for: /)],
    ])
  })

  test('[RES-129] of a file with thousands of faults fifty are told', async () => {
    const records = Array.from({ length: 2_000 }, (_, n) => ({ name: `h${n}`, type: 'A', value: `10.0.0.${n + 256}` }))
    const run = await submit(hub, by, [of('dns-zone', 'wrong', { zone: 'wrong.example', records })])
    expect(run.errors).toHaveLength(50)
    expect(run.errors[49]).toMatchObject({
      line: 11 + 3 * 49,
      message: expect.stringMatching(/^spec.records.49.value: /),
    })
  })

  test('[IAC-011] what nobody expected is a fault of its manifest, and not left to applying', async () => {
    const { client } = hub.hub.database
    await client.unsafe(`alter table servers add constraint odd check (name <> 'odd')`)
    try {
      const run = await submit(hub, by, [of('server', 'odd', {}), of('server', 'even', {})])
      expect([run.status, faultsOf(run)]).toEqual(['invalid', [['odd.yml', 6, 'An unexpected error happened.']]])
    } finally {
      await client.unsafe('alter table servers drop constraint odd')
    }
  })

  test('[RES-135] [RES-136] what is in use or changes afterwards is no fault of the plan', async () => {
    const made = await applied(by, (await submit(hub, by, [of('subnet', 'in-use', { cidr: '10.1.0.0/24' })])).id)
    expect(made.status).toBe('applied')
    await by.call('POST', '/servers', { name: 'user', subnet_id: made.items[0].resource_id })
    const gone = {
      path: `subnet/${by.slug}/in-use.yml`,
      contents: of('subnet', 'in-use', {}, { ensure: 'absent' }).contents,
    }
    expect((await submit(hub, by, [gone])).status).toBe('planned')
  })
})

const FEEDS = 'select feed, value from monitoring_feed_counters order by feed'
const TABLES = ['servers', 'subnets', 'dns_zones', 'dns_records', 'certificates', 'resource_runs', 'iac_bindings']

describe('what was tried', () => {
  /** What the company has, and which numbers the feeds are at. */
  async function kept(): Promise<Json> {
    const { client } = hub.hub.database
    const counts: Json = {}
    for (const table of [...TABLES, 'iac_runs', 'audit_log', 'search_documents', 'notifications'])
      counts[table] = (
        await client.unsafe(`select count(*)::int as rows from ${table} where company_id = $1`, [by.companyId])
      )[0]?.rows
    return [counts, [...(await client.unsafe(FEEDS))]]
  }
  const files = () => [
    of('subnet', 'left', { cidr: '10.20.0.0/24' }),
    of('server', 'left', { subnet: 'left', tags: ['left'] }),
    of('check', 'left', { type: 'port', target: { port: 443, proto: 'tcp' }, scope: { servers: ['left'] } }),
    of('dns-zone', 'left', { zone: 'left.example', records: [{ name: 'www', type: 'A', value: '192.0.2.1' }] }),
    of('certificate', 'left', { endpoint: { host: '8.8.8.8', port: 443 } }),
  ]

  test('[IAC-011] leaves no row, no entry, no job and no number of a feed behind', async () => {
    const { call } = await hub.token(by.userId)
    const before = await kept()
    const { body } = await call('POST', '/iac/validate', { manifests: files() })
    expect([body.data.errors, body.data.status]).toEqual([[], 'planned'])
    expect(await kept()).toEqual(before)
  })

  test('[RES-031] names are looked up while nothing is locked, and refused as addresses are', async () => {
    const resolver = (name: string, host: string) => of('dns-server', name, { host })
    const run = await submit(hub, by, [
      resolver('inside', 'localhost'),
      resolver('nowhere', 'nowhere.invalid'),
      of('dns-zone', 'of-it', { zone: 'of-it.example', servers: ['inside'] }),
      of('subnet', 'beside', { cidr: '10.50.0.0/24', gateway: '10.51.0.1' }),
    ])
    const found = faultsOf(run).map(([file, , message]) => [file, message.split(':')[0]])
    expect(found.sort()).toEqual([
      ['beside.yml', 'spec.gateway'],
      ['inside.yml', 'spec.host'],
      ['nowhere.yml', 'spec.host'],
    ])
  })

  test('plans and writes side by side wait for each other and all end', async () => {
    const { data } = (await by.call('POST', '/subnets', { cidr: '10.30.0.0/24', name: 'beside' })).body
    const change = () => of('subnet', 'beside', { cidr: '10.30.0.0/24', description: crypto.randomUUID() })
    const answers = await Promise.all(
      Array.from({ length: 6 }, async (_, index) => {
        const { call } = await hub.token(by.userId)
        return index % 2 === 0
          ? call('POST', '/iac/validate', { manifests: [change(), ...files()] })
          : call('PATCH', `/subnets/${data.id}`, { vlan_id: index })
      }),
    )
    expect(answers.map(answer => answer.status)).toEqual(answers.map(() => 200))
    for (const { body } of answers) expect(body.data.errors ?? []).toEqual([])
  })
})

describe('names', () => {
  test('[RES-126] [RES-132] [R-035] what refers to a resource that the run renames is applied with it', async () => {
    const net = (name: string) => of('subnet', 'net', { name, cidr: '10.40.0.0/24' })
    const edge = (name: string) =>
      of('load-balancer', 'edge', { name, vendor: 'nginx', pools: [{ name: 'web' }], virtual_servers: [] })
    const site = (server: string, pool: string) =>
      of('proxy', 'front', {
        servers: [server],
        sites: [{ hostnames: ['a.example'], upstream: { kind: 'lb_pool', name: pool } }],
      })
    const run = async (files: Parameters<typeof submit>[2]) => {
      const planned = await submit(hub, by, files)
      expect(planned.errors).toEqual([])
      const done = await applied(by, planned.id)
      expect(done.items.map((item: Json) => [item.name, item.error])).toEqual(
        done.items.map((i: Json) => [i.name, null]),
      )
      return done.items.map((item: Json) => [item.name, item.action])
    }
    await run([net('Net 1'), of('server', 'one', { subnet: 'net' }), edge('Edge 1'), site('one', 'edge/web')])
    const renamed = [
      net('Net 2'),
      of('server', 'one', { name: 'The one', subnet: 'net' }),
      of('server', 'two', { subnet: 'Net 2' }),
      edge('Edge 2'),
      site('one', 'edge/web'),
    ]
    expect(await run(renamed)).toEqual([
      ['net', 'update'],
      ['one', 'update'],
      ['two', 'create'],
      ['edge', 'update'],
      ['front', 'none'],
    ])
    expect((await submit(hub, by, renamed)).items.map((item: Json) => item.diff)).toEqual(renamed.map(() => []))
  })

  test('[IAC-010] what no column could hold is a fault, and not looked up', async () => {
    const run = await submit(hub, by, [
      of('subnet', 'no-block', { cidr: '10.9.0.0/33' }),
      of('ip-address', 'no-address', { address: '10.0.0.300' }),
    ])
    expect(faultsOf(run).map(([file, line]) => [file, line])).toEqual([
      ['no-block.yml', 7],
      ['no-address.yml', 7],
    ])
  })
})
