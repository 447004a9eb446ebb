import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant(undefined, { planCode: 'pro' })
})
afterAll(() => hub.stop())

const get = async (path: string, by: Pick<Tenant, 'call'> = tenant): Promise<Json> =>
  (await by.call('GET', path)).body.data
const put = (path: string, body: Json, by: Pick<Tenant, 'call'> = tenant) => by.call('PUT', path, body)

test('[SECU-008] [SECU-040] [SECU-041] settings begin with what the plan allows; a change is partial and raises the version', async () => {
  expect(await get('/security/settings')).toEqual({
    company_id: tenant.companyId,
    version: 1,
    enabled: true,
    scan_interval_hours: 24,
    min_scan_interval_hours: 24,
    content_scan: false,
    history_days: 90,
    time_zone: 'UTC',
    updated_at: null,
  })
  // An interval below that of the plan is stored, and read as the plan has it.
  const changed = await put('/security/settings', { scan_interval_hours: 2 })
  expect([changed.status, changed.body.data]).toMatchObject([
    200,
    { version: 2, scan_interval_hours: 24, enabled: true },
  ])
  const business = await hub.tenant(undefined, { planCode: 'business' })
  await put('/security/settings', { scan_interval_hours: 2 }, business)
  expect(await get('/security/settings', business)).toMatchObject({ scan_interval_hours: 2, history_days: 365 })
  expect((await put('/security/settings', { enabled: false, time_zone: 'Asia/Ho_Chi_Minh' })).body.data).toMatchObject({
    version: 3,
    enabled: false,
    time_zone: 'Asia/Ho_Chi_Minh',
  })
  const [entry] = (await tenant.call('GET', '/audit-log')).body.data
  expect(entry).toMatchObject({
    action: 'security.settings.update',
    changes: { enabled: { old: true, new: false }, version: { old: 2, new: 3 } },
  })
})

test.each([
  ['/security/settings', { scan_interval_hours: 0 }, 'scan_interval_hours'],
  ['/security/settings', { scan_interval_hours: 721 }, 'scan_interval_hours'],
  ['/security/settings', { enabled: 'yes' }, 'enabled'],
  ['/security/settings', { time_zone: 'Mars/Olympus' }, 'time_zone'],
  ['/security/expected-ports', {}, 'ports'],
  ['/security/expected-ports', { ports: [{ port: 0, proto: 'tcp' }] }, 'ports.0.port'],
  ['/security/expected-ports', { ports: [{ port: 80, proto: 'icmp' }] }, 'ports.0.proto'],
  ['/security/content-scan-settings', { kinds: ['everything'] }, 'kinds.0'],
  ['/security/content-scan-settings', { paths: ['etc'] }, 'paths.0'],
  ['/security/content-scan-settings', { paths: ['/srv/../root'] }, 'paths.0'],
  ['/security/content-scan-settings', { max_file_mb: 0 }, 'max_file_mb'],
])('%s refuses %p', async (path, body, field) => {
  const answer = await put(path, body)
  expect([answer.status, Object.keys(answer.body.errors)]).toEqual([422, [field]])
})

test('[SECU-008] expected ports are replaced as a whole, each once', async () => {
  expect(await get('/security/expected-ports')).toEqual({ ports: [] })
  const ports = [
    { port: 443, proto: 'tcp' },
    { port: 53, proto: 'udp' },
    { port: 443, proto: 'tcp' },
  ]
  const sorted = [ports[1], ports[0]]
  expect((await put('/security/expected-ports', { ports })).body.data).toEqual({ ports: sorted })
  expect(await get('/security/expected-ports')).toEqual({ ports: sorted })
  const scope = { all: true }
  for (const port of [53, 22])
    await tenant.call('POST', '/monitoring/checks', {
      name: `p${port}`,
      type: 'port',
      target: { port, proto: 'udp' },
      scope,
    })
  await tenant.call('POST', '/monitoring/checks', { name: 'web', type: 'service', target: { name: 'nginx' }, scope })
  const services = (await tenant.call('GET', '/security/services')).body
  expect(services.data.map((row: Json) => [row.name, row.type, row.expected])).toEqual([
    ['p22', 'port', false],
    ['p53', 'port', true],
    ['web', 'service', false],
  ])
  expect((await put('/security/expected-ports', { ports: [] })).body.data).toEqual({ ports: [] })
})

test('[SECU-012] the scan of contents is off until somebody wants it, and a change is a new version of the settings', async () => {
  const owner = await hub.tenant()
  const begin = { enabled: false, kinds: [], paths: [], max_file_mb: 10 }
  expect(await get('/security/content-scan-settings', owner)).toEqual(begin)
  const wanted = { enabled: true, kinds: ['secret'], paths: ['/srv', '/srv'] }
  const { data } = (await put('/security/content-scan-settings', wanted, owner)).body
  expect(data).toEqual({ ...begin, ...wanted, paths: ['/srv'] })
  expect(await get('/security/settings', owner)).toMatchObject({ version: 2, content_scan: true })
  await put('/security/content-scan-settings', { max_file_mb: 10 }, owner)
  expect(await get('/security/settings', owner)).toMatchObject({ version: 2 })
})

test('[SECU-008] [SECU-012] settings need security.manage, the scan of contents security.content.manage, each alone', async () => {
  const cases: [permission: string, paths: string[]][] = [
    ['security.manage', ['/security/settings', '/security/expected-ports']],
    ['security.content.manage', ['/security/content-scan-settings']],
  ]
  for (const [permission, paths] of cases) {
    const holder = await hub.user(tenant.companyId, [permission])
    const other = await hub.user(tenant.companyId, [
      'security.view',
      permission === 'security.manage' ? 'security.content.manage' : 'security.manage',
    ])
    const narrowed = await hub.token(tenant.userId, { permissions: ['security.view'] })
    for (const path of paths) {
      expect([path, (await holder.call('GET', path)).status]).toEqual([path, 200])
      expect([path, (await other.call('GET', path)).status]).toEqual([path, 403])
      expect([path, (await put(path, {}, other)).status]).toEqual([path, 403])
      expect([path, (await narrowed.call('GET', path)).status]).toEqual([path, 403])
    }
  }
})
