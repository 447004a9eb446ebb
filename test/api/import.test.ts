import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
beforeAll(async () => {
  hub = await TestHub.start()
})
afterAll(() => hub.stop())

const send = (csv: string, query = ''): Promise<Answer> =>
  tenant.call('POST', `/servers/import${query}`, csv, { 'Content-Type': 'text/csv' })
const names = async (): Promise<string[]> =>
  (await tenant.call('GET', '/servers')).body.data.map((row: { name: string }) => row.name)

describe('servers from comma-separated values', () => {
  beforeAll(async () => {
    tenant = await hub.tenant()
  })

  test('a file makes servers: quotes, line breaks inside them, tags, numbers, empty cells and a byte order mark', async () => {
    const file = [
      '\ufeffName,Hostname,IP address,tags,cpu_cores,notes,environment',
      'web-1,web-1.example.net,192.0.2.10,web;edge,8,"rack 3, ""upper""\nsecond line",production',
      '',
      'db-1,,2001:db8::1,,,,',
    ].join('\r\n')
    const { status, body } = await send(file)
    expect([status, body.data]).toEqual([200, { created: 2, updated: 0, unchanged: 0, dry_run: false }])
    const rows = (await tenant.call('GET', '/servers')).body.data
    expect(rows[1]).toMatchObject({
      name: 'web-1',
      hostname: 'web-1.example.net',
      ip_address: '192.0.2.10',
      tags: ['edge', 'web'],
      cpu_cores: 8,
      notes: 'rack 3, "upper"\nsecond line',
      environment: 'production',
      status: 'active',
      origin: 'manual',
    })
    expect(rows[0]).toMatchObject({
      name: 'db-1',
      hostname: null,
      ip_address: '2001:db8::1',
      tags: [],
      cpu_cores: null,
    })
  })

  test('sent again, it changes what it names and leaves the rest', async () => {
    const { body } = await tenant.call('POST', '/servers/import', { csv: 'name;role\nWEB-1;proxy\nweb-2;web' })
    expect(body.data).toEqual({ created: 1, updated: 1, unchanged: 0, dry_run: false })
    const [row] = (await tenant.call('GET', '/servers?search=web-1')).body.data
    expect([row.role, row.hostname, row.tags]).toEqual(['proxy', 'web-1.example.net', ['edge', 'web']])
  })

  test('existing=keep adds the new and leaves every record that is known, whatever the file says of it', async () => {
    const other = await hub.tenant()
    const post = (csv: string, query = '') => other.call('POST', `/servers/import${query}`, { csv })
    await post('name,hostname,ip_address,role\ndb-1,db-1.example.net,192.0.2.1,database\n')
    const before = (await other.call('GET', '/servers?search=db-1')).body.data
    const file = 'name,hostname,ip_address,status\nDB-1,other,192.0.2.99,maintenance\ndb-2,db-2,192.0.2.2,\n'
    expect((await post(file, '?existing=keep&dry_run=1')).body.data).toEqual({
      ...{ created: 1, updated: 0, unchanged: 1, dry_run: true },
    })
    expect((await post(file, '?existing=keep')).body.data).toEqual({
      ...{ created: 1, updated: 0, unchanged: 1, dry_run: false },
    })
    expect((await other.call('GET', '/servers?search=db-1')).body.data).toEqual(before)
    expect((await other.call('GET', '/audit-log?action=server.update')).body.data).toEqual([])
    expect((await post(file, '?existing=update')).body.data).toMatchObject({ updated: 1, unchanged: 1 })
    expect((await post(file, '?existing=drop')).status).toBe(422)
  })

  test('two names that the database alone takes for one are a fault of the file', async () => {
    const other = await hub.tenant()
    const refused = await other.call('POST', '/servers/import', { csv: 'name\n\u0130x\nix' })
    expect([refused.status, refused.body.errors?.rows?.length]).toEqual([422, 1])
    expect((await other.call('GET', '/servers')).body.data).toEqual([])
  })

  test('a name with capitals beyond ASCII is known when it is sent again', async () => {
    const other = await hub.tenant()
    const post = () => other.call('POST', '/servers/import', { csv: 'name;role\nMáy ĐÀ NẴNG;proxy' })
    expect((await post()).body.data).toMatchObject({ created: 1 })
    expect((await post()).body.data).toMatchObject({ created: 0, unchanged: 1 })
  })

  test('a dry run finds the same and does nothing', async () => {
    const before = await names()
    const { status, body } = await send('name,role\nweb-1,other\nnew-1,x\n', '?dry_run=1')
    expect([status, body.data]).toEqual([200, { created: 1, updated: 1, unchanged: 0, dry_run: true }])
    expect(await names()).toEqual(before)
    expect((await tenant.call('GET', '/servers?search=web-1')).body.data[0].role).toBe('proxy')
  })

  test('every fault is named by its line, and nothing of the file is taken', async () => {
    const before = await names()
    const { status, body } = await send(
      'name,ip_address,cpu_cores,status\nok-1,192.0.2.7,4,\n,10.0.0,many,gone\nok-1,,,\nshort\n',
    )
    expect(status).toBe(422)
    expect(Object.keys(body.errors).sort()).toEqual([
      'rows.3.cpu_cores',
      'rows.3.ip_address',
      'rows.3.name',
      'rows.3.status',
      'rows.4.name',
      'rows.5',
    ])
    expect(await names()).toEqual(before)
  })

  test('a status that changes reaches the agents, one that is empty changes nothing, and what says the same is unchanged', async () => {
    const collector = await hub.collector()
    await send('name,hostname,status\nm-1,m-1,\nm-2,m-2,maintenance\n')
    const { token } = (await tenant.call('POST', '/monitoring/licenses', { name: 'm', max_uses: 2 })).body
    const enrolled = (await collector.call('POST', '/enroll', { license: token, hostname: 'm-1', machine_id: 'm-1' }))
      .body.data
    const { body } = await send('name,status\nm-1,maintenance\nm-2,\n')
    expect(body.data).toEqual({ created: 0, updated: 1, unchanged: 1, dry_run: false })
    const { agent } = (await collector.call('GET', `/agents/lookup?agent_id=${enrolled.agent_id}`)).body.data
    expect([agent.server_status, agent.version]).toEqual(['maintenance', 2])
    expect((await tenant.call('GET', '/servers?search=m-2')).body.data[0].status).toBe('maintenance')
    const [entry] = (await tenant.call('GET', '/audit-log?action=server.update')).body.data
    expect(entry.changes).toEqual({ status: { old: 'active', new: 'maintenance' } })
  })

  const refused = (csv: string, field: string) =>
    test(`${JSON.stringify(csv.slice(0, 40))} is refused on ${field}`, async () => {
      const { status, body } = await send(csv)
      expect([status, Object.keys(body.errors)]).toEqual([422, [field]])
    })
  refused('hostname\nweb-1\n', 'header')
  refused('name,colour\nweb-1,red\n', 'header')
  refused('name,name\na,b\n', 'header')
  refused('name\n', 'rows')
  refused('name,notes\nweb-9,"open\n', 'rows.2')
  refused('name,notes\r\nweb-8,"two\nlines"\n\nweb-9,"open\n', 'rows.5')
  refused('name,notes\nweb-9,"closed" and more\n', 'rows.2')
  refused(`name\n${Array.from({ length: 1001 }, (_, index) => `s-${index}`).join('\n')}`, 'rows')
  // Nothing is read of what comes after one row too many.
  refused(`name\n${Array.from({ length: 1002 }, (_, index) => `s-${index}`).join('\n')}\n"x`, 'rows')

  test('it needs servers.manage, and a scope of the company follows', async () => {
    const viewer = await hub.user(tenant.companyId, ['servers.view'])
    const answer = await viewer.call('POST', '/servers/import', { csv: 'name\nx' })
    expect([answer.status, answer.body.reason]).toEqual([403, 'permission_denied'])
    const rule = {
      name: 'cpu',
      scope: { tags: ['imported'] },
      severity: 'warning',
      metric: 'cpu_usage_percent',
      operator: '>',
      threshold: 90,
    }
    const { id } = (await tenant.call('POST', '/monitoring/rules', rule)).body.data
    await send('name,tags\ni-1,imported\ni-2,imported\n')
    expect((await tenant.call('GET', `/monitoring/rules/${id}`)).body.data.resolved_server_count).toBe(2)
  })
})
