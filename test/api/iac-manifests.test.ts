// Manifests: their form, what is refused, the form endpoint, validation, export, schemas, attachments (resources.md
// §6).
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { parse } from 'yaml'
import { keptDescription } from '../../apps/hub/iac/description-html.ts'
import { watchDrift } from '../../apps/hub/iac/drift.ts'
import { countStatements } from '../support/count-statements.ts'
import { type Json, TestHub } from './hub-harness.ts'
import { type Acme, acme, applied, manifest, submit } from './iac-rig.ts'

let hub: TestHub
let own: Acme

beforeAll(async () => {
  hub = await TestHub.start()
  own = await acme(hub)
})
afterAll(() => hub.stop())

const server = (name: string, spec: Json = {}, more: Json = {}) => manifest(own.slug, 'server', name, spec, more)
/** The errors of a run of one text. */
async function errorsOf(contents: string, path = 'x.yml'): Promise<Json[]> {
  const run = await submit(hub, own, [{ path, contents }])
  expect([run.status, run.items]).toEqual(['invalid', []])
  for (const error of run.errors) expect(error.path).toBe(path)
  return run.errors
}
const messages = async (contents: string, path?: string): Promise<string> =>
  (await errorsOf(contents, path)).map(error => error.message).join('\n')
const head = (kind = 'server', company = own.slug, name = 'a') =>
  `apiVersion: hub/v1\nkind: ${kind}\nmetadata: {company: ${company}, name: ${name}}\n`

describe('what is refused', () => {
  test('[IAC-002] [IAC-003] [IAC-004] [IAC-005] [RES-119] the number of manifests and their members', async () => {
    const { call } = await hub.token(own.userId)
    const post = async (body: Json): Promise<[number, string[]]> => {
      const answer = await call('POST', '/iac/runs', body)
      return [answer.status, Object.keys(answer.body.errors ?? {})]
    }
    expect(await post({})).toEqual([422, ['manifests']])
    expect(await post({ manifests: [] })).toEqual([422, ['manifests']])
    expect(await post({ manifests: Array(26).fill(server('x')) })).toEqual([422, ['manifests']])
    expect(await post({ manifests: [{ contents: 'x' }] })).toEqual([422, ['manifests.0.path']])
    expect(await post({ manifests: [{ path: 'x' }] })).toEqual([422, ['manifests.0.contents']])
    expect(await post({ manifests: [{ path: 'x', contents: 'é'.repeat(200_000) }] })).toEqual([
      422,
      ['manifests.0.contents'],
    ])
    expect(await post({ manifests: [server('x')], title: 'x'.repeat(256) })).toEqual([422, ['title']])
  })

  test('[IAC-010] [IAC-029] [IAC-030] [IAC-031] [RES-120] [G-127] a path of three parts that says something else', async () => {
    const { contents } = server('a', {})
    expect(await messages(contents, `check/${own.slug}/a.yml`)).toContain('kind')
    expect(await messages(contents, 'server/other/a.yml')).toContain('company')
    expect(await messages(contents, `server/${own.slug}/b.yml`)).toContain('name')
    expect((await submit(hub, own, [{ path: 'any/where/else/a.yml', contents }])).status).toBe('planned')
  })

  test('[RES-129] unknown keys, second documents, tags, bombs and text that is no UTF-8, with their lines', async () => {
    expect(await errorsOf(`${head()}spec:\n  hostname: a\n  colour: red\n`)).toEqual([
      { path: 'x.yml', line: 6, message: 'spec.colour: unknown key' },
    ])
    expect(await messages(`${head()}spec: {}\nextra: 1\n`)).toContain('extra: unknown key')
    expect((await errorsOf(`${head()}spec: {}\n---\na: 1\n`))[0]).toMatchObject({
      line: 5,
      message: expect.stringContaining('one YAML document'),
    })
    expect((await errorsOf(`${head()}spec: {hostname: !!str a}\n`))[0]).toMatchObject({
      line: 4,
      message: expect.stringContaining('tags'),
    })
    const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]']
    for (const [index, name] of [...'bcdefghij'].entries())
      bomb.push(`${name}: &${name} [${Array(9).fill(`*${'abcdefghi'[index]}`).join(',')}]`)
    expect((await errorsOf(bomb.join('\n')))[0]).toMatchObject({ line: 2, message: expect.stringContaining('alias') })
    expect((await errorsOf(`${head()}spec: {tags: &t [x],\n  name: *nobody}\n`))[0]).toMatchObject({ line: 5 })
    expect((await errorsOf(`${head()}\nspec: &s\n  tags: [*s]\n`))[0]).toMatchObject({ line: 6 })
    expect(await messages(`a: &a 1\nb: [${'*a,'.repeat(80_000)}]`)).toContain('at most 100 aliases')
    expect(await messages('['.repeat(200_000))).toContain('20 levels')
    expect(await messages('- '.repeat(100_000))).toContain('20 levels')
    expect((await errorsOf(`${head()}spec: {hostname: "\ufffd"}\n`))[0]).toMatchObject({
      line: 4,
      message: expect.stringContaining('UTF-8'),
    })
    expect(await messages(`${head()}spec: {hostname: a, hostname: b}\n`)).toContain('stands twice')
    for (const escaped of ['hostname: "a\\0b"', 'hostname: "\\uD800"', '"a\\0b": 1', 'tags: ["\\0"]'])
      expect((await errorsOf(`${head()}spec:\n  ${escaped}\n`))[0]).toMatchObject({
        line: 5,
        message: expect.stringContaining('NUL'),
      })
    expect(await messages('just text')).toContain('must be a map')
  })

  test('[G-06] what is wrong with a manifest is said in the language of who submits it', async () => {
    const { call } = await hub.token(own.userId)
    const contents = `${head('rocket')}owner: me\nspec: {}\n`
    const said = async (language: string): Promise<string[]> => {
      const headers = { 'Accept-Language': language }
      const sent = {
        manifests: [
          { path: 'x.yml', contents },
          { path: 'y.yml', contents: `${head()}spec: {a: 1}\n` },
        ],
      }
      const { body } = await call('POST', '/iac/validate', sent, headers)
      return body.data.errors.map(({ message }: Json) => message.replace(/; .*/, ''))
    }
    expect(await said('en')).toEqual(['owner: unknown key', 'kind: unknown kind', 'spec.a: unknown key'])
    expect(await said('vi')).toEqual([
      'owner: khóa không hợp lệ',
      'kind: loại không hợp lệ',
      'spec.a: khóa không hợp lệ',
    ])
  })

  test('[RES-129] [G-126] what is to be absent may say little, but nothing that its kind does not know', async () => {
    const gone = (kind: string, spec: string) => `${head(kind)}ensure: absent\n${spec}`
    await own.call('POST', '/monitoring/silences', {
      scope: { all: true },
      reason: 'absent',
      ends_at: new Date(Date.now() + 3_600_000).toISOString(),
    })
    const told = async (kind: string, spec: string) =>
      (await errorsOf(gone(kind, spec))).map(({ line, message }) => [line, message.split(': ').slice(0, 2).join(': ')])
    expect(await told('subnet', 'spec:\n  colour: red\n')).toEqual([[6, 'spec.colour: unknown key']])
    expect(await told('subnet', 'spec: {cidr: 5}\n')).toEqual([[5, 'spec.cidr: must be text']])
    expect((await told('silence', 'spec: {reason: absent, ends_at: soon}\n'))[0]![1]).toStartWith('spec.ends_at: ')
    const ajv = new Ajv2020({ strict: false })
    addFormats.default(ajv)
    const isValid = ajv.compile((await own.call('GET', '/iac/kinds/subnet/schema')).body.data)
    for (const spec of ['', 'spec: {}\n', 'spec: {description: x}\n']) {
      const contents = gone('subnet', spec)
      expect((await submit(hub, own, [{ path: 'x.yml', contents }])).errors).toEqual([])
      expect([isValid(parse(contents)), isValid.errors]).toEqual([true, null])
    }
    expect(isValid({ ...parse(gone('subnet', 'spec: {}')), ensure: 'present' })).toBe(false)
  })

  test('[G-13] an empty text of an optional field is none', async () => {
    const run = await submit(hub, own, [server('blank-fields', { name: '', hostname: '', role: 'web' })])
    expect([run.errors, run.items[0].diff.map((each: Json) => each.field).sort()]).toEqual([[], ['name', 'role']])
  })

  test('[RES-130] [RES-131] unknown kinds, versions and companies name what is allowed; foreign ones read like unknown ones', async () => {
    const other = await acme(hub)
    expect(await messages(`${head('planet')}spec: {}\n`)).toMatch(/kind: unknown kind; allowed: .*server/)
    expect(await messages(head().replace('hub/v1', 'hub/v9'))).toContain('must be hub/v1')
    const unknown = await messages(`${head('server', 'nobody')}spec: {}\n`)
    const foreign = await messages(`${head('server', other.slug)}spec: {}\n`)
    expect(unknown).toContain(own.slug)
    expect(foreign).toBe(unknown)
    expect(await messages(`${head('server', own.slug, 'Not_A_Slug')}spec: {}\n`)).toContain('metadata.name')
  })

  test('values outside their domain, and what refers to nothing, are errors of planning', async () => {
    expect(await messages(`${head()}spec: {cpu_cores: 0, ip_address: 1.2.3.4}\n`)).toBe(
      'spec.cpu_cores: must be at least 1',
    )
    expect(await messages(`${head()}spec: {ip_address: not-an-ip}\n`)).toBe(
      'spec.ip_address: must be an IPv4 or IPv6 address',
    )
    const check = `${head('check')}spec:\n  type: tcp\n  target: {target: "a:1"}\n  scope: {servers: [nowhere]}\n`
    expect(await errorsOf(check)).toMatchObject([
      { line: 7, message: expect.stringContaining('there is no server nowhere') },
    ])
    expect(await messages(check.replace('servers', 'server_ids'))).toContain('scope.server_ids.0: there is no server')
    expect(
      await messages(
        `${head('alert-rule')}spec: {severity: info, scope: {all: true}, metric: nope, operator: ">", threshold: 1}\n`,
      ),
    ).toContain('metric')
  })

  test('[RES-129] [RES-199] [RES-200] records of a zone say each thing once, or are refused at their line', async () => {
    const of = (...records: string[]) =>
      errorsOf(
        `${head('dns-zone')}spec:\n  zone: once.test\n  records:\n${records.map(each => `    - {${each}}\n`).join('')}`,
      )
    const www = 'name: www, type: A'
    expect(await of(`${www}, value: 192.0.2.1, values: [192.0.2.2]`)).toMatchObject([
      { line: 7, message: 'spec.records.0.values: say value or values, not both' },
    ])
    expect(
      await of(`${www}, value: 192.0.2.1`, `${www}, ttl: 60, value: 192.0.2.2`, `${www}, ttl: 90, value: 192.0.2.3`),
    ).toMatchObject([
      { line: 9, message: 'spec.records.2.ttl: the records of a name and type have one ttl, which is 60 above' },
    ])
    expect(await of(`${www}, value: 192.0.2.1`, 'name: WWW.once.test., type: A, value: 192.0.2.1')).toMatchObject([
      { line: 8, message: 'spec.records.1: the record exists already' },
    ])
  })

  test('[RES-128] two manifests of one resource name both paths', async () => {
    const [one, two] = [server('twin', {}), { ...server('twin', {}), path: 'other.yml' }]
    const run = await submit(hub, own, [one, two])
    expect(run.status).toBe('invalid')
    expect(run.errors[0].message).toContain(one.path)
    expect(run.errors[0].message).toContain(two.path)
    const named = await submit(hub, own, [server('twin-a', { name: 'Twin' }), server('twin-b', { name: 'twin' })])
    expect(named.errors[0].message).toContain('twin-a.yml')
  })

  test('[RES-018] [RES-144] a secret is an error, and stands nowhere afterwards', async () => {
    const secret = `s3cr3t-${crypto.randomUUID()}`
    const texts = [
      `${head('webhook')}spec:\n  url: https://example.com\n  secret: ${secret}\n`,
      `${head()}spec: {password: "${secret}"}\n`,
      `${head()}spec: {api_key: ${secret}\n  broken: [\n`,
    ]
    const run = await submit(
      hub,
      own,
      texts.map((contents, index) => ({ path: `${index}.yml`, contents })),
    )
    expect(run.status).toBe('invalid')
    expect(run.errors.find((error: Json) => error.path === '0.yml').message).toContain(
      'set it with PATCH after applying',
    )
    const timeline = (await own.call('GET', `/iac/runs/${run.id}/timeline`)).body
    const log = (await own.call('GET', '/audit-log')).body
    expect(JSON.stringify([run, timeline, log])).not.toContain(secret)
    expect(run.files[0].contents).toContain('(hidden)')
  })

  test('[RES-147] [IAC-007] a description keeps plain HTML alone', async () => {
    const description =
      '<p onclick="x()">Why "<b>now</b>"</p><script>alert(1)</script><a href="javascript:x()">a</a><a href=\'https://example.com/?a=1&b="2\' onmouseover=x>b</a><img src=x onerror=y><a href="java\nscript:x">c</a>'
    const run = await submit(hub, own, [server('html')], { description })
    expect(run.description).toBe(
      '<p>Why "<b>now</b>"</p><a>a</a><a href="https://example.com/?a=1&amp;b=&quot;2">b</a><a>c</a>',
    )
  })

  test('[RES-147] what looks like markup of any length is read once: a hub that tried it in every way would stand still', () => {
    const longest = 20_000
    for (const filling of [' ', '\t ', '/', ' /', ' a', ' a="', " '", ' href'])
      for (const tag of ['<a', '</a', '<b', '<', '<script', '<!--']) {
        const text = (tag + filling.repeat(longest)).slice(0, longest)
        for (let round = 0; round < 50; round++) expect(keptDescription(text)).not.toContain('<script')
      }
  })
})

test('[IAC-006] [IAC-007] a blank title is made from the plan, a blank description is none', async () => {
  for (const blank of ['', '   ', null])
    expect(await submit(hub, own, [server('blank')], { title: blank, description: blank })).toMatchObject({
      title: 'Create server blank',
      description: null,
    })
})

test('a kind depends on kinds that manifests have, and those come before it', async () => {
  const { data } = (await own.call('GET', '/iac/kinds')).body
  const order = data.map((each: Json) => each.kind)
  for (const { kind, depends_on: needed } of data)
    for (const other of needed) {
      expect(order, kind).toContain(other)
      expect(order.indexOf(other), `${kind} needs ${other}`).toBeLessThan(order.indexOf(kind))
    }
  expect(data.find((each: Json) => each.kind === 'connection').depends_on).toEqual(['server', 'load-balancer', 'proxy'])
})

describe('other ways in', () => {
  test('[IAC-033] [IAC-032] [RES-121] [RES-263] with YAML off runs are refused, the form and validation go on', async () => {
    const company = await acme(hub)
    const settings = '/system/settings/iac.yaml_upload_enabled'
    expect((await company.call('PUT', `${settings}?level=company`, { value: false })).status).toBe(200)
    const file = manifest(company.slug, 'server', 'formed', { hostname: 'h' })
    const refused = await company.call('POST', '/iac/runs', { manifests: [file] })
    expect([refused.status, refused.body.reason]).toEqual([403, 'iac_upload_disabled'])
    const form = { kind: 'server', company: company.slug, name: 'formed', spec: { hostname: 'h' }, title: 'By form' }
    const made = await company.call('POST', '/iac/form', { ...form, apply: true })
    expect([made.status, made.body.data.status, made.body.data.title]).toEqual([201, 'applied', 'By form'])
    expect(made.body.data.files).toMatchObject([{ path: `server/${company.slug}/formed.yml` }])
    expect((await company.call('POST', '/iac/form', { manifests: [file] })).body.data.items[0].action).toBe('none')
    const valid = await company.call('POST', '/iac/validate', { manifests: [file] })
    expect([valid.status, valid.body.data.status, 'id' in valid.body.data]).toEqual([200, 'planned', false])
    expect((await company.call('GET', '/iac/runs')).body.meta.total).toBe(2)
    expect((await own.call('POST', '/iac/validate', { manifests: [server('still-on')] })).status).toBe(200)
  })

  test('[IAC-033] [G-129] a form names every field that it lacks, and its spec where that is too long', async () => {
    const { call } = await hub.token(own.userId)
    const faults = async (body: Json) => {
      const answer = await call('POST', '/iac/form', body)
      return [answer.status, Object.keys(answer.body.errors ?? {})]
    }
    const one = { kind: 'server', company: own.slug, name: 'formed', spec: {} }
    expect(await faults({})).toEqual([422, ['kind', 'company', 'name']])
    expect(await faults({ ...one, name: '' })).toEqual([422, ['name']])
    expect(await faults({ ...one, spec: { hostname: 'x'.repeat(262_144) } })).toEqual([422, ['spec']])
    expect(await faults({ ...one, manifests: null })).toEqual([201, []])
  })

  test('[IAC-034] [RES-146] [G-130] the 11th submission of a token within a minute answers 429', async () => {
    const { call } = await hub.token(own.userId)
    const body = { manifests: [server('rate')] }
    const paths = ['/iac/runs', '/iac/validate', '/iac/form']
    for (let sent = 0; sent < 10; sent++) expect((await call('POST', paths[sent % 3]!, body)).status).toBeLessThan(300)
    const eleventh = await call('POST', '/iac/validate', body)
    expect(eleventh.status).toBe(429)
    expect(Number(eleventh.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await (await hub.token(own.userId)).call('POST', '/iac/validate', body)).status).toBe(200)
  })

  test('[IAC-035] [RES-149] the path without v1 works and says that it is deprecated', async () => {
    const { status, headers } = await own.call('GET', '/api/iac/runs')
    expect([status, headers.get('deprecation')]).toEqual([200, 'true'])
  })

  test('[IAC-018] [IAC-019] [IAC-020] [IAC-021] [IAC-022] [IAC-023] [IAC-024] the list: search, filters, newest first, own company', async () => {
    const company = await acme(hub)
    const other = await hub.user(company.companyId, ['iac.submit'])
    const first = await submit(hub, company, [manifest(company.slug, 'server', 'one', {})], { title: 'Alpha' })
    const second = await submit(hub, other, [manifest(company.slug, 'server', 'two', {})], { title: 'Beta' })
    const bad = await submit(hub, company, [{ path: 'x', contents: 'x' }])
    const ids = async (query: string): Promise<string[]> =>
      (await company.call('GET', `/iac/runs${query}`)).body.data.map((run: Json) => run.id)
    expect(await ids('')).toEqual([bad.id, second.id, first.id])
    expect(await ids('?search=alph')).toEqual([first.id])
    expect(await ids(`?search=${second.id}`)).toEqual([second.id])
    expect(await ids('?status=invalid')).toEqual([bad.id])
    expect(await ids('?mine=1')).toEqual([bad.id, first.id])
    expect(await ids('?kind=server')).toEqual([second.id, first.id])
    expect((await company.call('GET', '/iac/runs?status=bad')).status).toBe(422)
    expect((await other.call('GET', '/iac/runs')).status).toBe(403)
    expect((await own.call('GET', `/iac/runs/${first.id}`)).status).toBe(404)
  })

  test('[IAC-027] [RES-124] [RES-125] the submitter sees their own run; others need iac.view', async () => {
    const submitter = await hub.user(own.companyId, ['iac.submit'])
    const run = await submit(hub, submitter, [server('mine')])
    expect((await submitter.call('GET', `/iac/runs/${run.id}`)).status).toBe(200)
    const colleague = await hub.user(own.companyId, ['iac.submit'])
    expect((await colleague.call('GET', `/iac/runs/${run.id}`)).status).toBe(403)
    expect((await colleague.call('POST', `/iac/runs/${run.id}/cancel`)).status).toBe(403)
  })
})

describe('afterwards', () => {
  test('a subnet of the registry, a server in it and a check on that server are made in that order', async () => {
    const company = await acme(hub)
    const of = (kind: string, name: string, spec: Json) => manifest(company.slug, kind, name, spec)
    const files = [
      of('check', 'ssh', { type: 'port', target: { port: 22, proto: 'tcp' }, scope: { servers: ['app'] } }),
      of('server', 'app', { subnet: 'lan', ip_address: '10.9.0.5' }),
      of('subnet', 'lan', { cidr: '10.9.0.0/24', gateway: '10.9.0.1' }),
    ]
    const run = await submit(hub, company, files, { apply: true })
    expect(run.items.map((item: Json) => [item.kind, item.status, item.error])).toEqual([
      ['subnet', 'applied', null],
      ['server', 'applied', null],
      ['check', 'applied', null],
    ])
    const [subnet] = (await company.call('GET', '/subnets')).body.data
    const [app] = (await company.call('GET', '/servers')).body.data
    expect([subnet.origin, subnet.version, app.subnet_id]).toEqual(['iac', 1, subnet.id])
    expect(subnet.created_by.id).toBe(company.userId)
    const byField = { type: 'port', target: { port: 22, proto: 'tcp' }, scope: { server_ids: ['app'] } }
    const again = await submit(hub, company, [of('check', 'ssh', byField), ...files.slice(1)])
    expect(again.items.map((item: Json) => item.action)).toEqual(['none', 'none', 'none'])
  })

  test('[RES-145] a cancelled run is not applied, its tickets close, and it keeps its status', async () => {
    const run = await submit(hub, own, [server('cancelled')])
    const { body } = await own.call('POST', `/iac/runs/${run.id}/cancel`)
    expect([body.data.status, body.data.cancelled_at !== null]).toEqual(['planned', true])
    for (const act of ['apply', 'replan']) {
      const refused = await own.call('POST', `/iac/runs/${run.id}/${act}`)
      expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['status']])
    }
    const done = await submit(hub, own, [server('done')], { apply: true })
    expect((await own.call('POST', `/iac/runs/${done.id}/cancel`)).status).toBe(422)
    const timeline = (await own.call('GET', `/iac/runs/${done.id}/timeline`)).body.data
    expect(timeline.map((entry: Json) => entry.type)).toEqual([
      'submitted',
      'planned',
      'queued',
      'item_applied',
      'finished',
    ])
  })

  test('[RES-138] planning again keeps the approvals of what stays the same, and asks anew for the rest', async () => {
    const approver = await hub.user(own.companyId, ['approvals.decide'])
    await own.call('POST', '/approvals/workflows', {
      name: 'again',
      match: { tags: ['again'] },
      steps: [{ user_ids: [approver.userId] }],
    })
    await own.call('POST', '/servers', { name: 'again-2', hostname: 'a' })
    const run = await submit(hub, own, [
      server('again-1', { tags: ['again'] }),
      server('again-2', { tags: ['again'], hostname: 'b' }),
    ])
    const { data } = (await approver.call('GET', '/approvals/inbox')).body
    await approver.call('POST', `/approvals/tickets/${data[0].id}/approve`, { all_of_run: true })
    const [changed] = (await own.call('GET', '/servers?search=again-2')).body.data
    await own.call('PATCH', `/servers/${changed.id}`, { hostname: 'c' })
    const { body } = await own.call('POST', `/iac/runs/${run.id}/replan`)
    const given = Object.fromEntries(body.data.items.map((item: Json) => [item.name, item.approvals.given]))
    expect(given).toEqual({ 'again-1': 1, 'again-2': 0 })
    expect((await applied(own, run.id)).status).toBe('partially-applied')
  })

  test('[RES-137] with iac.require_kind_permissions the permission of the kind is asked too', async () => {
    const company = await acme(hub)
    const path = '/system/settings/iac.require_kind_permissions?level=company'
    expect((await company.call('PUT', path, { value: true })).status).toBe(200)
    const weak = await hub.user(company.companyId, ['iac.submit', 'iac.apply', 'iac.view'])
    const run = await submit(hub, weak, [manifest(company.slug, 'server', 'guarded', {})])
    expect(run.items[0]).toMatchObject({ requires: 'servers.manage', forbidden: true })
    expect((await applied(weak, run.id)).items[0]).toMatchObject({
      status: 'skipped',
      error: 'forbidden: servers.manage',
    })
    expect((await applied(company, run.id)).status).toBe('applied')
  })

  test('[RES-131] [G-126] items of a child company are applied by those alone who may work there then', async () => {
    const company = await acme(hub)
    const child = await acme(hub, { parentId: company.companyId })
    const colleague = await hub.user(company.companyId, ['*'])
    const { client } = hub.hub.database
    const grant = () =>
      client`insert into user_company_grants (user_id, company_id) values (${company.userId}, ${child.companyId})`
    await grant()
    const run = await submit(hub, company, [
      manifest(child.slug, 'server', 'of-child', {}),
      manifest(company.slug, 'server', 'of-parent', {}),
    ])
    expect([run.status, run.company_id]).toEqual(['planned', company.companyId])
    const states = ({ items }: Json) => items.map((item: Json) => [item.name, item.status, item.error]).sort()
    const refused = ['of-child', 'skipped', `forbidden: company ${child.slug}`]
    const [before, made] = [await applied(colleague, run.id), ['of-parent', 'applied', null]]
    expect([before.status, states(before)]).toEqual(['partially-applied', [refused, made]])
    await client`delete from user_company_grants where user_id = ${company.userId}`
    expect(states(await applied(company, run.id))).toEqual([refused, made])
    expect((await child.call('GET', '/servers')).body.data).toEqual([])
    await grant()
    expect((await applied(company, run.id)).status).toBe('applied')
    expect((await child.call('GET', '/servers')).body.data).toMatchObject([{ name: 'of-child', origin: 'iac' }])
  })

  test('[check 16.32] [RES-142] [RES-143] a change by hand is drift until it is taken back; with iac.lock_managed it is refused', async () => {
    const company = await acme(hub)
    const of = (kind: string, name: string, spec: Json) => manifest(company.slug, kind, name, spec)
    const files = [
      of('subnet', 'drifting', { cidr: '10.8.0.0/24', vlan_id: 5 }),
      of('server', 'drifter', { hostname: 'a' }),
    ]
    await submit(hub, company, files, { apply: true })
    const [subnet] = (await company.call('GET', '/subnets')).body.data
    const [server] = (await company.call('GET', '/servers')).body.data
    const paths = [`/subnets/${subnet.id}`, `/servers/${server.id}`]
    await company.call('PATCH', paths[0]!, { vlan_id: 6 })
    await company.call('PATCH', paths[1]!, { hostname: 'b' })
    await watchDrift(hub.hub)
    const driftOf = async (path: string): Promise<Json> => {
      const { drifted, drift } = (await company.call('GET', path)).body.data
      return [drifted, drift]
    }
    expect(await driftOf(paths[0]!)).toEqual([true, [{ field: 'vlan_id', intended: 5, actual: 6 }]])
    expect(await driftOf(paths[1]!)).toEqual([true, [{ field: 'hostname', intended: 'a', actual: 'b' }]])
    const kinds = (await company.call('GET', '/iac/kinds')).body.data
    expect(kinds.find((kind: Json) => kind.kind === 'subnet')).toMatchObject({ count: 1, drifted: 1 })
    await submit(hub, company, files, { apply: true })
    await watchDrift(hub.hub)
    for (const path of paths) expect(await driftOf(path)).toEqual([false, []])
    expect((await company.call('GET', paths[0]!)).body.data.vlan_id).toBe(5)
    expect((await company.call('GET', paths[1]!)).body.data.hostname).toBe('a')
    await company.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: true })
    for (const path of paths)
      for (const method of ['PATCH', 'DELETE']) {
        const refused = await company.call(
          method,
          path,
          method === 'PATCH' ? { description: 'x', notes: 'x' } : undefined,
        )
        expect([refused.status, Object.keys(refused.body.errors)]).toEqual([422, ['origin']])
      }
    for (const [method, path, body] of [
      ['PUT', `${paths[1]}/status`, { status: 'maintenance' }],
      ['PUT', `${paths[1]}/tags`, { tags: ['x'] }],
      ['POST', '/servers/bulk/status', { server_ids: [server.id], status: 'maintenance' }],
      ['DELETE', `${paths[1]}/permanent`, undefined],
    ] as const) {
      const refused = await company.call(method, path, body)
      expect([path, refused.status, Object.keys(refused.body.errors)]).toEqual([path, 422, ['origin']])
    }
    const last = await submit(hub, company, [of('server', 'drifter', { hostname: 'c' })], { apply: true })
    expect(last.status).toBe('applied')
  })

  test('[RES-127] [RES-143] the records of a zone are all of them, or merged, and locked with it', async () => {
    const company = await acme(hub)
    const of = (spec: Json) =>
      manifest(company.slug, 'dns-zone', 'example-com', { zone: 'example.com', verify_interval_minutes: 0, ...spec })
    const apply = async (spec: Json) => submit(hub, company, [of(spec)], { apply: true })
    const list = [
      { type: 'MX', ttl: 3600, values: ['10 mail', '20 mail2.example.com.'] },
      { name: 'WWW', type: 'A', ttl: 300, value: '192.0.2.10' },
      { name: 'txt', type: 'TXT', value: 'a "b" \\\\ ü' },
    ]
    const first = await apply({ records: list })
    expect([first.status, first.errors]).toEqual(['applied', []])
    const [zone] = (await company.call('GET', '/dns/zones')).body.data
    const path = `/dns/zones/${zone.id}/records`
    const names = async () =>
      (await company.call('GET', path)).body.data.map((row: Json) => [row.name, row.type, row.value, row.ttl])
    const made = [
      // The time to live of the zone.
      ['@', 'MX', '10 mail.example.com.', null],
      ['@', 'MX', '20 mail2.example.com.', null],
      ['txt', 'TXT', 'a "b" \\\\ ü', null],
      ['www', 'A', '192.0.2.10', 300],
    ]
    const sorted = (rows: Json[]) => rows.map(row => row.join(' ')).sort()
    expect(sorted(await names())).toEqual(sorted(made))
    const actions = (run: Json) =>
      run.items.map((item: Json) => [item.action, item.diff.map((each: Json) => each.field)])
    expect(actions(await submit(hub, company, [of({ records: list })]))).toEqual([['none', []]])
    // What was written by hand is deleted by the whole list, and left alone by a merged one or none.
    await company.call('POST', path, { name: 'hand', type: 'A', value: '192.0.2.99' })
    expect(actions(await submit(hub, company, [of({})]))).toEqual([['none', []]])
    expect(actions(await submit(hub, company, [of({ records: list, records_mode: 'merge' })]))).toEqual([['none', []]])
    const exported = (await company.call('GET', '/iac/export/dns-zone')).body.data
    expect(actions(await submit(hub, company, exported))).toEqual([['none', []]])
    const merging = [{ name: 'www', type: 'A', ttl: 60, value: '192.0.2.11' }]
    const merged = await apply({ records: merging, records_mode: 'merge' })
    expect(actions(merged)).toEqual([['update', ['records.www A.ttl', 'records.www A.values']]])
    expect((await names()).map((row: Json) => row[0])).toContain('hand')
    const whole = await apply({ records: list })
    expect(actions(whole)[0][1]).toContain('records.hand A')
    expect(sorted(await names())).toEqual(sorted(made))
    const wrong = [
      { name: 'a..b', type: 'A', value: '192.0.2.1' },
      { name: 'www', type: 'A', value: 'x' },
      { name: 'w3', type: 'A', values: ['x'] },
    ]
    const refused = await submit(hub, company, [of({ records: wrong })])
    expect(refused.errors.map((each: Json) => each.message).join('\n')).toMatch(
      /records\.0\.name[\s\S]*records\.1\.value:[\s\S]*records\.2\.values:/,
    )
    await company.call('PUT', '/system/settings/iac.lock_managed?level=company', { value: true })
    for (const call of [
      company.call('POST', path, { name: 'x', type: 'A', value: '192.0.2.1' }),
      company.call('POST', `/dns/zones/${zone.id}/import`, { content: 'x A 192.0.2.1' }),
      company.call('PATCH', `${path}/${(await company.call('GET', path)).body.data[0].id}`, { ttl: 60 }),
    ])
      expect(Object.keys((await call).body.errors)).toEqual(['origin'])
    expect((await apply({ records: merging })).status).toBe('applied')
  })

  test('[RES-150] a zone of 5,000 records is planned with as many statements as one of 50', async () => {
    const company = await acme(hub)
    const { call } = await hub.token(company.userId)
    const head_ = `apiVersion: hub/v1\nkind: dns-zone\nmetadata: {company: ${company.slug}, name: large}\nspec:\n  zone: large.example\n`
    const statements = (count: number) =>
      countStatements(hub.hub.database.client, async () => {
        const lines = Array.from({ length: count }, (_, n) => `    - {name: h${n}, type: A, value: 10.0.0.1}`)
        const manifests = [{ path: 'x.yml', contents: `${head_}  records:\n${lines.join('\n')}\n` }]
        const { status, body } = await call('POST', '/iac/validate', { manifests })
        expect([status, body.data.status, body.data.items.length]).toEqual([200, 'planned', 1])
      })
    await statements(1)
    const few = await statements(50)
    expect(few).toBeGreaterThan(0)
    // The clock of the hub may send some beside them, now and then.
    const counts = [await statements(5000), await statements(5000), await statements(5000)]
    expect(Math.min(...counts)).toBeLessThan(few + 50)
  })

  test('attachments: at most ten, files of the company that stay', async () => {
    const run = await submit(hub, own, [server('attached')])
    const path = `/iac/runs/${run.id}/attachments`
    const form = new FormData()
    form.append('file', new File(['why we do it'], 'why.txt'))
    const sent = await fetch(`${hub.url}/api/v1${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${own.token}` },
      body: form,
    })
    const made: Json = await sent.json()
    expect([sent.status, made.data]).toMatchObject([201, { name: 'why.txt', size: 12 }])
    const second = await own.call('POST', path, { file_id: made.data.file_id })
    expect([second.status, second.body.data.sha256]).toEqual([201, made.data.sha256])
    expect((await own.call('GET', `/iac/runs/${run.id}`)).body.data.attachments).toHaveLength(2)
    expect((await own.call('POST', path, { file_id: crypto.randomUUID() })).body.errors).toHaveProperty('file_id')
    expect((await own.call('DELETE', `/files/${made.data.file_id}`)).status).toBe(409)
    for (const { id } of [made.data, second.body.data])
      expect((await own.call('DELETE', `${path}/${id}`)).status).toBe(204)
    expect((await own.call('DELETE', `${path}/${made.data.id}`)).status).toBe(404)
    expect((await own.call('GET', `/files/${made.data.file_id}`)).status).toBe(200)
  })
})
