// Every field that makes the hub connect somewhere refuses what the guard refuses, whatever it is spelled like.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { isAllowedAddress, resolveTarget } from '../../apps/hub/platform/outbound-guard.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

setDefaultTimeout(60_000)

/** Addresses of the host itself and of networks behind it, as a company might spell them. */
const INSIDE = [
  '127.0.0.1',
  '127.1',
  '0x7f000001',
  '2130706433',
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '169.254.169.254',
  '172.16.0.1',
  '192.168.0.1',
  '224.0.0.1',
  'localhost',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:a9fe:a9fe',
  '::127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b:1::a00:1',
  '2002:7f00:1::',
  '2001:0:7f00:1::',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fec0::1',
  'ff02::1',
]
/** Where clouds and container services hand out credentials. */
const METADATA = [
  '169.254.169.254',
  '169.254.170.2',
  '169.254.170.23',
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  '::ffff:169.254.169.254',
  '64:ff9b::a9fe:a9fe',
  '2002:a9fe:a9fe::1',
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
]

describe('fields', () => {
  let hub: TestHub
  let tenant: Tenant

  beforeAll(async () => {
    hub = await TestHub.start()
    tenant = await hub.tenant()
  })
  afterAll(() => hub.stop())

  const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host)
  const ends = (host: string) => ({ source: { kind: 'service', name: 'app' }, target: { kind: 'external', host } })
  type Field = readonly [path: string, field: string, body: (host: string, name: string) => Json]
  const fields: readonly Field[] = [
    ['/webhooks', 'url', (host, name) => ({ name, url: `https://${inUrl(host)}/hook`, events: [] })],
    ['/connections', 'target', host => ({ ...ends(host), protocol: 'tcp', port: 443, probe: { by: 'hub' } })],
    ['/certificates', 'endpoint.host', (host, name) => ({ name, endpoint: { host } })],
    ['/dns/servers', 'host', (host, name) => ({ name, host })],
    ['/dns/servers', 'api_url', (host, name) => ({ name, host: '8.8.8.8', api_url: `http://${inUrl(host)}:8081` })],
    [
      '/load-balancers',
      'management_url',
      (host, name) => ({
        name,
        vendor: 'haproxy',
        integration: 'haproxy_dataplane',
        management_url: `https://${inUrl(host)}:5555`,
      }),
    ],
    ['/proxies', 'url', (host, name) => ({ name, mode: 'forward', url: `http://${inUrl(host)}:3128` })],
    [
      '/mobile/devices',
      'subscription.endpoint',
      (host, name) => ({
        platform: 'webpush',
        name,
        subscription: { endpoint: `https://${inUrl(host)}/push`, keys: { p256dh: 'x', auth: 'y' } },
      }),
    ],
  ]

  test('[RES-018] [RES-059] the address of an interface is plain: a user in it would be shown', async () => {
    const wrong = [
      '8.8.8.8',
      'ftp://8.8.8.8',
      'http://a:b@8.8.8.8',
      'http://8.8.8.8/?x=1',
      'http://8.8.8.8/#x',
      'http://',
    ]
    for (const url of wrong) {
      const lb = { name: 'lb', vendor: 'haproxy', integration: 'haproxy_dataplane', management_url: url }
      const ns = { name: 'ns', host: '8.8.8.8', integration: 'powerdns', api_url: url }
      for (const [path, body, field] of [
        ['/load-balancers', lb, 'management_url'],
        ['/dns/servers', ns, 'api_url'],
      ] as const) {
        const { status, body: said } = await tenant.call('POST', path, body)
        expect([url, path, status, Object.keys(said.errors ?? {})]).toEqual([url, path, 422, [field]])
      }
    }
  })

  for (const [path, field, body] of fields)
    test(`[RES-031] [RES-033] ${field} of ${path} leads to no address inside, however it is written`, async () => {
      for (const [index, host] of INSIDE.entries()) {
        const answer = await tenant.call('POST', path, body(host, `inside ${index}`))
        const said = Object.keys(answer.body.errors ?? {})
        expect([host, answer.status, said.every(each => each.split('.')[0] === field.split('.')[0])]).toEqual([
          host,
          422,
          true,
        ])
      }
      const list = (await tenant.call('GET', path)).body.data
      expect(list).toEqual([])
    })
})

test('[RES-033] addresses of metadata are refused whatever is allowed', async () => {
  const config = { 'webhooks.allow_private': true, 'outbound.allowed_ranges': ['0.0.0.0/0', '::/0'] }
  expect(METADATA.filter(address => isAllowedAddress(config, address))).toEqual([])
  for (const host of METADATA) expect(await resolveTarget(config, host)).toEqual({ fault: 'target_not_allowed' })
})
