// CSV files of kinds (resources.md R-016): what is known is changed, the rest is made, all or nothing; an export of a
// kind can be sent back.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { kinds } from '../../apps/hub/kinds.ts'
import type { Kind } from '../../apps/hub/resources/kind.ts'
import { countStatements } from '../support/count-statements.ts'
import { type Answer, type Call, type Json, type Tenant, TestHub, until } from './hub-harness.ts'
import { kindSamples } from './kind-samples.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start({ 'webhooks.allow_private': true })
})
afterAll(() => hub.stop())

/** Each test has a company of its own. */
const company = async (): Promise<void> => {
  tenant = await hub.tenant()
}
const send = (path: string, csv: string, by: Call = tenant.call): Promise<Answer> =>
  by('POST', path, csv, { 'Content-Type': 'text/csv' })
const counts = async (path: string, csv: string): Promise<Json> => {
  const { status, body } = await send(path, csv)
  expect([status, body.errors]).toEqual([200, undefined])
  const { created, updated, unchanged } = body.data
  return [created, updated, unchanged]
}
const faults = async (path: string, csv: string): Promise<string[]> => {
  const { status, body } = await send(path, csv)
  expect(status).toBe(422)
  return Object.keys(body.errors).sort()
}
const rows = async (path: string): Promise<Json[]> => (await tenant.call('GET', path)).body.data

test('[RES-036] a thousand subnets are made by one request, and sent again nothing changes', async () => {
  await company()
  const lines = Array.from({ length: 1000 }, (_, index) => `10.${index >> 8}.${index & 255}.0/24,${index + 1}`)
  const csv = `cidr,vlan_id\n${lines.join('\n')}\n`
  expect(await faults('/subnets', csv.replace('10.3.7.0/24,', '10.3.7.1/24,'))).toEqual([
    `rows.${3 * 256 + 7 + 2}.cidr`,
  ])
  expect((await tenant.call('GET', '/subnets')).body.meta.total).toBe(0)
  expect(await counts('/subnets', csv)).toEqual([1000, 0, 0])
  expect(await counts('/subnets', csv)).toEqual([0, 0, 1000])
  const [first] = await rows('/subnets')
  expect(first).toMatchObject({ cidr: '10.0.0.0/24', vlan_id: 1, origin: 'import', version: 1 })
})

test('[RES-036] a file of many rows takes no more statements than one of few', async () => {
  await company()
  const statements = (first: number, count: number) =>
    countStatements(hub.hub.database.client, async () => {
      const lines = Array.from({ length: count }, (_, index) => `10.${first}.${index}.0/24`)
      expect(await counts('/subnets', `cidr\n${lines.join('\n')}\n`)).toEqual([count, 0, 0])
      const addresses = lines.map(line => line.replace('.0/24', '.7'))
      expect(await counts('/ips', `address\n${addresses.join('\n')}\n`)).toEqual([count, 0, 0])
    })
  const few = await statements(1, 5)
  // The clock of the hub may send some beside them, now and then.
  const many = [await statements(2, 200), await statements(3, 200), await statements(4, 200)]
  expect(Math.min(...many)).toBeLessThan(few + 50)
})

test('[RES-036] the columns of the file are changed, an empty cell removes, and a trial writes nothing', async () => {
  await company()
  await send('/subnets', 'cidr,vlan_id,description,tags\n10.0.0.0/24,7,"one, two",b;a\n10.0.1.0/24,8,,\n')
  const trial = await send('/subnets?dry_run=1', 'cidr,vlan_id\n10.0.0.0/24,9\n10.0.2.0/24,1\n')
  expect(trial.body.data).toEqual({ created: 1, updated: 1, unchanged: 0, dry_run: true })
  expect(await rows('/subnets')).toHaveLength(2)
  expect(await counts('/subnets', '\ufeffCIDR;vlan_id;Warn Percent\n10.0.0.0/24;;70\n10.0.1.0/24;8;80\n')).toEqual([
    0, 1, 1,
  ])
  const [changed, same] = await rows('/subnets')
  expect(changed).toMatchObject({
    vlan_id: null,
    description: 'one, two',
    tags: ['a', 'b'],
    warn_percent: 70,
    version: 2,
  })
  expect(same).toMatchObject({ vlan_id: 8, version: 1 })
  const log = (await tenant.call('GET', '/audit-log?action=subnet.update')).body.data
  expect(log.map((entry: Json) => entry.subject.id)).toEqual([changed.id])
})

test('[RES-036] every fault is named by line and column, and one of them keeps everything out', async () => {
  await company()
  await tenant.call('POST', '/subnets', { cidr: '10.9.0.0/24', name: 'taken' })
  const of = (text: string) => faults('/subnets', text)
  expect(await of('cidr,vlan_id,status\n10.0.0.0/24,9999,active\n\n"10.0.0.\n1/24",x,nothing\n')).toEqual([
    'rows.2.vlan_id',
    'rows.4.cidr',
    'rows.4.status',
    'rows.4.vlan_id',
  ])
  expect(await of('cidr,server\n10.0.0.0/24,x\n')).toEqual(['header'])
  expect(await of('name\nx\n')).toEqual(['header'])
  expect(await of('cidr,cidr\n10.0.0.0/24,10.0.0.0/24\n')).toEqual(['header'])
  expect(await of('cidr\n')).toEqual(['rows'])
  expect(await of('cidr,name\n10.0.0.0/24\n')).toEqual(['rows.2'])
  expect(await of('cidr,name\n10.0.0.0/24,"x\n')).toEqual(['rows.2'])
  expect(await of('cidr\n10.0.0.0/24\n10.0.1.0/24\n10.0.0.0/24\n')).toEqual(['rows.4.cidr'])
  expect(await of('cidr,name\n10.0.0.0/24,a\n10.0.1.0/24,TAKEN\n')).toEqual(['rows.3.name'])
  expect(await of('cidr,owner_team_id\n10.0.0.0/24,7b0a6c1e-9b4d-4e8a-a1c5-6d7e8f901234\n10.0.1.0/33,\n')).toEqual([
    'rows.3.cidr',
  ])
  expect(
    await of(`cidr\n${Array.from({ length: 1001 }, (_, n) => `10.${n >> 8}.${n & 255}.0/24`).join('\n')}`),
  ).toEqual(['rows'])
  expect(await rows('/subnets')).toHaveLength(1)
  const viewer = await hub.user(tenant.companyId, ['network.view'])
  expect((await send('/subnets', 'cidr\n10.0.0.0/24\n', viewer.call)).status).toBe(403)
  expect((await tenant.call('POST', '/subnets?dry_run=1', { cidr: '10.0.0.0/24' })).body.errors).toHaveProperty(
    'dry_run',
  )
  expect((await send('/dns/servers', 'name\nx\n')).status).toBe(415)
})

test('[RES-036] the only row of a file has its line, too', async () => {
  await company()
  await tenant.call('POST', '/dns/zones', { name: 'one.example', verify_interval_minutes: 0 })
  const [zone] = await rows('/dns/zones')
  const records = `/dns/zones/${zone.id}/records`
  await tenant.call('POST', records, { name: 'a', type: 'A', value: '192.0.2.1' })
  expect(await faults(records, 'name,type,value\na,CNAME,x.example.net\n')).toEqual(['rows.2.name'])
  await tenant.call('POST', '/subnets', { cidr: '10.9.0.0/24', name: 'taken' })
  expect(await faults('/subnets', 'cidr,name\n\n10.0.0.0/24,TAKEN\n')).toEqual(['rows.3.name'])
  expect(await faults('/load-balancers', 'name,vendor,management_url\nedge,f5,https://169.254.169.254\n')).toEqual([
    'rows.2.management_url',
  ])
})

test('[RES-036] what would go beyond a limit of the company is refused as a whole', async () => {
  await company()
  await hub.hub.database.client`
    insert into dns_zones (id, company_id, name, soa, serial)
    select gen_random_uuid(), ${tenant.companyId}, 'z' || n || '.example', '{}', 1 from generate_series(1, 999) n`
  expect(await faults('/dns/zones', 'name\na.example\nb.example\n')).toEqual(['rows.3.limit'])
  expect(await counts('/dns/zones', 'name\na.example\n')).toEqual([1, 0, 0])
})

test('[RES-037] records are known by name, type and value in any spelling, and members of objects have columns', async () => {
  await company()
  expect(await counts('/dns/zones', 'name,soa.refresh,verify_interval_minutes\nExample.com.,7200,0\n')).toEqual([
    1, 0, 0,
  ])
  const [zone] = await rows('/dns/zones')
  expect(zone.soa).toMatchObject({ refresh: 7200, retry: 900 })
  expect(await counts('/dns/zones', 'name,soa.refresh\nexample.com,7200\n')).toEqual([0, 0, 1])
  const path = `/dns/zones/${zone.id}/records`
  expect(await counts(path, "name,type,value,comment\n'@,MX,10 mail,'=SUM(A1)\nwww,AAAA,2001:db8:0::1,\n")).toEqual([
    2, 0, 0,
  ])
  const [apex] = await rows(path)
  expect([apex.name, apex.comment]).toEqual(['@', '=SUM(A1)'])
  expect(await counts(path, 'name,type,value,ttl\nWWW.example.com.,AAAA,2001:DB8::1,60\n')).toEqual([0, 1, 0])
  expect(await faults(path, 'name,type,value\nwww,CNAME,a.example.net\nx,A,1.2.3\n')).toEqual([
    'rows.2.name',
    'rows.3.value',
  ])
})

/** An export of a list, as it is downloaded. */
async function exported(resource: string, raw: boolean): Promise<string> {
  const { data } = (await tenant.call('POST', '/exports', { resource, format: 'csv', raw })).body
  const ready = await until('the export is there', async () => {
    const { body } = await tenant.call('GET', `/exports/${data.id}`)
    return body.data.state === 'ready' && body.data
  })
  return (await fetch(new URL(ready.download_url, hub.url))).text()
}

/** What a field of text may hold that a table must not lose. */
const HARD = ['=1+1', "'=1+1", '  spaces "and" quotes ', 'a;b, c', 'two\nlines']

describe('an export that is sent back', () => {
  const resourceOf = ({ info }: Kind) =>
    info.path
      .split('/')
      .filter(part => part !== '' && !part.startsWith(':'))
      .join('-')

  for (const kind of kinds.filter(each => each.csv !== null))
    test(`[RES-037] ${kind.info.kind}: nothing changes`, async () => {
      await company()
      const of = kind.parent?.of
      const parent =
        of && (await tenant.call('POST', of.info.path, await kindSamples[of.info.kind]?.body(0, tenant.call)))
      const path = of ? kind.info.path.replace(`:${of.parameter}`, parent?.body.data.id) : kind.info.path
      for (const [index, text] of HARD.entries()) {
        const body = await kindSamples[kind.info.kind]?.body(index, tenant.call)
        const more = { description: text, tags: kind.fields.tags ? [text.trim(), 'x'] : undefined }
        const made = await tenant.call('POST', path, { ...body, ...more })
        expect([made.status, made.body.errors]).toEqual([201, undefined])
      }
      for (const raw of [true, false])
        expect(await counts(path, await exported(resourceOf(kind), raw))).toEqual([0, 0, HARD.length])
    })

  test('[RES-037] a proxy that listens nowhere still listens nowhere', async () => {
    await company()
    await tenant.call('POST', '/proxies', { name: 'silent', listen: [] })
    for (const raw of [true, false]) expect(await counts('/proxies', await exported('proxies', raw))).toEqual([0, 0, 1])
    expect((await rows('/proxies'))[0].listen).toEqual([])
  })
})
