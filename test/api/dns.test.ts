// Zones over HTTP: records beside one another, files, kept pointers.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'
import { acme, manifest, submit } from './iac-rig.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let tenant: Tenant
let zoneCount = 0

beforeAll(async () => {
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
  tenant = await hub.tenant()
})
afterAll(() => hub.stop())

async function made(path: string, body: Json): Promise<Json> {
  const answer = await tenant.call('POST', path, body)
  if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
const zone = (more: Json = {}): Promise<Json> =>
  made('/dns/zones', { name: `z${zoneCount++}.example.com`, verify_interval_minutes: 0, ...more })
const at = (of: Json, id = ''): string => `/dns/zones/${of.id}/records${id && `/${id}`}`
const refusal = async (of: Json, body: Json): Promise<string[]> => {
  const answer = await tenant.call('POST', at(of), body)
  expect(answer.status).toBe(422)
  return Object.keys(answer.body.errors)
}
const serialOf = async (of: Json): Promise<number> => (await tenant.call('GET', `/dns/zones/${of.id}`)).body.data.serial
const A = (name: string, value = '192.0.2.1', more: Json = {}) => ({ name, type: 'A', value, ...more })

const CSV = { 'Content-Type': 'text/csv' }

describe('records', () => {
  test('[RES-188] [RES-189] [RES-190] [RES-191] names are kept relative, in lower case, as A-labels', async () => {
    const of = await zone()
    const record = await made(at(of), A(`WWW.${of.name.toUpperCase()}.`))
    expect([record.name, record.fqdn]).toEqual(['www', `www.${of.name}`])
    expect(await refusal(of, A('www.example.org.'))).toEqual(['name'])
    expect(await refusal(of, A('a..b'))).toEqual(['name'])
    const international = await made(at(of), A('Bücher'))
    expect(international.name).toBe('xn--bcher-kva')
    for (const name of ['bücher', 'xn--bcher-kva'])
      expect((await tenant.call('GET', `${at(of)}?name=${encodeURIComponent(name)}`)).body.data).toHaveLength(1)
    for (const search of ['bücher', 'BÜCHER', 'bcher'])
      expect((await tenant.call('GET', `${at(of)}?search=${encodeURIComponent(search)}`)).body.data).toHaveLength(1)
  })

  test('[RES-192] [RES-193] [RES-196] [RES-198] [RES-200] what may not stand is refused at its field', async () => {
    const of = await zone()
    await made(at(of), A('www'))
    expect(await refusal(of, { name: 'www', type: 'CNAME', value: 'a.example.net' })).toEqual(['name'])
    await made(at(of), { name: 'alias', type: 'CNAME', value: 'a.example.net' })
    expect(await refusal(of, A('alias'))).toEqual(['name'])
    expect(await refusal(of, { name: '@', type: 'CNAME', value: 'a.example.net' })).toEqual(['name'])
    expect(await refusal(of, A('www'))).toEqual(['value'])
    expect(await refusal(of, A('x', '01.2.3.4'))).toEqual(['value'])
    expect(await refusal(of, { name: 'sip', type: 'SRV', value: '1 1 1 a.b' })).toEqual(['name'])
    expect(await refusal(of, { name: '1', type: 'PTR', value: 'a.b' })).toEqual(['name'])
    expect(await refusal(of, { type: 'MX', value: '10 alias' })).toEqual(['value'])
    const wrong = await tenant.call('POST', at(of), { type: 'MX', value: 'mail' })
    expect(wrong.body.errors).toEqual({ value: ['must have the form of MX, as 10 mail.example.com.'] })
  })

  test('[RES-192] [RES-193] [RES-194] [RES-196] [RES-197] [RES-198] every refusal of the table of types, at its field', async () => {
    const of = await zone()
    const spf = { name: 'mail', type: 'TXT', value: 'v=spf1 -all' }
    for (const stands of [
      A('www'),
      { name: 'alias', type: 'CNAME', value: 'a.example.net.' },
      { name: 'nomail', type: 'MX', value: '0 .' },
      { name: 'sub', type: 'NS', value: 'ns.example.net.' },
      spf,
    ])
      await made(at(of), stands)
    const refused: [Json, string][] = [
      ...['1.2.3', '01.2.3.4', '::1', '192.0.2.0/24', '192.0.2.1 ', '300.0.0.1', ''].map((value): [Json, string] => [
        A('x', value),
        value === '192.0.2.1 ' ? '' : 'value',
      ]),
      ...['192.0.2.1', '2001:db8::/64', 'fe80::1%eth0', '1:2:3'].map((value): [Json, string] => [
        { name: 'x', type: 'AAAA', value },
        'value',
      ]),
      [{ name: '@', type: 'CNAME', value: 'a.example.net.' }, 'name'],
      [{ name: 'www', type: 'CNAME', value: 'a.example.net.' }, 'name'],
      [{ name: 'alias', type: 'CNAME', value: 'b.example.net.' }, 'value'],
      [{ name: 'self', type: 'CNAME', value: `self.${of.name}.` }, 'value'],
      [{ name: 'x', type: 'CNAME', value: '192.0.2.1' }, 'value'],
      [{ name: 'x', type: 'MX', value: '10 192.0.2.1' }, 'value'],
      [{ name: 'x', type: 'MX', value: '10 alias' }, 'value'],
      [{ name: 'x', type: 'MX', value: 'mail.example.net.' }, 'value'],
      [{ name: 'nomail', type: 'MX', value: '10 mail.example.net.' }, 'value'],
      [{ name: 'x', type: 'TXT', value: 'bell \u0007' }, 'value'],
      [{ name: 'x', type: 'TXT', value: 'ü'.repeat(2049) }, 'value'],
      [{ ...spf, value: 'v=spf1 mx -all' }, 'value'],
      [{ name: 'sip', type: 'SRV', value: '1 2 3 sip.example.net.' }, 'name'],
      [{ name: '_sip._tcp', type: 'SRV', value: '1 2 3 192.0.2.1' }, 'value'],
      [{ name: '_sip._tcp', type: 'SRV', value: '1 2 3 alias' }, 'value'],
      [{ name: '_sip._tcp', type: 'SRV', value: '1 2 65536 sip.example.net.' }, 'value'],
      [{ name: 'x', type: 'CAA', value: '0 isue "ca.example.net"' }, 'value'],
      [{ name: 'x', type: 'CAA', value: '7 issue "ca.example.net"' }, 'value'],
      [{ name: 'x', type: 'CAA', value: '0 iodef "ca.example.net"' }, 'value'],
      [{ name: '7', type: 'PTR', value: 'host.example.net.' }, 'name'],
      [{ name: 'sub2', type: 'NS', value: '192.0.2.1' }, 'value'],
      [{ name: 'sub', type: 'TXT', value: 'beside a delegation' }, 'value'],
      ...['a..b', `${'x'.repeat(64)}`, `${'abcdefg.'.repeat(31)}z`, 'a.*.b', 'has space', 'www.example.org.'].map(
        (name): [Json, string] => [A(name), 'name'],
      ),
    ]
    for (const [body, field] of refused) {
      const { status, body: said } = await tenant.call('POST', at(of), body)
      const fields = Object.keys(said.errors ?? {})
      expect([JSON.stringify(body).slice(0, 120), status, fields]).toEqual(
        field === '' ? [expect.anything(), 201, []] : [expect.anything(), 422, [field]],
      )
    }
    for (const glue of [A('sub'), { name: 'sub', type: 'AAAA', value: '2001:DB8:0:0::1' }]) await made(at(of), glue)
    const { data } = (await tenant.call('GET', `${at(of)}?type=AAAA`)).body
    expect(data.map((row: Json) => row.value)).toEqual(['2001:db8::1'])
  })

  test('[RES-199] one time to live for a name and type, in one entry of the log each', async () => {
    const of = await zone()
    const [first, second] = [await made(at(of), A('www')), await made(at(of), A('www', '192.0.2.2'))]
    expect((await tenant.call('PATCH', at(of, first.id), { ttl: 300 })).status).toBe(200)
    const other = (await tenant.call('GET', at(of, second.id))).body.data
    expect([other.ttl, other.version]).toEqual([300, 2])
    expect((await made(at(of), A('www', '192.0.2.3'))).ttl).toBe(300)
  })

  test('[RES-201] [RES-202] many at once are all or none, and raise the serial once', async () => {
    const of = await zone()
    const before = await serialOf(of)
    const faulty = await tenant.call('POST', at(of), { records: [A('a'), A('b'), A('c', 'x')] })
    expect([faulty.status, Object.keys(faulty.body.errors)]).toEqual([422, ['records.2.value']])
    expect((await tenant.call('GET', at(of))).body.meta.total).toBe(0)
    const answer = await tenant.call('POST', at(of), { records: [A('a'), A('b'), { type: 'TXT', value: 'x' }] })
    expect([answer.status, answer.body.data.length]).toEqual([201, 3])
    expect(await serialOf(of)).toBe(before + 1)
    await tenant.call('PATCH', at(of, answer.body.data[0].id), { comment: 'only a comment' })
    expect(await serialOf(of)).toBe(before + 1)
    await tenant.call('DELETE', at(of, answer.body.data[1].id))
    expect(await serialOf(of)).toBe(before + 2)
    expect((await tenant.call('GET', `/dns/zones/${of.id}`)).body.data.records_count).toBe(2)
    for (const change of [{ default_ttl: 60, soa: { refresh: 60 } }, { default_ttl: 60 }, { description: 'x' }])
      await tenant.call('PATCH', `/dns/zones/${of.id}`, change)
    expect(await serialOf(of)).toBe(before + 3)
  })

  test('only authoritative name servers serve a zone', async () => {
    const server = await made('/dns/servers', { name: 'asks others', host: 'localhost', role: 'resolver' })
    const answer = await tenant.call('POST', '/dns/zones', { name: 'resolved.test', server_ids: [server.id] })
    expect([answer.status, Object.keys(answer.body.errors)]).toEqual([422, ['server_ids.0']])
  })

  test('the last NS of a published zone stays, whatever would take it', async () => {
    const ns = [{ type: 'NS', value: 'ns1.example.net.' }, A('www')]
    const of = await zone({ records: ns })
    const { data } = (await tenant.call('GET', at(of))).body
    const [{ id }] = data
    const replaced = (content: string) =>
      tenant.call('POST', `/dns/zones/${of.id}/import`, { content, mode: 'replace', dry_run: true })
    expect((await replaced('www A 192.0.2.1')).body.data).toMatchObject({ deleted: 1 })
    await hub.hub.database.client`update dns_zones set verified_at = now() where id = ${of.id}`
    const loses = async (answer: Promise<Json>): Promise<void> => expect((await answer).status).toBe(409)
    await loses(tenant.call('DELETE', at(of, id)))
    for (const change of [{ enabled: false }, { name: 'sub' }]) await loses(tenant.call('PATCH', at(of, id), change))
    await loses(replaced('www A 192.0.2.1'))
    await loses(tenant.call('POST', at(of), 'type,value,enabled\nNS,ns1.example.net.,false\n', CSV))
    expect((await replaced('@ NS ns2.example.net.')).body.data).toMatchObject({ created: 1, deleted: 2 })
    expect((await tenant.call('PATCH', at(of, id), { ttl: 60, value: 'ns3.example.net.' })).status).toBe(200)
    const second = await made(at(of), { type: 'NS', value: 'ns2.example.net.' })
    expect((await tenant.call('PATCH', at(of, id), { enabled: false })).status).toBe(200)
    await loses(tenant.call('DELETE', at(of, second.id)))
    expect((await tenant.call('DELETE', at(of, id))).status).toBe(204)
  })

  test('a manifest that would leave a published zone without NS is refused when it is planned', async () => {
    const company = await acme(hub)
    const of = (records: Json[], more: Json = {}) =>
      manifest(company.slug, 'dns-zone', 'served', { zone: 'served.test', records, ...more })
    await submit(hub, company, [of([{ type: 'NS', value: 'ns1.example.net.' }])], { apply: true })
    await hub.hub.database.client`update dns_zones set verified_at = now() where company_id = ${company.companyId}`
    const { status, errors } = await submit(hub, company, [of([A('www')])])
    const message = 'spec.records: A published zone must keep a name server: an NS record at @.'
    expect([status, errors.map((each: Json) => each.message)]).toEqual(['invalid', [message]])
    expect((await submit(hub, company, [of([A('www')], { records_mode: 'merge' })])).errors).toEqual([])
    expect((await submit(hub, company, [of([{ type: 'NS', value: 'ns2.example.net.' }])])).errors).toEqual([])
  })

  test('a zone is made with its records, and with the NS of its name servers', async () => {
    const server = await made('/dns/servers', { name: 'ns of zone', host: 'localhost' })
    const of = await zone({ server_ids: [server.id], records: [A('www'), A('mail', '192.0.2.9')] })
    const { data } = (await tenant.call('GET', at(of))).body
    expect(data.map((row: Json) => [row.name, row.type, row.value])).toEqual([
      ['@', 'NS', 'localhost.'],
      ['mail', 'A', '192.0.2.9'],
      ['www', 'A', '192.0.2.1'],
    ])
    const refused = await tenant.call('DELETE', `/dns/servers/${server.id}`)
    expect([refused.status, refused.body.reason, refused.body.referrers[0].id]).toEqual([409, 'in_use', of.id])
  })

  test('[RES-216] the same zone may be in another view and another company, and once in a view', async () => {
    const of = await zone()
    expect((await tenant.call('POST', '/dns/zones', { name: of.name })).body.errors).toHaveProperty('name')
    expect((await tenant.call('POST', '/dns/zones', { name: of.name, view: 'inside' })).status).toBe(201)
    expect((await (await hub.tenant()).call('POST', '/dns/zones', { name: of.name })).status).toBe(201)
  })

  test('[RES-213] [RES-214] a pointer is kept for an address, follows it, and goes with it', async () => {
    const of = await zone()
    expect(await refusal(of, A('host', '198.51.100.7', { ptr: true }))).toEqual(['ptr'])
    const soa = { primary: 'a b', contact: 'x' }
    const wrong = (await tenant.call('POST', '/dns/zones', { name: 'soa.test', soa })).body.errors
    expect(Object.keys(wrong)).toEqual(['soa.primary', 'soa.contact'])
    const other = await zone({ soa: { retry: 60, unknown: 1 } })
    expect([other.soa.retry, Object.hasOwn(other.soa, 'unknown')]).toEqual([60, false])
    const reverse = await made('/dns/zones', { name: '100.51.198.in-addr.arpa', verify_interval_minutes: 0 })
    const pointers = async () =>
      (await tenant.call('GET', at(reverse))).body.data.map((row: Json) => [row.name, row.value, row.managed_by])
    const record = await made(at(of), A('host', '198.51.100.7', { ptr: true }))
    expect(await pointers()).toEqual([['7', `host.${of.name}.`, record.id]])
    const [kept] = (await tenant.call('GET', at(reverse))).body.data
    for (const method of ['PATCH', 'DELETE'] as const)
      expect((await tenant.call(method, at(reverse, kept.id), { value: 'x.y' })).body.errors).toHaveProperty(
        'managed_by',
      )
    await tenant.call('PATCH', at(of, record.id), { name: 'other', value: '198.51.100.8' })
    expect(await pointers()).toEqual([['8', `other.${of.name}.`, record.id]])
    expect((await tenant.call('DELETE', at(of, record.id))).status).toBe(204)
    expect(await pointers()).toEqual([])
  })

  test('[RES-215] a private name server needs a range that holds it', async () => {
    for (const host of ['10.0.0.1', '169.254.169.254'])
      expect((await tenant.call('POST', '/dns/servers', { name: host, host })).body.errors).toHaveProperty('host')
  })
})

describe('zone files', () => {
  const text = async (of: Json): Promise<string> => {
    const response = await fetch(`${hub.url}/api/v1/dns/zones/${of.id}/export`, {
      headers: { Authorization: `Bearer ${tenant.token}` },
    })
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/dns; charset=utf-8'])
    return response.text()
  }
  const short = (rows: Json[]) => rows.map(row => `${row.name} ${row.type} ${row.value} ${row.ttl}`).sort()

  test('[RES-195] [RES-203] a zone that is exported and imported elsewhere is the same, and a second time changes nothing', async () => {
    const of = await zone()
    const records = [
      A('www', '192.0.2.1', { ttl: 60 }),
      { type: 'TXT', value: `${'x'.repeat(600)} "q" \\ ü` },
      { type: 'MX', value: '10 mail.example.net' },
      { name: '_sip._tcp', type: 'SRV', value: '1 2 3 sip.example.net.' },
      { type: 'CAA', value: '0 issue "ca.example.net"' },
    ]
    await tenant.call('POST', at(of), { records })
    const file = await text(of)
    const other = await (await hub.tenant()).call('POST', '/dns/zones', { name: of.name })
    expect(other.status).toBe(201)
    const view = await made('/dns/zones', { name: of.name, view: 'copy', verify_interval_minutes: 0 })
    const imported = () => tenant.call('POST', `/dns/zones/${view.id}/import`, { content: file })
    expect((await imported()).body.data).toMatchObject({ created: 5, unchanged: 0, skipped: [] })
    const [a, b] = [await tenant.call('GET', at(of)), await tenant.call('GET', at(view))]
    expect(short(b.body.data)).toEqual(short(a.body.data))
    expect((await imported()).body.data).toMatchObject({ created: 0, updated: 0, deleted: 0, unchanged: 5 })
  })

  test('[RES-205] [RES-206] [RES-207] lines that are not taken are named, and a try changes nothing', async () => {
    const of = await zone()
    await made(at(of), A('old'))
    const post = (body: Json) => tenant.call('POST', `/dns/zones/${of.id}/import`, body)
    const content = 'www 60 A 192.0.2.1\nx HINFO a b\n'
    expect((await post({ content, dry_run: true })).body.data).toMatchObject({ created: 1, deleted: 0 })
    expect((await tenant.call('GET', at(of))).body.meta.total).toBe(1)
    const { data } = (await post({ content, mode: 'replace' })).body
    expect(data).toMatchObject({ created: 1, deleted: 1, skipped: [{ line: 2, reason: 'unknown_type' }] })
    expect((await post({ content: 'a A 192.0.2.1\nb A x\n' })).body.errors).toHaveProperty(['content.2'])
    expect((await post({ content: '$INCLUDE /etc/passwd\n' })).body.errors).toHaveProperty(['content.1'])
    expect((await tenant.call('GET', at(of))).body.meta.total).toBe(1)
  })

  test('[RES-205] a time to live that no record can have becomes the nearest one', async () => {
    const of = await zone()
    const content = '$TTL 30d\nlong 2w A 192.0.2.1\nusual A 192.0.2.2\nzero 0 A 192.0.2.3\nhour 1h A 192.0.2.4\n'
    const imported = () => tenant.call('POST', `/dns/zones/${of.id}/import`, { content })
    expect((await imported()).body.data).toMatchObject({ created: 4, skipped: [] })
    expect((await imported()).body.data).toMatchObject({ created: 0, updated: 0, unchanged: 4 })
    const { data } = (await tenant.call('GET', at(of))).body
    expect(data.map((row: Json) => [row.name, row.ttl])).toEqual([
      ['hour', null],
      ['long', 604_800],
      ['usual', 604_800],
      ['zero', 30],
    ])
    for (const { id, ttl } of data) expect((await tenant.call('PATCH', at(of, id), { ttl })).status).toBe(200)
  })
})

test('[R-056] an address and the records with its value show each other, and it is not deleted before they are', async () => {
  const of = await zone()
  const server = await made('/servers', { name: 'named by records' })
  const ip = await made('/ips', { address: '203.0.113.77', server_id: server.id })
  const other = await made('/ips', { address: '203.0.113.77', vrf: 'lab' })
  const record = await made(at(of), A('app', '203.0.113.77'))
  await made(at(of), { name: 'note', type: 'TXT', value: '203.0.113.77' })
  expect([record.ip_address_id, record.server]).toEqual([ip.id, { id: server.id, name: 'named by records' }])
  const shown = (await tenant.call('GET', `/ips/${ip.id}`)).body.data
  const link = { id: record.id, zone_id: of.id, fqdn: `app.${of.name}`, type: 'A', value: '203.0.113.77' }
  expect(shown.dns_records).toEqual([link])
  const owned = (await tenant.call('GET', `${at(of)}?server_id=${server.id}`)).body.data
  expect(owned.map((row: Json) => row.id)).toEqual([record.id])
  const connection = await made('/connections', {
    source: { kind: 'service', name: 'shop' },
    target: { kind: 'external', host: `app.${of.name}` },
  })
  expect(connection.dns_records).toEqual([link])
  const proxy = await made('/proxies', { name: 'front', sites: [{ hostnames: [`app.${of.name}`] }] })
  const [site] = (await tenant.call('GET', `/proxies/${proxy.id}/sites`)).body.data
  expect(site.dns_records).toEqual([link])

  const refused = await tenant.call('DELETE', `/ips/${ip.id}`)
  const referrer = { kind: 'dns_record', id: record.id, name: 'app', field: 'value' }
  expect([refused.status, refused.body.referrers, refused.body.referrers_total]).toEqual([409, [referrer], 1])
  // The one of another address space is not what records mean.
  expect((await tenant.call('DELETE', `/ips/${other.id}`)).status).toBe(204)
  expect((await tenant.call('DELETE', at(of, record.id))).status).toBe(204)
  const device = await made('/load-balancers', { name: 'edge', vendor: 'haproxy' })
  const vs = { name: 'www', address: '203.0.113.77', port: 80 }
  const served = await made(`/load-balancers/${device.id}/virtual-servers`, vs)
  expect(served.ip_address_id).toBe(ip.id)
  expect((await tenant.call('DELETE', `/ips/${ip.id}`)).body.referrers).toEqual([
    { kind: 'virtual_server', id: served.id, name: 'www', field: 'address' },
  ])
  await tenant.call('DELETE', `/load-balancers/${device.id}`)
  expect((await tenant.call('DELETE', `/ips/${ip.id}`)).status).toBe(204)
  expect((await made(at(of), A('later', '203.0.113.77'))).ip_address_id).toBeNull()
})
