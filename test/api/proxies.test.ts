// Proxies over HTTP: sites that are really served, configurations that nginx and HAProxy take, and the hub's own way
// out through a real tinyproxy and a real microsocks.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testDueProxies } from '../../apps/hub/proxies/proxy-schedule.ts'
import { freePort } from '../../apps/standalone/ports.ts'
import { runProgram } from '../support/foreign-program.ts'
import { PROXY_ADDRESS, startMicrosocks, startTinyproxy } from '../support/forward-proxy.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

setDefaultTimeout(60_000)
const LOGIN = { username: 'hub', password: 'pw-of-the-proxy' }

let hub: TestHub
let tenant: Tenant
let folder = ''
let count = 0
let served: ReturnType<typeof Bun.serve>
let secured: ReturnType<typeof Bun.serve>
/** What the sites answer now, and who asked for what. */
let page = { status: 200, text: 'the shop' }
type Visit = { readonly from: string; readonly path: string; readonly headers: Headers; readonly text: string }
const visits: Visit[] = []

/** A certificate of localhost that vouches for itself. */
function selfSigned(key: string, crt: string): void {
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-days', '5', '-nodes']
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-keyout', key]
  expect(runProgram(['openssl', 'req', '-x509', ...newKey, ...names, '-out', crt]).code).toBe(0)
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'proxies-'))
  hub = await TestHub.start({ 'webhooks.allow_private': true })
  tenant = await hub.tenant()
  const [key, crt] = [join(folder, 'key'), join(folder, 'crt')]
  selfSigned(key, crt)
  const answer = async (request: Request, server: { requestIP(of: Request): { address: string } | null }) => {
    const { pathname: path } = new URL(request.url)
    visits.push({
      from: server.requestIP(request)?.address ?? '',
      path,
      headers: request.headers,
      text: await request.text(),
    })
    return new Response(page.text, { status: page.status })
  }
  const options = { port: 0, hostname: '127.0.0.1', fetch: answer }
  served = Bun.serve(options)
  secured = Bun.serve({ ...options, tls: { key: readFileSync(key, 'utf8'), cert: readFileSync(crt, 'utf8') } })
})
afterAll(async () => {
  await served.stop(true)
  await secured.stop(true)
  await hub.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function made(path: string, body: Json): Promise<Json> {
  const answer = await tenant.call('POST', path, body)
  if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
const refused = async (path: string, body: Json, method = 'POST'): Promise<string[]> => {
  const answer = await tenant.call(method, path, body)
  expect(answer.status).toBe(422)
  return Object.keys(answer.body.errors)
}
const proxy = (more: Json = {}): Promise<Json> =>
  made('/proxies', { name: `proxy ${count++}`, check_interval_seconds: 0, ...more })
const forward = (url: string, more: Json = {}): Promise<Json> => proxy({ mode: 'forward', url, ...more })
/** A reverse proxy before the sites of this test. */
const edge = (more: Json = {}): Promise<Json> =>
  proxy({ addresses: ['127.0.0.1'], listen: [{ port: served.port }, { port: secured.port, tls: true }], ...more })
const shown = async (of: Json): Promise<Json> => (await tenant.call('GET', `/proxies/${of.id}`)).body.data
const sitesOf = async (of: Json): Promise<Json[]> => (await tenant.call('GET', `/proxies/${of.id}/sites`)).body.data
const siteShown = async (of: Json, site: Json): Promise<Json> =>
  (await tenant.call('PATCH', `/proxies/${of.id}/sites/${site.id}`, {})).body.data
const codesOf = (resource: Json): string[] => resource.conditions.map((each: Json) => each.code)

async function run(of: Json, action = 'test', body: Json = {}): Promise<Json> {
  const answer = await tenant.call('POST', `/proxies/${of.id}/${action}`, body)
  expect(answer.status).toBe(202)
  return until('the run', async () => {
    const last = (await shown(of)).last_runs.find((each: Json) => each.id === answer.body.data.id)
    return last?.finished_at != null && last
  })
}

describe('what is kept', () => {
  test('[RES-081] a forward proxy needs a url, without a user in it', async () => {
    for (const url of [
      undefined,
      'http://user:password@127.0.0.1:3128',
      'http://user@127.0.0.1:1',
      'ftp://127.0.0.1:21',
      'x',
    ])
      expect(await refused('/proxies', { name: 'way out', mode: 'forward', url })).toEqual(['url'])
    const { url, use_for } = await forward('HTTP://LOCALHOST:3128/')
    expect([url, use_for]).toEqual(['http://localhost:3128', []])
  })

  test('[RES-082] what belongs to the other mode is refused at its field, and empty values are not', async () => {
    const sent: [Json, string][] = [
      [{ sites: [{ hostnames: ['a.example.com'] }] }, 'sites'],
      [{ server_ids: [(await made('/servers', { name: `web ${count++}` })).id] }, 'server_ids'],
      [{ addresses: ['192.0.2.1'] }, 'addresses'],
      [{ listen: [{ port: 8080 }] }, 'listen'],
    ]
    for (const [more, field] of sent)
      expect(await refused('/proxies', { name: 'f', mode: 'forward', url: 'http://127.0.0.1:1', ...more })).toEqual([
        field,
      ])
    for (const [field, value] of Object.entries({
      url: 'http://127.0.0.1:1',
      username: 'u',
      password: 'p',
      use_for: ['probes'],
      no_proxy: ['a'],
    }))
      expect(await refused('/proxies', { name: 'r', [field]: value })).toEqual([field])
    for (const of of [await proxy(), await forward('http://127.0.0.1:1')]) {
      const again = await tenant.call('PATCH', `/proxies/${of.id}`, await shown(of))
      expect([again.status, again.body.data.version]).toEqual([200, 1])
    }
    const way = await forward('http://127.0.0.1:1')
    expect(await refused(`/proxies/${way.id}/sites`, { hostnames: ['a.example.com'] })).toEqual(['sites'])
    expect(await refused(`/proxies/${way.id}`, { mode: 'reverse' }, 'PATCH')).toEqual(['mode'])
    expect(await refused(`/proxies/${way.id}/reload`, {})).toEqual(['mode'])
  })

  test('[RES-083] a company has one enabled forward proxy for each use', async () => {
    const first = await forward('http://127.0.0.1:1', { use_for: ['probes'] })
    const second = { name: 'second', mode: 'forward', url: 'http://127.0.0.1:2', use_for: ['probes', 'webhooks'] }
    expect(await refused('/proxies', second)).toEqual(['use_for'])
    const spare = await made('/proxies', { ...second, enabled: false })
    expect(await refused(`/proxies/${spare.id}/enable`, {})).toEqual(['use_for'])
    expect((await (await hub.tenant()).call('POST', '/proxies', second)).status).toBe(201)
    await tenant.call('POST', `/proxies/${first.id}/disable`)
    expect((await tenant.call('POST', `/proxies/${spare.id}/enable`)).body.data.enabled).toBe(true)
    expect(await refused(`/proxies/${first.id}`, { enabled: true }, 'PATCH')).toEqual(['use_for'])
    await tenant.call('DELETE', `/proxies/${spare.id}`)
    await tenant.call('DELETE', `/proxies/${first.id}`)
  })

  test('[RES-087] [RES-088] a host name and path stand once in a proxy, and have the form of one', async () => {
    const of = await proxy()
    const path = `/proxies/${of.id}/sites`
    const first = await made(path, { hostnames: ['Shop.Example.com', '*.example.com'] })
    expect([first.name, first.hostnames]).toEqual(['shop.example.com', ['shop.example.com', '*.example.com']])
    expect(await refused(path, { hostnames: ['b.example.com', 'SHOP.example.com'] })).toEqual(['hostnames.1'])
    expect(await refused(path, { hostnames: ['c.example.com', 'c.example.com'] })).toEqual(['hostnames.1'])
    const second = await made(path, { hostnames: ['shop.example.com'], path: '/api' })
    expect(second.name).toBe('shop.example.com/api')
    expect(await refused(`${path}/${second.id}`, { path: '/' }, 'PATCH')).toEqual(['hostnames.0'])
    for (const bad of ['a.*.com', 'a b.com', 'a;b.com', 'a\nb.com', '{$PATH}.com', '"a".com', '192.0.2.1', '*'])
      expect([bad, await refused(path, { hostnames: ['ok.example.com', bad] })]).toEqual([bad, ['hostnames.1']])
    const found = async (query: string) =>
      (await tenant.call('GET', `${path}?${query}`)).body.data.map((row: Json) => row.id)
    expect(await found('hostname=SHOP.example.com&sort=-created_at')).toEqual([second.id, first.id])
    expect(await found('state=failing')).toEqual([])
    const searched = (await tenant.call('GET', '/proxies?search=shop.exam')).body.data
    expect(searched.map((row: Json) => row.id)).toEqual([of.id])
  })

  test('a proxy is made with its sites, all or none, and comes back with them', async () => {
    const hosts = (...names: string[]) => ({ hostnames: names })
    const body = { name: `whole ${count++}`, sites: [hosts('a.example.net'), hosts('b.example.net', 'no good')] }
    expect(await refused('/proxies', body)).toEqual(['sites.1.hostnames.1'])
    expect(await refused('/proxies', { ...body, sites: [hosts('a.example.net'), hosts('a.example.net')] })).toEqual([
      'sites.1.hostnames.0',
    ])
    expect(await refused('/proxies', { ...body, sites: [{ hostnames: [] }] })).toEqual(['sites.0.hostnames'])
    expect((await tenant.call('GET', `/proxies?search=${body.name}`)).body.data).toEqual([])
    const of = await made('/proxies', { ...body, sites: [hosts('a.example.net'), hosts('b.example.net')] })
    expect((await sitesOf(of)).map(site => site.name)).toEqual(['a.example.net', 'b.example.net'])
    expect((await tenant.call('DELETE', `/proxies/${of.id}`)).status).toBe(204)
    expect((await tenant.call('PATCH', `/proxies/${of.id}`, { deleted_at: null })).status).toBe(200)
    expect(await sitesOf(of)).toHaveLength(2)
  })

  test('a table makes proxies, and sent again changes nothing', async () => {
    const file = `name,mode,url,software,enabled\nway ${count++},forward,http://127.0.0.1:1,squid,false\nedge ${count++},reverse,,nginx,true\n`
    const sent = () => tenant.call('POST', '/proxies', file, { 'Content-Type': 'text/csv' })
    expect((await sent()).body.data).toMatchObject({ created: 2, unchanged: 0 })
    expect((await sent()).body.data).toMatchObject({ created: 0, updated: 0, unchanged: 2 })
  })

  test('values that would be commands of a configuration are refused at their fields', async () => {
    const of = await proxy()
    const path = `/proxies/${of.id}/sites`
    const base = { hostnames: ['safe.example.com'] }
    for (const bad of ['/a b', '/a;}', '/$x', '/a"', "/a'", '/a\nb', '/%0a', '/{a}', '/a\\', '/#a', 'a', '/a`b`'])
      expect([bad, await refused(path, { ...base, path: bad })]).toEqual([bad, ['path']])
    for (const url of [
      'http://a/;b',
      'http://a/$b',
      'http://a b',
      'http://u:p@a',
      'file:///etc/passwd',
      'http://a/{b}',
      'x',
    ])
      expect([url, await refused(path, { ...base, upstream: { url } })]).toEqual([url, ['upstream.url']])
    const upstreams: [Json, string][] = [
      [{}, 'upstream'],
      [{ kind: 'server', id: of.id, port: 80, url: 'http://a' }, 'upstream'],
      [{ id: of.id }, 'upstream.kind'],
      [{ kind: 'server' }, 'upstream.id'],
      [{ kind: 'server', id: of.id }, 'upstream.port'],
      [{ kind: 'lb_pool', id: of.id, port: 80 }, 'upstream.port'],
      [{ kind: 'server', id: of.id, port: 80 }, 'upstream.id'],
    ]
    for (const [upstream, field] of upstreams) expect(await refused(path, { ...base, upstream })).toEqual([field])
    const checks: [Json, string[]][] = [
      [{ path: 'a b', expect_status: '300-200' }, ['check.path', 'check.expect_status']],
      [{ expect_status: '99' }, ['check.expect_status']],
      [{ expect_status: [99] }, ['check.expect_status']],
    ]
    for (const [check, fields] of checks) expect(await refused(path, { ...base, check })).toEqual(fields)
    expect(
      await refused('/proxies', { name: 'y', sites: [{ hostnames: ['y.example.com'], check: { path: 'a' } }] }),
    ).toEqual(['sites.0.check.path'])
    expect(await refused('/proxies', { name: 'x', addresses: ['192.0.2.1', '192.0.2.1; }'] })).toEqual(['addresses.1'])
  })

  test('[RES-089] enabling and disabling again changes nothing and is not written down again', async () => {
    const of = await proxy()
    for (const action of ['enable', 'disable', 'disable', 'enable', 'enable'])
      expect((await tenant.call('POST', `/proxies/${of.id}/${action}`)).status).toBe(200)
    const log = (await tenant.call('GET', `/audit-log?subject=${of.id}`)).body.data
    expect(log.map((entry: Json) => entry.action)).toEqual(['proxy.enable', 'proxy.disable', 'proxy.create'])
    expect((await shown(of)).version).toBe(3)
  })
})

describe('sites', () => {
  test('[RES-091] [RES-094] a site fails by its status, its text and its certificate; twice opens a condition', async () => {
    const of = await edge()
    const path = `/proxies/${of.id}/sites`
    const site = await made(path, { hostnames: ['localhost'], check: { path: '/health', contains: 'shop' } })
    const looked = async () => {
      const { state, result } = await run(of)
      expect(state).toBe('done')
      return [result.ok, result.sites[0].error, result.sites[0].status_code]
    }
    expect(await looked()).toEqual([true, null, 200])
    expect(visits.at(-1)?.path).toBe('/health')
    expect(await siteShown(of, site)).toMatchObject({ state: 'ok', health: 'ok', result: { resolves_here: true } })
    page = { status: 500, text: 'the shop' }
    expect(await looked()).toEqual([false, 'status', 500])
    expect(codesOf(await siteShown(of, site))).toEqual([])
    page = { status: 200, text: `${'x'.repeat(256 * 1024)}the shop` }
    expect(await looked()).toEqual([false, 'contains', 200])
    const failing = await siteShown(of, site)
    expect([codesOf(failing), failing.health, failing.state]).toEqual([['site_failing'], 'critical', 'failing'])
    page = { status: 200, text: 'the shop' }
    expect(await looked()).toEqual([true, null, 200])
    expect(await siteShown(of, site)).toMatchObject({ conditions: [], health: 'ok', state: 'ok' })
    await tenant.call('PATCH', `${path}/${site.id}`, { redirect_https: true })
    expect(await looked()).toEqual([false, 'tls', 200])
    const roots = { value: readFileSync(join(folder, 'crt'), 'utf8') }
    expect((await tenant.call('PUT', '/system/settings/certificates.extra_roots?level=company', roots)).status).toBe(
      200,
    )
    expect(await looked()).toEqual([true, null, 200])
    await tenant.call('PATCH', `${path}/${site.id}`, { hostnames: ['other.invalid'] })
    expect(await looked()).toEqual([false, 'tls', 200])
  })

  test('[RES-092] a name that leads elsewhere is seen, and its end too', async () => {
    const of = await edge({ addresses: ['192.0.2.1'] })
    const site = await made(`/proxies/${of.id}/sites`, { hostnames: ['localhost'] })
    expect((await run(of)).result.sites[0]).toMatchObject({ resolves_here: false })
    const seen = await siteShown(of, site)
    expect(seen.conditions[0]).toMatchObject({ code: 'dns_elsewhere', severity: 'warning' })
    expect(seen.conditions[0].message).toContain('127.0.0.1')
    await tenant.call('PATCH', `/proxies/${of.id}`, { addresses: ['127.0.0.1'] })
    expect((await run(of)).result.sites[0]).toMatchObject({ resolves_here: true })
    expect(codesOf(await siteShown(of, site))).toEqual([])
  })

  test('[check 16.26] [RES-093] a site that serves another certificate than its own says so, and each is a deployment', async () => {
    const of = await edge()
    const [key, crt] = [join(folder, 'other.key'), join(folder, 'other.crt')]
    selfSigned(key, crt)
    const certificate = async (file: string): Promise<string> =>
      (await made('/certificates', { name: `bound ${count++}`, pem: readFileSync(file, 'utf8') })).id
    const [own, other] = [await certificate(join(folder, 'crt')), await certificate(crt)]
    const deployed = async (id: string) =>
      (await tenant.call('GET', `/certificates/${id}/deployments`)).body.data.map((each: Json) => [
        each.kind,
        each.made_by,
        each.host,
        each.port,
      ])
    const link = ['proxy_site', 'link', 'localhost', secured.port]
    const site = await made(`/proxies/${of.id}/sites`, { hostnames: ['localhost'], certificate_id: other })
    expect([site.redirect_https, await deployed(other)]).toEqual([true, [link]])
    expect((await run(of)).result.sites[0]).toMatchObject({ certificate_matches: false })
    expect(codesOf(await siteShown(of, site))).toContain('wrong_certificate')
    await tenant.call('PATCH', `/proxies/${of.id}/sites/${site.id}`, { certificate_id: own })
    expect([await deployed(other), await deployed(own)]).toEqual([[], [link]])
    expect((await run(of)).result.sites[0]).toMatchObject({ certificate_matches: true })
    expect(codesOf(await siteShown(of, site))).not.toContain('wrong_certificate')
    expect((await tenant.call('DELETE', `/certificates/${own}`)).body.referrers[0]).toMatchObject({ id: site.id })
    await tenant.call('DELETE', `/proxies/${of.id}`)
    expect(await deployed(own)).toEqual([])
    await tenant.call('PATCH', `/proxies/${of.id}`, { deleted_at: null })
    expect(await deployed(own)).toEqual([link])
  })

  test('[RES-090] what is disabled is not looked at, and its health is unknown', async () => {
    const of = await edge()
    const sites = `/proxies/${of.id}/sites`
    const [first, second] = [
      await made(sites, { hostnames: ['localhost'] }),
      await made(sites, { hostnames: ['b.invalid'], check: { expect_status: [418] } }),
    ]
    const named = async () => (await run(of)).result.sites.map((site: Json) => site.name)
    expect(await named()).toEqual(['b.invalid', 'localhost'])
    await run(of)
    expect((await siteShown(of, second)).health).toBe('critical')
    await tenant.call('PATCH', `${sites}/${second.id}`, { enabled: false })
    expect(await siteShown(of, second)).toMatchObject({ health: 'unknown', state: 'unknown', conditions: [] })
    expect(await named()).toEqual(['localhost'])
    await tenant.call('POST', `/proxies/${of.id}/disable`)
    expect(await named()).toEqual([])
    expect([(await shown(of)).health, (await siteShown(of, first)).health]).toEqual(['unknown', 'unknown'])
    const unknown = (await tenant.call('GET', `${sites}?health=unknown`)).body.meta.total
    expect(unknown).toBe(2)
    await tenant.call('POST', `/proxies/${of.id}/enable`)
    expect((await siteShown(of, first)).health).toBe('ok')
  })

  test('by the clock proxies with sites are looked at, and not those without', async () => {
    const of = await edge({ check_interval_seconds: 60 })
    const empty = await edge({ check_interval_seconds: 60 })
    await made(`/proxies/${of.id}/sites`, { hostnames: ['localhost'] })
    expect((await shown(of)).health).toBe('unknown')
    await testDueProxies(hub.hub)
    const seen = await until('it was looked at', async () => {
      const now = await shown(of)
      return now.checked_at !== null && now
    })
    expect([seen.health, seen.last_run.requested_by, (await shown(empty)).last_run]).toEqual(['ok', null, null])
  })
})

describe('configuration', () => {
  test('[RES-095] [RES-096] a reload freezes what is new, it is pulled, nginx and haproxy take it', async () => {
    const ports = [freePort(), freePort()]
    const server = await made('/servers', { name: `app ${count++}`, ip_address: '192.0.2.10' })
    const of = await proxy({
      software: 'haproxy',
      listen: [{ port: ports[0] }, { port: ports[1], tls: true }],
      enabled: false,
    })
    const sites = `/proxies/${of.id}/sites`
    const site = await made(sites, {
      name: 'shop "$(id)"; }\n server { #',
      hostnames: ['shop.example.com'],
      upstream: { kind: 'server', id: server.id, port: 8080 },
    })
    await made(sites, { hostnames: ['*.example.com'], upstream: { url: 'http://127.0.0.1:9000/app' } })
    expect(await shown(of)).toMatchObject({ revision: null, config_stale: false })
    const pull = (format = 'haproxy', tag = '') =>
      tenant.call('GET', `/proxies/${of.id}?include=config&format=${format}`, undefined, { 'If-None-Match': tag })
    expect((await pull()).body.data.config).toBeNull()
    const first = (await run(of, 'reload')).result
    expect(first).toMatchObject({ revision: 1, changed: true })
    const pulled = await pull()
    const { text, sha256 } = pulled.body.data.config
    expect([sha256, pulled.headers.get('etag')]).toEqual([first.sha256, `"${first.sha256}"`])
    expect(new Bun.CryptoHasher('sha256').update(text).digest('hex')).toBe(sha256)
    expect((await pull('haproxy', `"${sha256}"`)).status).toBe(304)
    expect(text).toContain('192.0.2.10:8080')
    const [haproxy, nginx] = [join(folder, 'haproxy.cfg'), join(folder, 'nginx.conf')]
    writeFileSync(haproxy, text)
    expect(runProgram(['haproxy', '-c', '-q', '-f', haproxy])).toMatchObject({ code: 0 })
    const ofNginx = (await pull('nginx')).body.data.config.text
    writeFileSync(nginx, `pid ${folder}/pid; error_log stderr; events {} http { access_log off;\n${ofNginx}}\n`)
    expect(runProgram(['nginx', '-t', '-q', '-c', nginx])).toMatchObject({ code: 0 })

    expect((await run(of, 'reload')).result).toMatchObject({ revision: 1, changed: false, sha256 })
    await tenant.call('PATCH', `/servers/${server.id}`, { ip_address: '192.0.2.11' })
    expect((await shown(of)).config_stale).toBe(true)
    await tenant.call('PATCH', `${sites}/${site.id}`, { path: '/shop' })
    expect((await pull()).body.data).toMatchObject({ config_stale: true, config: { revision: 1, text } })
    const second = (await run(of, 'reload')).result
    expect(second).toMatchObject({ revision: 2, changed: true })
    expect(second.sha256).not.toBe(sha256)
    expect(await shown(of)).toMatchObject({ revision: { revision: 2 }, config_stale: false })
    expect((await pull('haproxy', `"${sha256}"`)).status).toBe(200)
  })

  test('the health check of a pool stands in the configuration of the proxy that leads to it', async () => {
    const device = await made('/load-balancers', { name: `edge ${count++}`, vendor: 'other' })
    const pool = await made(`/load-balancers/${device.id}/pools`, {
      name: 'web',
      health_check: { type: 'http', path: '/ready', expect_status: 204, interval_seconds: 7 },
      members: [
        { address: '192.0.2.20', port: 80 },
        { address: '192.0.2.21', port: 80, backup: true },
      ],
    })
    const of = await proxy({ software: 'haproxy', listen: [{ port: freePort() }], enabled: false })
    const upstream = { kind: 'lb_pool', id: pool.id }
    await made(`/proxies/${of.id}/sites`, { hostnames: ['pool.example.com'], upstream })
    await run(of, 'reload')
    const textOf = async (format: string) =>
      (await tenant.call('GET', `/proxies/${of.id}?include=config&format=${format}`)).body.data.config.text
    const haproxy = await textOf('haproxy')
    for (const part of [
      'option httpchk GET /ready',
      'http-check expect status 204',
      '192.0.2.20:80 weight 1 check inter 7s',
    ])
      expect(haproxy).toContain(part)
    for (const part of ['health_uri /ready', 'health_status 204', 'health_interval 7s', 'lb_policy first'])
      expect(await textOf('caddy')).toContain(part)
  })
})

describe('the way out', () => {
  async function deliver(): Promise<Json> {
    const hook = await made('/webhooks', {
      name: `hook ${count++}`,
      url: `http://127.0.0.1:${served.port}/hook-${count++}`,
    })
    expect((await tenant.call('POST', `/webhooks/${hook.id}/test`)).status).toBeLessThan(300)
    return hook
  }
  const visitOf = (hook: Json) => visits.find(visit => hook.url.endsWith(visit.path))
  const deliveryOf = async (hook: Json): Promise<Json> =>
    (await tenant.call('GET', '/notifications/deliveries')).body.data.find((each: Json) => each.target === hook.url)

  test('[check 16.27] [RES-084] [RES-086] deliveries go through the proxy, and not at all while it does not answer', async () => {
    const tinyproxy = await startTinyproxy(join(folder, 'tinyproxy'), LOGIN)
    const of = await forward(`http://127.0.0.1:${tinyproxy.port}`, { ...LOGIN, use_for: ['webhooks'] })
    expect([of.username, of.password_set]).toEqual([LOGIN.username, true])
    let hook = await deliver()
    const visit = await until('the delivery', async () => visitOf(hook))
    expect(visit.from).toBe(PROXY_ADDRESS)
    const told = JSON.stringify([Object.fromEntries(visit.headers), visit.text])
    const credentials = Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString('base64')
    for (const secret of [LOGIN.password, credentials]) expect(told).not.toContain(secret)
    expect(visit.headers.get('proxy-authorization')).toBeNull()
    expect(JSON.stringify([await shown(of), (await tenant.call('GET', '/audit-log')).body])).not.toContain(
      LOGIN.password,
    )

    await tenant.call('PATCH', `/proxies/${of.id}`, { no_proxy: ['127.0.0.0/30'] })
    hook = await deliver()
    expect((await until('the direct delivery', async () => visitOf(hook))).from).toBe('127.0.0.1')
    await tenant.call('PATCH', `/proxies/${of.id}`, { no_proxy: [], password: 'wrong' })
    hook = await deliver()
    await until('a try', async () => (await deliveryOf(hook))?.tries > 0)
    expect([(await deliveryOf(hook)).state, visitOf(hook)]).toEqual(['waiting', undefined])
    await tenant.call('PATCH', `/proxies/${of.id}`, { password: LOGIN.password })
    await tinyproxy.stop()
    hook = await deliver()
    await until('a try', async () => (await deliveryOf(hook))?.tries > 0)
    expect(await deliveryOf(hook)).toMatchObject({ state: 'waiting', last_error: 'no answer' })
    expect(visitOf(hook)).toBeUndefined()
    await tenant.call('POST', `/proxies/${of.id}/disable`)
    hook = await deliver()
    expect((await until('the direct delivery', async () => visitOf(hook))).from).toBe('127.0.0.1')
    await tenant.call('DELETE', `/proxies/${of.id}`)
  })

  test('SOCKS5 carries deliveries too, and a test says what a proxy does', async () => {
    const microsocks = await startMicrosocks(LOGIN)
    const of = await forward(`socks5://127.0.0.1:${microsocks.port}`, { ...LOGIN, use_for: ['webhooks'] })
    const hook = await deliver()
    expect((await until('the delivery', async () => visitOf(hook))).from).toBe(PROXY_ADDRESS)
    const target = `127.0.0.1:${served.port}`
    expect((await run(of, 'test', { target })).result).toMatchObject({ ok: true, error: null })
    const closed = freePort()
    expect((await run(of, 'test', { target: `127.0.0.1:${closed}` })).result).toMatchObject({
      ok: false,
      error: 'proxy_refused',
    })
    expect((await shown(of)).health).toBe('ok')
    for (const bad of ['nonsense', '127.0.0.1', 'a b:1', 'http://127.0.0.1:1', '169.254.169.254:80'])
      expect([bad, await refused(`/proxies/${of.id}/test`, { target: bad })]).toEqual([bad, ['target']])
    await tenant.call('PATCH', `/proxies/${of.id}`, { password: 'wrong' })
    expect((await run(of, 'test', { target })).result).toMatchObject({ ok: false, error: 'proxy_auth' })
    await microsocks.stop()
    expect((await run(of, 'test', { target })).result).toMatchObject({ ok: false, error: 'refused' })
    expect(codesOf(await shown(of))).toEqual(['proxy_unreachable'])
    await tenant.call('DELETE', `/proxies/${of.id}`)
  })

  test('sites are looked at through the proxy for probes', async () => {
    const tinyproxy = await startTinyproxy(join(folder, 'probes'))
    const way = await forward(`http://127.0.0.1:${tinyproxy.port}`, { use_for: ['probes'] })
    const of = await edge()
    await made(`/proxies/${of.id}/sites`, {
      hostnames: ['localhost'],
      redirect_https: true,
      check: { path: '/by-proxy' },
    })
    expect((await run(of)).result.sites[0]).toMatchObject({ status_code: 200 })
    expect(visits.find(visit => visit.path === '/by-proxy')?.from).toBe(PROXY_ADDRESS)
    await tenant.call('DELETE', `/proxies/${way.id}`)
    await tinyproxy.stop()
  })

  test('[RES-085] a private target is refused with a proxy too', async () => {
    const strict = await hub.peer({ 'outbound.allowed_ranges': ['127.0.0.1/32'] })
    try {
      const of = await forward('http://127.0.0.1:1', { use_for: ['webhooks'] })
      const call: Tenant['call'] = async (method, path, body) => {
        const headers = { Authorization: `Bearer ${tenant.token}`, 'Content-Type': 'application/json' }
        const response = await fetch(`${strict.url}/api/v1${path}`, { method, headers, body: JSON.stringify(body) })
        return { status: response.status, headers: response.headers, body: await response.json() }
      }
      for (const url of ['https://10.0.0.1/', 'https://169.254.169.254/', 'https://[::1]/'])
        expect((await call('POST', '/webhooks', { name: 'x', url })).body.errors).toHaveProperty('url')
      expect(
        (await call('POST', '/proxies', { name: 'x', mode: 'forward', url: 'http://10.0.0.1:3128' })).body.errors,
      ).toHaveProperty('url')
      await tenant.call('DELETE', `/proxies/${of.id}`)
    } finally {
      await strict.running.stop()
    }
  })
})
