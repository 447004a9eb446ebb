// What comes before the routes: hosts, links, the depth of bodies, ranges of addresses.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadHubConfig } from '../../apps/hub/config.ts'
import { createToken } from '../../apps/hub/identity/accounts.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { loadSiteConfig } from '../../apps/standalone/config.ts'
import { caller, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let tenant: Tenant
beforeAll(async () => {
  hub = await TestHub.start({ allowed_hosts: 'hub.example.net', 'ops.allowed_hosts': 'metrics.example.net' })
  tenant = await hub.tenant()
})
afterAll(() => hub.stop())

/** Sends bytes and reads the answer to its end: what no client library would send. */
function raw(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(Number(port), hostname, () => socket.write(text))
    socket.setTimeout(5_000, () => socket.destroy(new Error(`no answer to ${text}`)))
    socket.on('data', chunk => {
      answer += chunk.toString()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}

const get = (path: string, more: string) =>
  `GET ${path} HTTP/1.1\r\n${more}Authorization: Bearer ${tenant.token}\r\nAccept: application/json\r\nConnection: close\r\n\r\n`
const bodyOf = (answer: string) => JSON.parse(/\{[\s\S]*\}/.exec(answer)?.[0] ?? 'null')

describe('links of pages', () => {
  const nextPage = async (host: string): Promise<string> =>
    bodyOf(await raw(hub.url, get('/api/v1/servers?search=x', `Host: ${host}\r\n`))).links.first

  test('a Host that is not the hub is in no link: the paths are relative', async () => {
    const { port } = new URL(hub.url)
    const path = '/api/v1/servers?search=x&page=1'
    expect(await nextPage('evil.example')).toBe(path)
    expect(await nextPage(`evil.example:${port}`)).toBe(path)
    expect(await nextPage('127.0.0.1:1')).toBe(path)
  })

  test('where the hub listens, and a host of the configuration, are in the links', async () => {
    const { port } = new URL(hub.url)
    const path = '/api/v1/servers?search=x&page=1'
    expect(await nextPage(`127.0.0.1:${port}`)).toBe(`${hub.url}${path}`)
    expect(await nextPage(`localhost:${port}`)).toBe(`http://localhost:${port}${path}`)
    expect(await nextPage('HUB.example.net:8443')).toBe(`http://hub.example.net:8443${path}`)
  })

  test('public_url is in the links, whatever the request says', async () => {
    const named = await TestHub.start({ public_url: 'https://monitor.example.test/' })
    try {
      const own = await named.tenant()
      const { links } = (await own.call('GET', '/servers', undefined, { Host: 'evil.example' })).body
      expect(links.first).toBe('https://monitor.example.test/api/v1/servers?page=1')
    } finally {
      await named.running.stop()
    }
  })

  test('the link of an invitation leads to the hub, whatever Host the inviter sends', async () => {
    const body = JSON.stringify({ email: 'invited@example.test' })
    const answer = await raw(
      hub.url,
      `POST /api/v1/invitations HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer ${tenant.token}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    )
    expect(answer).toContain(`${hub.url}/invitation?token=`)
    expect(answer).not.toContain('evil.example')
  })
})

describe('the Host header', () => {
  test('a malformed one answers 400, and none at all is fine in HTTP/1.0', async () => {
    for (const host of ['a b', 'evil.example/../x', 'user@evil', 'evil:99999', '[::1'])
      expect([host, await raw(hub.url, get('/api/v1/servers', `Host: ${host}\r\n`))]).toEqual([
        host,
        expect.stringMatching(/^HTTP\/1\.1 400 /),
      ])
    expect(await raw(hub.url, 'GET /login HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.[01] 200 /)
    expect(await raw(hub.running.opsUrl ?? '', 'GET /readyz HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.[01] 200 /)
  })
})

describe('the ops listener on loopback', () => {
  test('only reads: another method answers 405', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      const { status, headers } = await fetch(`${hub.running.opsUrl}${path}`, { method: 'POST' })
      expect([path, status, headers.get('allow')]).toEqual([path, 405, 'GET, HEAD'])
      expect((await fetch(`${hub.running.opsUrl}${path}`, { method: 'HEAD' })).status).toBe(200)
    }
  })

  const ops = async (host: string, path = '/metrics') =>
    /^HTTP\/1\.1 (\d+)/.exec(
      await raw(hub.running.opsUrl ?? '', `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    )?.[1]

  test('answers to addresses, localhost and configured names, and to nothing that a page could be served from', async () => {
    for (const host of [
      '127.0.0.1',
      '127.0.0.1:8083',
      'localhost:9',
      '[::1]:8083',
      '10.1.2.3',
      'METRICS.example.net.:80',
    ])
      expect([host, await ops(host)]).toEqual([host, '200'])
    for (const host of [
      'evil.example',
      'evil.example:8083',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
      '2130706433',
    ])
      expect([host, await ops(host)]).toEqual([host, '421'])
    for (const path of ['/healthz', '/readyz']) expect(await ops('evil.example', path)).toBe('421')
  })
})

describe('a body that is nested too deep', () => {
  const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  const bodies = (depth: number) => [
    deep(depth),
    `{"a":"\\u0000","b":${deep(depth)}}`,
    `{"name":"\\u0000","scope":${deep(depth)}}`,
    `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`,
  ]

  test('answers 400 with the usual body, to people and to collectors', async () => {
    const collector = await hub.collector()
    for (const depth of [101, 100_000, 200_000])
      for (const body of bodies(depth)) {
        for (const [method, path] of [
          ['POST', '/monitoring/rules'],
          ['PATCH', '/me'],
        ] as const) {
          const { status, body: told } = await tenant.call(method, path, body)
          expect([method, path, depth, status, told]).toEqual([
            method,
            path,
            depth,
            400,
            { message: expect.any(String) },
          ])
        }
        for (const path of ['/events', '/enroll', '/agents/seen']) {
          const { status, body: told } = await collector.call('POST', path, body)
          expect([path, depth, status, told.error?.code]).toEqual([path, depth, 400, 'bad_request'])
        }
      }
  }, 120_000)

  test('brackets within texts are no depth, and what is no JSON is told as before', async () => {
    const notes = '[{"'.repeat(200)
    expect((await tenant.call('POST', '/servers', { name: 'brackets', notes })).status).toBe(201)
    expect((await tenant.call('POST', '/servers', deep(50))).status).toBe(422)
    expect((await tenant.call('POST', '/servers', '['.repeat(50))).status).toBe(422)
  })
})

describe('a body with more faults than anybody reads', () => {
  const WRONG = 50_000
  const fieldsOf = async (path: string, body: unknown): Promise<string[]> => {
    const answer = await tenant.call('POST', path, body)
    expect(answer.status).toBe(422)
    return Object.keys(answer.body.errors)
  }

  test('is answered with the first of them: a small request has no large answer', async () => {
    const numbers = Array.from({ length: WRONG }, (_, index) => index)
    const user = await fieldsOf('/users', { email: 'a@example.net', name: 'x', permissions: numbers })
    expect(user.length).toBeLessThanOrEqual(1_000)
    expect(user.slice(0, 2)).toEqual(['permissions', 'permissions.0'])
    const scope = { server_ids: numbers }
    const rule = await fieldsOf('/monitoring/rules', { name: 'x', severity: 'warning', scope })
    expect(rule.length).toBeLessThanOrEqual(1_100)
    expect(rule).toContain('scope.server_ids')
  })

  test('matchers with labels that the metric has not are told of by the first of them', async () => {
    const matchers = Object.fromEntries(Array.from({ length: WRONG }, (_, index) => [`label_${index}`, 'x']))
    const rule = { name: 'x', metric: 'disk_used_percent', operator: '>', threshold: 1, severity: 'warning', matchers }
    const fields = await fieldsOf('/monitoring/rules', { ...rule, scope: { all: true } })
    expect(fields.length).toBeLessThanOrEqual(100)
    expect(fields).toContain('matchers.label_0')
  })
})

describe('ranges of addresses', () => {
  test('a malformed trusted proxy refuses the start, with the key and the value', () => {
    for (const bad of ['10.0.0.0/8/9', '10.0.0.0/', '10.0.0.0/33', 'proxy.example.net', 'fe80::1%eth0']) {
      const { faults } = loadHubConfig(undefined, { trusted_proxies: `10.0.0.0/8, ${bad}` })
      expect(faults).toEqual([{ key: 'trusted_proxies', value: bad, message: expect.stringContaining('10.0.0.0/8') }])
    }
    expect(loadHubConfig(undefined, { trusted_proxies: '10.0.0.0/8,::1' }).faults).toEqual([])
    const configFile = join(mkdtempSync(join(tmpdir(), 'site-')), 'site.yaml')
    writeFileSync(configFile, 'trusted_proxies: [10.0.0.0/8/9]\n')
    const nowhere = '127.0.0.1:0'
    const own = { hubListen: nowhere, agentListen: nowhere, adminListen: nowhere, opsListen: nowhere }
    const matching = { matcherListen: nowhere, matcherAdminListen: nowhere, matcher: false, securityDb: 'off' }
    const site = { dataDir: '', ...own, ...matching }
    expect(loadSiteConfig({ ...site, configFile }).faults).toEqual([
      { key: 'trusted_proxies', value: '10.0.0.0/8/9', message: expect.stringContaining('10.0.0.0/8') },
    ])
  })

  test('a token is not made with a malformed range, and an old one of that kind covers nothing', async () => {
    const { client, db } = hub.hub.database
    for (const range of ['127.0.0.0/8/32', '127.0.0.0/', '10/8'])
      await expect(
        inTransaction(db, tx =>
          createToken(tx, { userId: tenant.userId, name: 'x', permissions: null, ipRanges: [range], expiresAt: null }),
        ),
      ).rejects.toMatchObject({ more: { errors: { ip_range: [{ key: 'cidr' }] } } })
    const made = await hub.token(tenant.userId, { ipRanges: ['127.0.0.0/8'] })
    expect((await made.call('GET', '/servers')).status).toBe(200)
    await client`update api_tokens set ip_ranges = '{127.0.0.0/8/32}' where id = ${made.id}`
    expect((await caller(hub.url, made.token)('GET', '/servers')).body.reason).toBe('ip_not_allowed')
  })
})
