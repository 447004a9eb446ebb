// Bad input of the groups of resources.md beside manifests and certificates: the status, and the field that is named.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'
import { expectRefused, type RefusedRow } from './refused-rows.ts'

let hub: TestHub
let tenant: Tenant
let foreign: Tenant

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  foreign = await hub.tenant()
})
afterAll(() => hub.stop())

const NO = '3f2a7c1e-9b4d-4e8a-a1c5-6d7e8f901234'
const X = (length: number): string => 'x'.repeat(length)
const made = async (path: string, body: Json, by: Tenant = tenant): Promise<Json> => {
  const answer = await by.call('POST', path, body)
  expect([path, answer.status]).toEqual([path, 201])
  return answer.body.data
}
const refuses = (rows: readonly RefusedRow[]): Promise<void> => expectRefused(tenant, rows)

test('[RES-003] subnets: bad input names its field', async () => {
  const subnet = await made('/subnets', { cidr: '10.1.0.0/24' })
  const foreignSubnet = await made('/subnets', { cidr: '10.1.0.0/24' }, foreign)
  await refuses([
    ['POST', '/subnets', {}, 422, 'cidr'],
    ['POST', '/subnets', { cidr: '10.2.0.0/24', name: X(256) }, 422, 'name'],
    ['POST', '/subnets', { cidr: 5 }, 422, 'cidr'],
    ['POST', '/subnets', { cidr: '10.2.0.0/24', vlan_id: 4095 }, 422, 'vlan_id'],
    ['POST', '/subnets', { cidr: '10.2.0.0/24', gateway: '10.3.0.1' }, 422, 'gateway'],
    ['POST', '/subnets', { cidr: '10.2.0.0/24', gateway: 'x' }, 422, 'gateway'],
    ['POST', '/subnets', { cidr: '10.2.0.0/24', kind: 'x' }, 422, 'kind'],
    ['POST', '/subnets', { cidr: '10.2.0.0/24', owner_team_id: NO }, 422, 'owner_team_id'],
    ['POST', '/subnets', { cidr: '10.2.0.0/24', tags: Array.from({ length: 51 }, (_, i) => `t${i}`) }, 422, 'tags'],
    ['POST', '/subnets', { cidr: '10.2.0.0/24', status: 'x' }, 422, 'status'],
    ['POST', '/subnets', { cidr: '10.2.0.0/24', description: X(2001) }, 422, 'description'],
    ['POST', '/subnets', { cidr: '10.2.0.0/24', tags: [X(129)] }, 422, 'tags.0'],
    ['POST', '/subnets', { cidr: '10.2.0.0/24', warn_percent: 101 }, 422, 'warn_percent'],
    [
      'POST',
      '/subnets',
      { cidr: '10.2.0.0/24', reserved: [{ from: '10.9.0.1', to: '10.9.0.2' }] },
      422,
      'reserved.0.from',
    ],
    [
      'POST',
      '/subnets',
      { cidr: '10.2.0.0/24', reserved: [{ from: '10.2.0.9', to: '10.2.0.2' }] },
      422,
      'reserved.0.to',
    ],
    ['GET', '/subnets?used_over=101', undefined, 422, 'used_over'],
    ['GET', '/subnets?contains=x', undefined, 422, 'contains'],
    ['GET', '/subnets?within=x', undefined, 422, 'within'],
    ['GET', '/subnets?family=5', undefined, 422, 'family'],
    ['GET', '/subnets?sort=x', undefined, 422, 'sort'],
    ['GET', '/subnets?parent_id=x', undefined, 422, 'parent_id'],
    ['GET', '/subnets?updated_from=x', undefined, 422, 'updated_from'],
    ['GET', '/subnets?vlan_id=x', undefined, 422, 'vlan_id'],
    ['GET', `/subnets/${NO}`, undefined, 404, null],
    ['GET', '/subnets/x', undefined, 404, null],
    ['GET', `/subnets/${foreignSubnet.id}`, undefined, 404, null],
    ['GET', `/subnets/${subnet.id}/free?count=257`, undefined, 422, 'count'],
    ['GET', `/subnets/${subnet.id}/free?prefix=129`, undefined, 422, 'prefix'],
    ['GET', `/subnets/${subnet.id}/free?prefix=8`, undefined, 422, 'prefix'],
    ['GET', `/subnets/${subnet.id}/free?from=x`, undefined, 422, 'from'],
    ['POST', `/subnets/${subnet.id}/split`, {}, 422, 'prefix'],
    ['POST', `/subnets/${subnet.id}/split`, { prefix: 24 }, 422, 'prefix'],
    ['POST', '/subnets/merge', { subnet_ids: [subnet.id] }, 422, 'subnet_ids'],
    ['POST', '/subnets/merge', { subnet_ids: [subnet.id, NO] }, 422, 'subnet_ids.1'],
    ['POST', '/subnets/merge', { subnet_ids: [subnet.id, subnet.id] }, 422, 'subnet_ids'],
  ])
})

test('[RES-004] [RES-009] [RES-230] [RES-239] ips: bad input names its field', async () => {
  const subnet = await made('/subnets', { cidr: '10.11.0.0/24' })
  const foreignSubnet = await made('/subnets', { cidr: '10.11.0.0/24' }, foreign)
  const ip = await made('/ips', { address: '10.1.0.9' })
  await refuses([
    ['POST', '/ips', {}, 422, 'address'],
    ['POST', '/ips', { address: '10.1.0.9' }, 422, 'address'],
    ['POST', '/ips', { address: '010.1.0.9' }, 422, 'address'],
    ['POST', '/ips', { address: '10.1.0.10', mac: 'x' }, 422, 'mac'],
    ['POST', '/ips', { address: '10.1.0.10', server_id: NO }, 422, 'server_id'],
    ['POST', '/ips', { address: '10.1.0.10', role: 'x' }, 422, 'role'],
    ['POST', '/ips', { address: '10.1.0.10', status: 'planned' }, 422, 'status'],
    ['POST', '/ips', { address: '10.1.0.10', reserved_until: 'x' }, 422, 'reserved_until'],
    ['POST', '/ips', { address: '10.1.0.10', reserved_until: '2001-01-01T00:00:00Z' }, 422, 'reserved_until'],
    ['POST', '/ips', { address: '10.1.0.10', dns_name: X(254) }, 422, 'dns_name'],
    ['PATCH', `/ips/${ip.id}`, { address: '10.1.0.8' }, 422, 'address'],
    ['PATCH', `/ips/${ip.id}`, { vrf: 'x' }, 422, 'vrf'],
    ['PATCH', `/ips/${ip.id}`, { address: null }, 422, 'address'],
    ['PATCH', `/ips/${ip.id}`, { version: 99 }, 409, null],
    ['POST', '/ips/allocate', {}, 422, 'subnet_id'],
    ['POST', '/ips/allocate', { subnet_id: NO }, 422, 'subnet_id'],
    ['POST', '/ips/allocate', { subnet_id: foreignSubnet.id }, 422, 'subnet_id'],
    ['POST', '/ips/allocate', { subnet_id: subnet.id, count: 65 }, 422, 'count'],
    ['POST', '/ips/allocate', { subnet_id: subnet.id, from: 'x' }, 422, 'from'],
    ['POST', '/ips/allocate', { subnet_id: subnet.id, address: '10.1.0.9' }, 422, 'address'],
    ['POST', '/ips/allocate', { subnet_id: subnet.id, address: '10.9.0.9' }, 422, 'address'],
    ['POST', '/ips/allocate', { subnet_id: subnet.id, request_id: X(65) }, 422, 'request_id'],
    ['POST', '/ips/allocate', { subnet_id: subnet.id, mac: 'x' }, 422, 'mac'],
    ['POST', '/ips/allocate', { subnet_id: subnet.id, contiguous: 'x' }, 422, 'contiguous'],
    ['POST', `/ips/${ip.id}/reserve`, {}, 422, 'until'],
    ['POST', `/ips/${ip.id}/reserve`, { until: '2001-01-01T00:00:00Z' }, 422, 'until'],
    ['POST', `/ips/${ip.id}/release`, { note: X(256) }, 422, 'note'],
    ['GET', '/ips?contained_in=x', undefined, 422, 'contained_in'],
    ['GET', '/ips?seen=2', undefined, 422, 'seen'],
    ['GET', '/ips?server_id=x', undefined, 422, 'server_id'],
  ])
})

test('[RES-253] options: bad input names its field', async () => {
  await refuses([
    ['GET', '/options/nope', undefined, 404, null],
    ['POST', '/options/environments/items', {}, 422, 'value'],
    ['POST', '/options/environments/items', { value: X(129) }, 422, 'value'],
    ['POST', '/options/environments/items', { value: 'v', color: '#12345' }, 422, 'color'],
    ['POST', '/options/environments/items', { value: 'v', enabled: 'x' }, 422, 'enabled'],
    ['PUT', '/options/environments/order', {}, 422, 'order'],
    ['PUT', '/options/environments/order', { order: [NO] }, 422, 'order'],
    ['GET', '/options/environments?include=x', undefined, 422, 'include'],
    ['PATCH', `/options/environments/items/${NO}`, { label: 'x' }, 404, null],
    ['DELETE', `/options/environments/items/${NO}`, undefined, 404, null],
  ])
})

test('[RES-039] [RES-040] [RES-041] connections: bad input names its field', async () => {
  await made('/connections', {
    source: { kind: 'service', name: 'a' },
    target: { kind: 'service', name: 'b' },
    type: 'tcp',
    port: 1,
  })
  await refuses([
    ['POST', '/connections', {}, 422, 'source'],
    [
      'POST',
      '/connections',
      { source: { kind: 'service', name: 'a' }, target: { kind: 'service', name: 'a' }, type: 'tcp' },
      422,
      'target',
    ],
    [
      'POST',
      '/connections',
      { source: { kind: 'server', id: NO }, target: { kind: 'service', name: 'b' }, type: 'tcp' },
      422,
      'source.id',
    ],
    [
      'POST',
      '/connections',
      { source: { kind: 'x', name: 'a' }, target: { kind: 'service', name: 'b' } },
      422,
      'source.kind',
    ],
    [
      'POST',
      '/connections',
      { source: { kind: 'service', name: 'a' }, target: { kind: 'service', name: 'b' }, type: 'tcp', port: 1 },
      422,
      'target',
    ],
    [
      'POST',
      '/connections',
      { source: { kind: 'service', name: 'c' }, target: { kind: 'service', name: 'd' }, type: 'tcp', port: 0 },
      422,
      'port',
    ],
    [
      'POST',
      '/connections',
      { source: { kind: 'service', name: 'c' }, target: { kind: 'service', name: 'd' }, type: 'tcp', port: 65536 },
      422,
      'port',
    ],
    [
      'POST',
      '/connections',
      {
        source: { kind: 'service', name: 'c' },
        target: { kind: 'service', name: 'd' },
        type: 'tcp',
        port: 5,
        probe: { by: 'agent' },
      },
      422,
      'probe.by',
    ],
    ['GET', '/connections/graph?depth=99', undefined, 422, 'depth'],
    ['GET', '/connections/graph?root=x', undefined, 422, 'root'],
    ['GET', '/connections?state=x', undefined, 422, 'state'],
  ])
})

test('[RES-190] [RES-193] [RES-194] [RES-196] [RES-197] [RES-207] dns: bad input names its field', async () => {
  const zone = await made('/dns/zones', { name: 'z.example' })
  await refuses([
    ['POST', '/dns/zones', {}, 422, 'name'],
    ['POST', '/dns/zones', { name: 'z.example' }, 422, 'name'],
    ['POST', '/dns/zones', { name: 'Z.EXAMPLE' }, 422, 'name'],
    ['POST', '/dns/zones', { name: 'a b' }, 422, 'name'],
    ['POST', '/dns/servers', { name: 'n2', host: '127.0.0.1' }, 422, 'host'],
    ['POST', '/dns/servers', { name: 'n2', host: '10.0.0.1' }, 422, 'host'],
    ['POST', '/dns/servers', { name: 'n2', host: '192.0.2.1', port: 0 }, 422, 'port'],
    ['PATCH', `/dns/zones/${zone.id}`, { name: 'other.example' }, 422, 'name'],
    ['DELETE', `/dns/servers/${NO}`, undefined, 404, null],
    ...(
      [
        ['A', '1.2.3'],
        ['A', '01.2.3.4'],
        ['A', '::1'],
        ['AAAA', '1.2.3.4'],
        ['MX', '10 192.0.2.1'],
        ['MX', 'x'],
        ['CNAME', '1.2.3.4'],
        ['CNAME', 'a b'],
        ['NS', '192.0.2.1'],
        ['TXT', X(4097)],
        ['CAA', '0 isue "x"'],
        ['CAA', 'x'],
        ['SRV', '1 2'],
      ] as const
    ).map(
      ([type, value]): RefusedRow => [
        'POST',
        `/dns/zones/${zone.id}/records`,
        { name: type === 'SRV' ? '_a._tcp' : 'h', type, value },
        422,
        'value',
      ],
    ),
    ['POST', `/dns/zones/${zone.id}/records`, { name: '@', type: 'CNAME', value: 'x.example.' }, 422, 'name'],
    ['POST', `/dns/zones/${zone.id}/records`, { name: 'a..b', type: 'A', value: '192.0.2.1' }, 422, 'name'],
    ['POST', `/dns/zones/${zone.id}/records`, { name: X(64), type: 'A', value: '192.0.2.1' }, 422, 'name'],
    ['POST', `/dns/zones/${zone.id}/records`, { name: 'a.*', type: 'A', value: '192.0.2.1' }, 422, 'name'],
    ['POST', `/dns/zones/${zone.id}/records`, { name: 'x.other.example.', type: 'A', value: '192.0.2.1' }, 422, 'name'],
    ['POST', `/dns/zones/${zone.id}/records`, { name: 'srv', type: 'SRV', value: '1 2 3 h.example.' }, 422, 'name'],
    ['POST', `/dns/zones/${zone.id}/records`, { name: '1', type: 'PTR', value: 'h.example.' }, 422, 'name'],
    ['POST', `/dns/zones/${zone.id}/records`, { name: 'h', type: 'X', value: '1' }, 422, 'type'],
    ['POST', `/dns/zones/${zone.id}/records`, { name: 'h', type: 'A', value: '192.0.2.1', ttl: -1 }, 422, 'ttl'],
    ['POST', `/dns/zones/${zone.id}/records`, { name: 'h', type: 'A', value: '192.0.2.1', ptr: true }, 422, 'ptr'],
    ['POST', `/dns/zones/${zone.id}/records`, { name: 'h', type: 'A' }, 422, 'value'],
    ['POST', `/dns/zones/${zone.id}/records`, {}, 422, 'type'],
    ['POST', `/dns/zones/${zone.id}/import`, { content: '$INCLUDE /etc/passwd\n' }, 422, 'content.1'],
    ['POST', `/dns/zones/${zone.id}/import`, { content: 'h IN A 1.2.3\n' }, 422, 'content.1'],
    ['POST', `/dns/zones/${zone.id}/import`, {}, 422, 'content'],
  ])
})

test('[RES-058] [RES-060] [RES-073] load balancers: bad input names its field', async () => {
  const server = await made('/servers', { name: 's1' })
  const lb = await made('/load-balancers', { name: 'lb', vendor: 'haproxy' })
  const lb2 = await made('/load-balancers', { name: 'lb2', vendor: 'haproxy' })
  const pool = await made(`/load-balancers/${lb.id}/pools`, { name: 'p' })
  const pool2 = await made(`/load-balancers/${lb2.id}/pools`, { name: 'p' })
  await refuses([
    ['POST', '/load-balancers', {}, 422, 'name'],
    ['POST', '/load-balancers', { name: 'LB', vendor: 'haproxy' }, 422, 'name'],
    ['POST', '/load-balancers', { name: 'l3', vendor: 'x' }, 422, 'vendor'],
    [
      'POST',
      '/load-balancers',
      { name: 'l3', vendor: 'haproxy', integration: 'haproxy_dataplane' },
      422,
      'management_url',
    ],
    ['POST', '/load-balancers', { name: 'l3', vendor: 'haproxy', management_url: 'ftp://x' }, 422, 'management_url'],
    [
      'POST',
      '/load-balancers',
      { name: 'l3', vendor: 'haproxy', management_url: 'http://127.0.0.1/' },
      422,
      'management_url',
    ],
    ['POST', `/load-balancers/${lb.id}/pools`, { name: 'P' }, 422, 'name'],
    ['POST', `/load-balancers/${lb.id}/pools/${pool.id}/members`, { port: 80 }, 422, 'server_id'],
    [
      'POST',
      `/load-balancers/${lb.id}/pools/${pool.id}/members`,
      { port: 80, server_id: server.id, address: '10.0.0.1' },
      422,
      'server_id',
    ],
    ['POST', `/load-balancers/${lb.id}/pools/${pool.id}/members`, { address: '10.0.0.1' }, 422, 'port'],
    ['POST', `/load-balancers/${lb.id}/pools/${pool.id}/members`, { address: 'x y', port: 80 }, 422, 'address'],
    ['POST', `/load-balancers/${lb.id}/pools/${pool.id}/members`, { address: '10.0.0.1', port: 70000 }, 422, 'port'],
    ['POST', `/load-balancers/${lb.id}/pools/${pool2.id}/members`, { address: '10.0.0.1', port: 80 }, 404, null],
    [
      'POST',
      `/load-balancers/${lb.id}/virtual-servers`,
      { name: 'v', address: '10.0.0.1', port: 80, protocol: 'http', pool_id: pool2.id },
      422,
      'pool_id',
    ],
    [
      'POST',
      `/load-balancers/${lb.id}/virtual-servers`,
      { name: 'v', address: '10.0.0.1', port: 80, protocol: 'http', certificate_ids: [NO] },
      422,
      'certificate_ids',
    ],
    ['POST', `/load-balancers/${lb.id}/virtual-servers`, { name: 'v' }, 422, 'address'],
    ['POST', `/load-balancers/${lb.id}/sync`, {}, 422, 'integration'],
  ])
})

test('[RES-081] [RES-082] [RES-088] proxies: bad input names its field', async () => {
  const rev = await made('/proxies', { name: 'rev', mode: 'reverse' })
  await refuses([
    ['POST', '/proxies', {}, 422, 'name'],
    ['POST', '/proxies', { name: 'f', mode: 'forward' }, 422, 'url'],
    ['POST', '/proxies', { name: 'f', mode: 'forward', url: 'http://u:p@192.0.2.1:3128' }, 422, 'url'],
    [
      'POST',
      '/proxies',
      { name: 'f', mode: 'forward', url: 'http://192.0.2.1:3128', use_for: ['x'] },
      422,
      'use_for.0',
    ],
    ['POST', '/proxies', { name: 'f', mode: 'reverse', use_for: ['probes'] }, 422, 'use_for'],
    ['POST', '/proxies', { name: 'f', mode: 'x' }, 422, 'mode'],
    ['PATCH', `/proxies/${rev.id}`, { mode: 'forward' }, 422, 'mode'],
    ['POST', `/proxies/${rev.id}/sites`, { hostnames: ['a.*.com'] }, 422, 'hostnames.0'],
    ['POST', `/proxies/${rev.id}/sites`, { hostnames: ['a b'] }, 422, 'hostnames.0'],
    ['POST', `/proxies/${rev.id}/sites`, {}, 422, 'hostnames'],
  ])
})

test('[RES-258] [RES-259] [RES-264] [RES-266] system: bad input names its field', async () => {
  await refuses([
    ['POST', '/system/commands/nope/run', {}, 404, null],
    ['POST', '/system/commands/purge-trash/run', {}, 422, 'confirm'],
    ['POST', '/system/commands/rebuild-search/run', { parameters: 'x' }, 422, 'parameters'],
    ['POST', '/system/commands/rebuild-search/run', { parameters: { kinds: 5 } }, 422, 'parameters.kinds'],
    ['PUT', '/system/settings/nope', { value: 1 }, 404, null],
    ['PUT', '/system/settings/ips.stale_days?level=company', { value: 0 }, 422, 'value'],
    ['PUT', '/system/settings/ips.stale_days?level=company', { value: 'x' }, 422, 'value'],
    ['PUT', '/system/settings/ips.stale_days?level=company', {}, 422, 'value'],
    ['PUT', '/system/settings/outbound.allowed_ranges', { value: [] }, 422, 'key'],
    ['PUT', '/system/settings/certificates.warn_days?level=company', { value: [] }, 422, 'value'],
    ['PUT', '/system/settings/ips.stale_days?level=system', { value: 5 }, 403, null],
    ['PUT', '/system/settings/ips.stale_days?level=x', { value: 5 }, 422, 'level'],
    ['POST', '/system/settings/mail/test', { to: 'x' }, 422, 'to'],
    ['POST', '/system/settings/mail/test', {}, 422, 'smtp'],
    ['GET', '/system/command-runs?state=x', undefined, 422, 'state'],
    ['GET', `/system/command-runs/${NO}`, undefined, 404, null],
    ['PUT', '/system/maintenance', { mode: 'x' }, 403, null],
  ])
})

test('[RES-270] exports: bad input names its field', async () => {
  await refuses([
    ['POST', '/exports', {}, 422, 'resource'],
    ['POST', '/exports', { resource: 'x' }, 422, 'resource'],
    ['POST', '/exports', { resource: 'ips', format: 'xlsx' }, 422, 'format'],
    ['POST', '/exports', { resource: 'ips', filters: { nope: 1 } }, 422, 'filters.nope'],
    ['POST', '/exports', { resource: 'ips', columns: ['nope'] }, 422, 'columns.0'],
    ['POST', '/exports', { resource: 'ips', columns: [] }, 422, 'columns'],
    ['POST', '/exports', { resource: 'ips', delimiter: '|' }, 422, 'delimiter'],
    ['POST', '/exports', { resource: 'ips', filters: { server_id: 'x' } }, 422, 'filters.server_id'],
    ['POST', '/exports', { resource: 'ips', filters: 'x' }, 422, 'filters'],
    ['POST', '/exports/schedules', {}, 422, 'name'],
    ['POST', '/exports/schedules', { name: 's', resource: 'ips', every: 'week', at: '25:00' }, 422, 'at'],
    [
      'POST',
      '/exports/schedules',
      { name: 's', resource: 'ips', every: 'month', at: '05:00', day: 29, time_zone: 'UTC' },
      422,
      'day',
    ],
    [
      'POST',
      '/exports/schedules',
      { name: 's', resource: 'ips', every: 'day', at: '05:00', time_zone: 'Mars/X' },
      422,
      'time_zone',
    ],
    [
      'POST',
      '/exports/schedules',
      { name: 's', resource: 'ips', every: 'day', at: '05:00', time_zone: 'UTC', recipients: [NO] },
      422,
      'recipients.0',
    ],
    [
      'POST',
      '/exports/schedules',
      { name: 's', resource: 'ips', every: 'week', at: '05:00', weekday: 8 },
      422,
      'weekday',
    ],
    ['GET', `/exports/${NO}`, undefined, 404, null],
    ['GET', '/exports?state=x', undefined, 422, 'state'],
  ])
})

test('[RES-282] [RES-284] files and search: bad input names its field', async () => {
  await refuses([
    ['POST', '/files', {}, 422, 'name'],
    ['POST', '/files', { name: 'a.txt', content_base64: '' }, 422, 'file'],
    ['POST', '/files', { name: 'a.txt', content_base64: '***' }, 422, 'content_base64'],
    ['POST', '/files', { name: 'a.txt', content_base64: btoa('<!doctype html><html>') }, 422, 'file'],
    [
      'POST',
      '/files',
      { name: 'a.svg', content_base64: btoa('<svg xmlns="http://www.w3.org/2000/svg"/>') },
      422,
      'file',
    ],
    [
      'POST',
      '/files',
      { name: 'k.pem', content_base64: btoa('-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n') },
      422,
      'file',
    ],
    ['GET', `/files/${NO}`, undefined, 404, null],
    ['GET', '/files?attached=x', undefined, 422, 'attached'],
    ['GET', '/files?sort=x', undefined, 422, 'sort'],
    ['GET', '/search?q=a', undefined, 422, 'q'],
    ['GET', `/search?q=${X(101)}`, undefined, 422, 'q'],
    ['GET', '/search?q=abc&kinds=nope', undefined, 422, 'kinds'],
    ['GET', '/search?q=abc&page=21', undefined, 422, 'page'],
    ['GET', '/search?q=abc&health=x', undefined, 422, 'health'],
  ])
})

test('[RES-175] [RES-176] mobile: bad input names its field', async () => {
  await refuses([
    ['POST', '/mobile/devices', {}, 422, 'platform'],
    ['POST', '/mobile/devices', { platform: 'x', name: 'n', token: 't' }, 422, 'platform'],
    ['POST', '/mobile/devices', { platform: 'fcm', name: 'n', token: 't' }, 422, 'platform'],
    ['POST', '/mobile/devices', { platform: 'webpush', name: 'n' }, 422, 'subscription'],
    [
      'POST',
      '/mobile/devices',
      {
        platform: 'webpush',
        name: 'n',
        subscription: { endpoint: 'http://example.com/', keys: { p256dh: 'x', auth: 'y' } },
      },
      422,
      'subscription.endpoint',
    ],
    [
      'POST',
      '/mobile/devices',
      {
        platform: 'webpush',
        name: X(101),
        subscription: { endpoint: 'https://example.com/', keys: { p256dh: 'x', auth: 'y' } },
      },
      422,
      'name',
    ],
    ['DELETE', `/mobile/devices/${NO}`, undefined, 404, null],
  ])
})

test('bodies that are no object are refused', async () => {
  const subnet = await made('/subnets', { cidr: '10.12.0.0/24' })
  await refuses([
    ['POST', '/subnets', '[]', 422, 'body'],
    ['POST', '/subnets', 'null', 422, 'body'],
    ['POST', '/subnets', '{', 422, 'body'],
    ['POST', '/subnets', '"x"', 422, 'body'],
    ['PATCH', `/subnets/${subnet.id}`, '[]', 422, 'body'],
    ['POST', '/ips/allocate', '[]', 422, 'body'],
    ['PUT', '/options/environments/order', '[]', 422, 'body'],
    ['POST', '/exports', '5', 422, 'body'],
    ['POST', '/files', '[]', 422, 'body'],
    ['POST', '/subnets', '{"cidr":"10.5.0.0/24","name":"a\\u0000b"}', 422, 'name'],
  ])
})
