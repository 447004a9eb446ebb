// What exists as manifests: planning them right away changes nothing (resources.md §6).
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { parse } from 'yaml'
import { watchDrift } from '../../apps/hub/iac/drift.ts'
import { exportYaml } from '../../apps/hub/iac/export-manifests.ts'
import { manifestKind } from '../../apps/hub/iac/kinds/all-manifest-kinds.ts'
import { CONTENTS_BYTES_MAX } from '../../apps/hub/iac/run-limits.ts'
import { manifestYaml } from '../../apps/hub/iac/write-manifest-yaml.ts'
import { assert } from '../../core/assert.ts'
import { type Json, TestHub } from './hub-harness.ts'
import { acme, applied, manifest, submit } from './iac-rig.ts'

let hub: TestHub

beforeAll(async () => {
  hub = await TestHub.start()
})
afterAll(() => hub.stop())

test('[RES-127] [RES-148] what is exported plans to nothing, and its schema accepts it and no unknown key', async () => {
  const company = await acme(hub)
  const post = (path: string, body: Json) => company.call('POST', path, body)
  const { data: web } = (await post('/servers', { name: 'Web 1', tags: ['b', 'a'], environment: 'prod' })).body
  await post('/servers', { name: 'plain', hostname: 'h', cpu_cores: 2 })
  await post('/monitoring/checks', {
    name: 'up',
    type: 'http',
    target: { url: 'https://example.com' },
    scope: { server_ids: [web.id] },
  })
  await post('/monitoring/checks', {
    name: 'up',
    type: 'port',
    target: { port: 22, proto: 'tcp' },
    scope: { all: true },
  })
  await post('/monitoring/silences', {
    scope: { tags: ['a'] },
    reason: 'works',
    ends_at: new Date(Date.now() + 3_600_000).toISOString(),
  })
  await post('/subnets', { cidr: '10.20.0.0/24', gateway: '10.20.0.1', tags: ['net'] })
  const ajv = new Ajv2020({ strict: false })
  addFormats.default(ajv)
  ajv.addFormat('time-zone', true)
  for (const { kind } of (await company.call('GET', '/iac/kinds')).body.data) {
    const { body } = await company.call('GET', `/iac/export/${kind}`)
    const schema = (await company.call('GET', `/iac/kinds/${kind}/schema`)).body.data
    const isValid = ajv.compile(schema)
    for (const { contents } of body.data) {
      const value = parse(contents)
      expect([kind, isValid(value), isValid.errors]).toEqual([kind, true, null])
      expect(isValid({ ...value, spec: { ...value.spec, colour: 'red' } })).toBe(false)
    }
    if (body.data.length === 0) continue
    const run = await submit(hub, company, body.data)
    expect(run.errors).toEqual([])
    for (const item of run.items)
      expect([kind, item.name, item.action, item.diff]).toEqual([kind, item.name, 'none', []])
  }
  const yaml = await fetch(`${hub.url}/api/v1/iac/export/server`, {
    headers: { Authorization: `Bearer ${company.token}`, Accept: 'application/yaml' },
  })
  expect([yaml.status, yaml.headers.get('content-type')]).toEqual([200, 'application/yaml; charset=utf-8'])
  // As it is read, and not as a whole.
  expect(yaml.headers.get('transfer-encoding')).toBe('chunked')
  expect(await yaml.text()).toContain(`---\n# path: server/${company.slug}/plain.yml\napiVersion: hub/v1\n`)
  expect((await company.call('GET', '/iac/export/planet')).status).toBe(404)
})

test('[RES-127] what was exported plans to nothing although a server that it names is gone, and may be changed beside it', async () => {
  const company = await acme(hub)
  const post = async (path: string, body: Json): Promise<Json> => (await company.call('POST', path, body)).body.data
  const gone = await post('/servers', { name: 'Đi', ip_address: '10.1.9.9' })
  const here = await post('/servers', { name: 'Ở lại' })
  const scope = { server_ids: [gone.id, here.id] }
  const metric = { metric: 'cpu_usage_percent', operator: '>', threshold: 90, severity: 'info' }
  await post('/monitoring/rules', { name: 'load', ...metric, scope })
  await post('/monitoring/silences', {
    reason: 'works',
    scope,
    ends_at: new Date(Date.now() + 3_600_000).toISOString(),
  })
  await post('/monitoring/checks', { name: 'ssh', type: 'port', target: { port: 22, proto: 'tcp' }, scope })
  await post('/connections', { source: { kind: 'server', id: here.id }, target: { kind: 'server', id: gone.id } })
  await post('/load-balancers', { name: 'edge', vendor: 'f5', server_ids: [gone.id, here.id] })
  expect((await company.call('DELETE', `/servers/${gone.id}`)).status).toBe(204)
  const changes = [
    ['alert-rule', 'severity', 'critical'],
    ['silence', 'reason', 'more works'],
    ['check', 'timeout_seconds', 9],
    ['connection', 'criticality', 'soft'],
    ['load-balancer', 'datacenter', 'han'],
  ] as const
  const exported: Json[] = []
  for (const [kind] of changes) exported.push(...(await company.call('GET', `/iac/export/${kind}`)).body.data)
  const same = await submit(hub, company, exported)
  expect([same.errors, same.items.map((item: Json) => item.action)]).toEqual([[], exported.map(() => 'none')])
  await applied(company, same.id)
  const changed = changes.map(([kind, field, value]) => {
    const naming = exported.find(({ path, contents }) => path.startsWith(`${kind}/`) && contents.includes('Đi'))
    const { metadata, spec } = parse(naming?.contents ?? '')
    return manifest(company.slug, kind, metadata.name, { ...spec, [field]: value })
  })
  const run = await submit(hub, company, changed)
  expect(run.errors).toEqual([])
  expect(run.items.map((item: Json) => [item.kind, item.diff.map((each: Json) => each.field)]).sort()).toEqual(
    changes.map(([kind, field]) => [kind, [field]] as [string, string[]]).sort(),
  )
  const { status, items } = await applied(company, run.id)
  expect([status, items.map((item: Json) => item.error)]).toEqual(['applied', items.map(() => null)])
  // A field that is written names what there is.
  const [check] = (await company.call('GET', '/iac/export/check')).body.data
  const other = check.contents.replace('Ở lại', 'Không có').replace('- Đi', '- Đi\n      - Ở lại')
  const wrong = await submit(hub, company, [{ path: 'x.yml', contents: other }])
  expect(wrong.errors.map((each: Json) => each.message).sort()).toEqual([
    expect.stringContaining('there is no server Không có'),
  ])
  const fewer = check.contents.replace(/\n *- Ở lại/, '')
  const written = await submit(hub, company, [{ path: 'x.yml', contents: fewer }])
  expect(written.errors[0].message).toContain('there is no server Đi')
})

test('[RES-127] what is called as the manifest of another one is exported by its id', async () => {
  const company = await acme(hub)
  const post = async (path: string, body: Json): Promise<Json> => (await company.call('POST', path, body)).body.data
  const bind = await submit(hub, company, [
    manifest(company.slug, 'subnet', 'office', { cidr: '10.30.0.0/24', name: 'Floor 1' }),
    manifest(company.slug, 'server', 'db', { name: 'Database' }),
  ])
  expect((await applied(company, bind.id)).status).toBe('applied')
  const subnet = await post('/subnets', { cidr: '10.31.0.0/24', name: 'office' })
  const named = await post('/servers', { name: 'db', subnet_id: subnet.id })
  const other = await post('/servers', { name: 'Other' })
  const [bound] = (await company.call('GET', '/servers?search=Database')).body.data
  const scope = { server_ids: [named.id, other.id, bound.id] }
  await post('/monitoring/checks', { name: 'ssh', type: 'port', target: { port: 22, proto: 'tcp' }, scope })
  await post('/connections', { source: { kind: 'server', id: other.id }, target: { kind: 'server', id: named.id } })
  const exported: Json[] = []
  for (const kind of ['server', 'check', 'connection', 'subnet'])
    exported.push(...(await company.call('GET', `/iac/export/${kind}`)).body.data)
  const texts = exported.map(({ contents }) => contents).join('')
  expect(texts).toContain(subnet.id)
  expect(texts.split(named.id).length - 1).toBe(2)
  const run = await submit(hub, company, exported)
  expect(run.errors).toEqual([])
  expect(run.items.map((item: Json) => [item.kind, item.action, item.diff])).toEqual(
    run.items.map((item: Json) => [item.kind, 'none', []]),
  )
  // A change beside it leaves what is named by its id.
  const check = exported.find(({ path }) => path.startsWith('check/'))
  const changed = { ...check, contents: check?.contents.replace('port: 22', 'port: 2222') }
  const second = await submit(hub, company, [changed])
  expect((await applied(company, second.id)).status).toBe('applied')
  const [kept] = (await company.call('GET', '/monitoring/checks')).body.data
  expect([kept.target.port, [...kept.scope.server_ids].sort()]).toEqual([2222, [...scope.server_ids].sort()])
})

test('[RES-127] the character that stands for what is no UTF-8 is exported as its escape, which can be read', async () => {
  const company = await acme(hub)
  const texts = { description: 'a\ufffdb: "c" \\ d', tags: ['\ufffd'] }
  expect((await company.call('POST', '/subnets', { cidr: '10.21.0.0/24', ...texts })).status).toBe(201)
  const exported = (await company.call('GET', '/iac/export/subnet')).body.data
  expect(parse(exported[0].contents).spec).toMatchObject(texts)
  const run = await submit(hub, company, exported)
  expect([run.errors, run.items.map((item: Json) => item.action)]).toEqual([[], ['none']])
})

test('[RES-127] [RES-142] rules whose names differ by case only are told apart where a silence names them', async () => {
  const company = await acme(hub)
  const metric = { metric: 'cpu_usage_percent', operator: '>', threshold: 90, severity: 'info', scope: { all: true } }
  const ends_at = new Date(Date.now() + 3_600_000).toISOString()
  for (const name of ['Dup', 'dup', 'DUP']) {
    const rule = (await company.call('POST', '/monitoring/rules', { name, ...metric })).body.data
    const silence = { reason: `works ${name}`, ends_at, scope: { all: true }, rule_ids: [rule.id] }
    expect((await company.call('POST', '/monitoring/silences', silence)).status).toBe(201)
  }
  const { data } = (await company.call('GET', '/iac/export/silence')).body
  const run = await submit(hub, company, data)
  expect([run.errors, run.items.map((item: Json) => [item.action, item.diff])]).toEqual([
    [],
    data.map(() => ['none', []]),
  ])
  await applied(company, run.id)
  await watchDrift(hub.hub)
  const kinds = (await company.call('GET', '/iac/kinds')).body.data
  expect(kinds.find(({ kind }: Json) => kind === 'silence')).toMatchObject({ count: 3, drifted: 0 })
})

test('[RES-127] a record of a zone is a line where it fits there, so that those of 4,000 fit into a manifest', async () => {
  const company = await acme(hub)
  const { data: zone } = (await company.call('POST', '/dns/zones', { name: 'lines.test' })).body
  const content = `h-7 300 A 10.0.0.7\nlong TXT "${'x'.repeat(200)}"\n`
  await company.call('POST', `/dns/zones/${zone.id}/import`, { content })
  const exported = (await company.call('GET', '/iac/export/dns-zone')).body.data
  const shown: string[] = exported[0].contents.split('\n')
  expect(shown.filter(line => /name: (h-7|long)\b/.test(line))).toEqual([
    '    - {name: h-7, type: A, values: [10.0.0.7], ttl: 300}',
    '    - name: long',
  ])
  const run = await submit(hub, company, exported)
  expect([run.errors, run.items.map((item: Json) => item.action)]).toEqual([[], ['none']])
  const [record] = parse(exported[0].contents).spec.records
  const records = Array.from({ length: 4000 }, (_, n) => ({ ...record, name: `h-${n}` }))
  const large = manifestYaml({ kind: 'dns-zone', company: company.slug, name: 'large', spec: { records } })
  expect(Buffer.byteLength(large)).toBeLessThan(CONTENTS_BYTES_MAX)
})

test('all of a kind is one stream, read step by step to its end', async () => {
  const company = await acme(hub)
  const count = 7
  await hub.hub.database.client`
    insert into export_schedules (id, company_id, name, resource, format, every, at_time, time_zone)
    select gen_random_uuid(), ${company.companyId}, 'nightly ' || n % 6, 'servers', 'csv', 'day', '02:30', 'UTC'
    from generate_series(1, ${count}::int) n`
  const kind = manifestKind('export-schedule')
  assert(kind !== null, 'the kind is there')
  for (const step of [3, 7, 8]) {
    const stream = await exportYaml({ hub: hub.hub, companyId: company.companyId }, kind, {}, step)
    const paths = [...(await new Response(stream).text()).matchAll(/^# path: (.+)$/gm)].map(([, path]) => path)
    expect([paths.length, new Set(paths).size]).toEqual([count, count])
  }
})

test('two of many whose names come to one slug are told apart on a page that has one of them', async () => {
  const company = await acme(hub)
  await hub.hub.database.client`
    insert into export_schedules (id, company_id, name, resource, format, every, at_time, time_zone)
    select gen_random_uuid(), ${company.companyId}, case n when 0 then 'twin one' when 25000 then 'twin_one' else 'n ' || n end,
      'servers', 'csv', 'day', '02:30', 'UTC' from generate_series(0, 25000) n`
  const pathOf = async (name: string): Promise<string> => {
    const { body } = await company.call('GET', `/iac/export/export-schedule?name=${encodeURIComponent(name)}`)
    expect(body.data.length).toBe(1)
    return body.data[0].path
  }
  const [first, second] = [await pathOf('twin one'), await pathOf('twin_one')]
  for (const path of [first, second]) expect(path).toMatch(/twin-one-[0-9a-f]{8}\.ya?ml$/)
  expect(first).not.toBe(second)
  expect(await pathOf('n 7')).toMatch(/\/n-7\.ya?ml$/)
})

test('a silence that is over leaves its name to the one that goes on', async () => {
  const company = await acme(hub)
  const silence = async (): Promise<string> => {
    const ends_at = new Date(Date.now() + 3_600_000).toISOString()
    const { body } = await company.call('POST', '/monitoring/silences', {
      reason: 'works',
      ends_at,
      scope: { all: true },
    })
    return body.data.id
  }
  const over = await silence()
  await silence()
  const paths = async (): Promise<string[]> => {
    const { body } = await company.call('GET', '/iac/export/silence')
    return body.data.map(({ path }: { path: string }) => path.replace(/^.*\//, ''))
  }
  expect(new Set(await paths()).size).toBe(2)
  expect((await company.call('POST', `/monitoring/silences/${over}/end`)).status).toBeLessThan(300)
  expect(await paths()).toEqual([expect.stringMatching(/^works\.ya?ml$/)])
})

test('what is exported by name is found by the name of its manifest too, in both forms, and by no other', async () => {
  const company = await acme(hub)
  const of = (kind: string, name: string, spec: Json) => manifest(company.slug, kind, name, spec)
  const ends_at = new Date(Date.now() + 3_600_000).toISOString()
  const run = await submit(
    hub,
    company,
    [
      of('dns-zone', 'example-com', { zone: 'example.com' }),
      of('ip-address', 'gateway', { address: '10.99.0.1' }),
      of('server', 'web-1', { name: 'Web one' }),
      of('check', 'ssh', { name: 'SSH', type: 'port', target: { port: 22, proto: 'tcp' }, scope: { all: true } }),
      of('silence', 'works', { scope: { all: true }, reason: 'more works', ends_at }),
    ],
    { apply: true },
  )
  expect([run.errors, run.status]).toEqual([[], 'applied'])
  for (const { path, kind, name } of run.items) {
    const asked = `/iac/export/${kind}?name=${name}`
    const { data, meta } = (await company.call('GET', asked)).body
    expect([data.map((each: Json) => each.path), meta.total]).toEqual([[path], 1])
    const headers = { Accept: 'application/yaml', Authorization: `Bearer ${company.token}` }
    expect(await (await fetch(`${hub.url}/api/v1${asked}`, { headers })).text()).toContain(`# path: ${path}\n`)
    expect((await company.call('GET', `${asked}-2`)).body.data).toEqual([])
  }
  const named = (await company.call('GET', '/iac/export/server?name=web%20ONE')).body.data
  expect(named.map((each: Json) => each.path)).toEqual([`server/${company.slug}/web-1.yml`])
  // A manifest of another company is none of this one's.
  const other = await acme(hub)
  expect((await other.call('GET', '/iac/export/server?name=web-1')).body.data).toEqual([])
})
