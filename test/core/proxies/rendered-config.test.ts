// Configurations of reverse proxies, judged by the programs that read them, and the values that may not become text.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../apps/standalone/ports.ts'
import { type ConfigSite, noCheck, type ProxyConfig, type RenderedConfig } from '../../../core/proxies/proxy-config.ts'
import { renderCaddy } from '../../../core/proxies/render-caddy.ts'
import { renderHaproxy } from '../../../core/proxies/render-haproxy.ts'
import { renderNginx } from '../../../core/proxies/render-nginx.ts'
import {
  isDirectTarget,
  isExpectedStatus,
  parseProxyUrl,
  parseSiteName,
  parseUpstreamUrl,
} from '../../../core/proxies/site-fields.ts'
import { runProgram, startProgram } from '../../support/foreign-program.ts'
import { until } from '../../support/until.ts'

setDefaultTimeout(60_000)
let folder = ''
let ports: readonly number[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rendered-'))
  ports = [freePort(), freePort()]
  mkdirSync(join(folder, 'certificates'))
  const [key, crt] = ['c1.key', 'c1.crt'].map(name => join(folder, 'certificates', name)) as [string, string]
  const names = ['-subj', '/CN=shop.example.com', '-days', '5', '-nodes', '-keyout', key, '-out', crt]
  const made = runProgram(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', ...names])
  expect(made.code).toBe(0)
  mkdirSync(join(folder, 'joined'))
  writeFileSync(join(folder, 'joined', 'c1.pem'), `${readFileSync(crt, 'utf8')}${readFileSync(key, 'utf8')}`)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const target = (host: string, more: Partial<{ port: number; weight: number; isBackup: boolean }> = {}) => ({
  host,
  port: 8080,
  weight: 1,
  isBackup: false,
  ...more,
})
const site = (name: string, hostnames: readonly string[], more: Partial<ConfigSite> = {}): ConfigSite => ({
  name,
  hostnames,
  path: '/',
  certificate: null,
  redirectsToHttps: false,
  upstream: { isTls: false, path: '', targets: [target('127.0.0.1')], check: noCheck },
  ...more,
})
const configOf = (sites: readonly ConfigSite[]): ProxyConfig => ({
  name: 'edge',
  listen: [
    { port: ports[0] ?? 0, tls: false },
    { port: ports[1] ?? 0, tls: true },
  ],
  sites,
})

/** What `nginx -t` says of a rendered file, with the certificates of the test in place of the host's. */
function judgedByNginx({ text }: RenderedConfig) {
  const [main, own] = [join(folder, 'nginx.conf'), join(folder, 'edge.conf')]
  writeFileSync(own, text.replaceAll('/etc/nginx/certificates', join(folder, 'certificates')))
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(each => `${each}_temp_path ${folder}/t;`)
  const http = `http { access_log off; ${paths.join(' ')} include ${own}; }`
  writeFileSync(main, `pid ${folder}/pid; error_log stderr; events {} ${http}\n`)
  return runProgram(['nginx', '-t', '-q', '-p', folder, '-c', main])
}

function judgedByHaproxy({ text }: RenderedConfig) {
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, text.replaceAll('/etc/haproxy/certificates/', `${join(folder, 'joined')}/`))
  return runProgram(['haproxy', '-c', '-q', '-f', file])
}

const wholeConfig = () =>
  configOf([
    site('shop', ['shop.example.com', '*.shop.example.com'], { certificate: 'c1', redirectsToHttps: true }),
    site('shop api', ['shop.example.com'], {
      path: '/api',
      certificate: 'c1',
      upstream: {
        isTls: true,
        path: '/v2',
        targets: [target('127.0.0.1', { weight: 3 }), target('::1'), target('127.0.0.2', { isBackup: true })],
        check: { ...noCheck, type: 'http', path: '/health' },
      },
    }),
    site('only a path', ['docs.example.com'], { path: '/docs' }),
    site('closed', ['closed.example.com'], { upstream: null }),
    site('drained', ['drained.example.com'], {
      upstream: {
        isTls: false,
        path: '',
        targets: [target('127.0.0.1', { weight: 0 }), target('127.0.0.2')],
        check: noCheck,
      },
    }),
    site('all backups', ['backup.example.com'], {
      upstream: { isTls: false, path: '', targets: [target('127.0.0.1', { isBackup: true })], check: noCheck },
    }),
    site(
      'many names',
      Array.from({ length: 50 }, (_, index) => `${'long-label-of-a-name.'.repeat(4)}n${index}.example.com`),
    ),
  ])

describe('what is rendered', () => {
  test('is taken by nginx and by haproxy, whatever sites there are', () => {
    const [nginx, haproxy] = [renderNginx(wholeConfig()), renderHaproxy(wholeConfig())]
    expect(judgedByNginx(nginx)).toMatchObject({ code: 0 })
    expect(judgedByHaproxy(haproxy)).toMatchObject({ code: 0 })
    for (const { text } of [nginx, haproxy, renderCaddy(wholeConfig())])
      for (const part of ['shop.example.com', '/api', '127.0.0.1:8080', '[::1]:8080', 'closed.example.com'])
        expect(text).toContain(part)
  })

  test('is taken without sites, and without a certificate', () => {
    for (const config of [configOf([]), configOf([site('a', ['a.example.com'])])]) {
      expect(judgedByNginx(renderNginx(config))).toMatchObject({ code: 0 })
      expect(judgedByHaproxy(renderHaproxy(config))).toMatchObject({ code: 0 })
    }
    expect(renderNginx(configOf([site('a', ['a.example.com'])])).warnings.join()).toContain('no certificate is bound')
  })

  test('does not depend on the order of the sites', () => {
    const { sites, ...rest } = wholeConfig()
    for (const render of [renderNginx, renderHaproxy, renderCaddy])
      expect(render({ ...rest, sites: sites.toReversed() }).text).toBe(render(wholeConfig()).text)
  })

  test('names and addresses that would be commands are left out, and said to be', () => {
    const attack = 'x;\n}\nserver { listen 1; }\nbackend evil\n\tserver a "$(id)" #{env.A}'
    const upstream = (host: string, path = '') => ({ isTls: false, path, targets: [target(host)], check: noCheck })
    const attacks: readonly ConfigSite[] = [
      site('host', [`a.example.com${attack}`]),
      site('path', ['b.example.com'], { path: `/${attack}` }),
      site('certificate', ['c.example.com'], { certificate: `../../${attack}` }),
      site('target', ['d.example.com'], { upstream: upstream(`127.0.0.1${attack}`) }),
      site('prefix', ['e.example.com'], { upstream: upstream('127.0.0.1', `/${attack}`) }),
    ]
    for (const render of [renderNginx, renderHaproxy, renderCaddy]) {
      const { text, warnings } = render({ ...configOf([...attacks, site(attack, ['ok.example.com'])]), name: attack })
      expect(warnings.filter(warning => warning.includes('left out'))).toHaveLength(attacks.length)
      expect(text).toContain('ok.example.com')
      for (const sign of ['evil\n', '"$(', '#{', 'listen 1;', 'a.example.comx', 'd.example.com'])
        expect(text).not.toContain(sign)
    }
    const named = { ...configOf([site(attack, ['ok.example.com'])]), name: attack }
    expect(judgedByNginx(renderNginx(named))).toMatchObject({ code: 0 })
    expect(judgedByHaproxy(renderHaproxy(named))).toMatchObject({ code: 0 })
  })
})

/** A site whose requests go to members, two and more of them. */
const pooled = (targets: readonly ReturnType<typeof target>[], check: Partial<typeof noCheck> = {}, isTls = false) =>
  site('pool', ['pool.example.com'], { upstream: { isTls, path: '', targets, check: { ...noCheck, ...check } } })

describe('the health check of a pool', () => {
  const members = [target('127.0.0.1'), target('127.0.0.2')]
  const asked = { type: 'http', path: '/health?x=1', expect_status: 204 } as const

  test('HAProxy asks for it at each member, and looks for itself where a pool has none', () => {
    for (const [check, isTls, wanted] of [
      [asked, false, ['option httpchk GET /health?x=1', 'http-check expect status 204', 'timeout check 5s']],
      [{ type: 'https' }, false, ['check inter 10s check-ssl', 'verify none']],
      [{ type: 'https' }, true, ['check inter 10s check-ssl check-sni pool.example.com']],
      [{}, true, ['check check-sni pool.example.com']],
      [{ type: 'tcp' }, false, ['check inter 10s']],
      [{}, false, ['127.0.0.1:8080 weight 1 check\n', '127.0.0.2:8080 weight 1 check\n', 'option redispatch 1']],
    ] as const) {
      const config = renderHaproxy(configOf([pooled(members, check, isTls)]))
      for (const part of wanted) expect(config.text).toContain(part)
      expect(judgedByHaproxy(config)).toMatchObject({ code: 0 })
    }
    expect(renderHaproxy(configOf([site('one', ['one.example.com'])])).text).not.toContain(' check')
  })

  test('Caddy asks for it by http, turns to another member, and says what it cannot do', () => {
    const { text, warnings } = renderCaddy(configOf([pooled(members, asked)]))
    for (const line of [
      'health_uri /health?x=1',
      'health_status 204',
      'health_interval 10s',
      'health_timeout 5s',
      'lb_try_duration 5s',
      'fail_duration 10s',
    ])
      expect(text).toContain(`${line}\n`)
    expect(warnings.join()).not.toContain('health check')
    for (const [check, reason] of [
      [{ type: 'tcp' }, 'Caddy checks by http only'],
      [{ type: 'https' }, 'without TLS'],
      [{ type: 'http', path: '/{env.HOME}' }, 'cannot stand in a Caddyfile'],
    ] as const) {
      const without = renderCaddy(configOf([pooled(members, check)]))
      expect(without.text).not.toContain('health_')
      expect(without.warnings.join()).toContain('pool: its health check is left out, for ')
      expect(without.warnings.join()).toContain(reason)
    }
    const backup = [...members, target('127.0.0.3', { isBackup: true })]
    expect(renderCaddy(configOf([pooled(backup)])).warnings.join()).toContain('Caddy does not balance')
    expect(renderCaddy(configOf([pooled(backup.slice(1))])).warnings.join()).not.toContain('Caddy does not balance')
  })

  test('nginx has none, and says so', () => {
    const { warnings } = renderNginx(configOf([pooled(members, asked)]))
    expect(warnings).toContain('pool: health checks need NGINX Plus')
    expect(renderNginx(configOf([pooled(members)])).warnings.join()).not.toContain('NGINX Plus')
  })

  test('a path that would be a command is asked for nowhere', () => {
    for (const render of [renderHaproxy, renderCaddy]) {
      const { text, warnings } = render(configOf([pooled(members, { type: 'http', path: '/x\nbackend evil' })]))
      expect(text).not.toContain('evil')
      expect(warnings.join()).toContain('its health check asks for /')
    }
  })

  test('Caddy gets the certificate of a wildcard from nobody without a DNS challenge, and is said to need one', () => {
    const { warnings } = renderCaddy(configOf([site('wild', ['a.example.com', '*.example.com'])]))
    expect(warnings.filter(each => each.includes('no certificate'))).toEqual([
      'a.example.com: no certificate is bound, so Caddy asks for one itself',
      '*.example.com: no certificate is bound, so Caddy needs a DNS challenge to ask for one: set up acme_dns, or bind a certificate',
    ])
  })
})

describe('what runs', () => {
  /** The programs with one configuration, one after the other, and what they answer. */
  async function eachProgram(sites: readonly ConfigSite[], look: (ask: Ask, config: RenderedConfig) => Promise<void>) {
    for (const [render, judge, command] of [
      [renderNginx, judgedByNginx, ['nginx', '-g', 'daemon off;', '-p', folder, '-c', join(folder, 'nginx.conf')]],
      [renderHaproxy, judgedByHaproxy, ['haproxy', '-q', '-db', '-f', join(folder, 'haproxy.cfg')]],
    ] as const) {
      const config = render(configOf(sites))
      expect(judge(config)).toMatchObject({ code: 0 })
      const program = await startProgram(command, ports[0] ?? 0)
      try {
        await look(ask, config)
      } finally {
        await program.stop()
      }
    }
  }
  type Ask = (scheme: 'http' | 'https', host: string, path?: string) => Promise<string>
  /** What is answered: the text of an upstream, where a redirect leads to, or a status. */
  const ask: Ask = async (scheme, host, path = '/') => {
    const url = `${scheme}://127.0.0.1:${ports[scheme === 'http' ? 0 : 1]}${path}`
    const tls = { rejectUnauthorized: false }
    const answer = await fetch(url, { headers: { host }, redirect: 'manual', keepalive: false, tls })
    return answer.headers.get('location') ?? (answer.ok ? await answer.text() : `${answer.status}`)
  }
  const upstreamOf = (name: string) => Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response(name) })
  const to = ({ port }: { readonly port: number | undefined }) => ({
    upstream: { isTls: false, path: '', targets: [target('127.0.0.1', { port: port ?? 0 })], check: noCheck },
  })

  test('a site without a certificate is served with that of its host, by nginx and by haproxy', async () => {
    const [shop, api] = [upstreamOf('shop'), upstreamOf('api')]
    const sites = [
      site('shop', ['shop.example.com'], { certificate: 'c1', ...to(shop) }),
      site('api', ['shop.example.com', 'api.example.com'], { path: '/api', redirectsToHttps: true, ...to(api) }),
    ]
    try {
      await eachProgram(sites, async (answerOf, { warnings }) => {
        expect(await answerOf('https', 'shop.example.com')).toBe('shop')
        expect(await answerOf('https', 'shop.example.com', '/api')).toBe('api')
        expect(await answerOf('http', 'shop.example.com', '/api')).toBe(`https://shop.example.com:${ports[1]}/api`)
        expect(await answerOf('http', 'api.example.com', '/api')).toBe('api')
        expect(warnings.filter(warning => warning.includes('no certificate'))).toEqual([
          'api.example.com: no certificate is bound, so it is not served with TLS',
        ])
      })
    } finally {
      await Promise.all([shop.stop(true), api.stop(true)])
    }
  })

  test('a host that no site has is answered by none of them', async () => {
    const shop = upstreamOf('shop')
    try {
      await eachProgram([site('shop', ['shop.example.com'], { certificate: 'c1', ...to(shop) })], async answerOf => {
        for (const scheme of ['http', 'https'] as const) {
          expect(await answerOf(scheme, 'other.example.com')).toBe('503')
          expect(await answerOf(scheme, 'shop.example.com')).toBe('shop')
        }
      })
    } finally {
      await shop.stop(true)
    }
  })

  test('a member that does not answer is passed over, and a backup takes its place', async () => {
    const [live, dead] = [upstreamOf('live'), target('127.0.0.1', { port: freePort() })]
    const answering = target('127.0.0.1', { port: live.port ?? 0 })
    const backup = { ...pooled([dead, { ...answering, isBackup: true }]), name: 'b', hostnames: ['b.example.com'] }
    try {
      await eachProgram([pooled([dead, answering]), backup], async answerOf => {
        for (let count = 0; count < 4; count++) expect(await answerOf('http', 'pool.example.com')).toBe('live')
        await until('the backup', async () => (await answerOf('http', 'b.example.com')) === 'live')
      })
    } finally {
      await live.stop(true)
    }
  })

  test('a redirect to https takes nothing of the other sites of its host', async () => {
    const [shop, api, all] = [upstreamOf('shop'), upstreamOf('api'), upstreamOf('all')]
    const sites = [
      site('shop', ['shop.example.com'], { certificate: 'c1', redirectsToHttps: true, ...to(shop) }),
      site('api', ['shop.example.com'], { path: '/api', ...to(api) }),
      site('all', ['*.example.com'], { certificate: 'c1', redirectsToHttps: true, ...to(all) }),
      site('open', ['open.example.com'], to(all)),
    ]
    try {
      await eachProgram(sites, async answerOf => {
        expect(await answerOf('http', 'shop.example.com', '/api')).toBe('api')
        expect(await answerOf('http', 'shop.example.com', '/a?b')).toBe(`https://shop.example.com:${ports[1]}/a?b`)
        expect(await answerOf('http', 'open.example.com')).toBe('all')
        expect(await answerOf('http', 'any.example.com')).toBe(`https://any.example.com:${ports[1]}/`)
      })
    } finally {
      await Promise.all([shop.stop(true), api.stop(true), all.stop(true)])
    }
  })
})

describe('fields', () => {
  test('[RES-088] a host name may begin with a wildcard label, and with nothing else', () => {
    for (const good of ['a.example.com', '*.example.com', 'xn--bcher-kva.example'])
      expect(parseSiteName(good)).toBe(good)
    for (const bad of ['a.*.com', '*', 'a b.com', 'a;b.com', 'a\nb.com', '192.0.2.1', '', '{a}.com', 'a..b', '-a.com'])
      expect([bad, parseSiteName(bad)]).toEqual([bad, null])
  })

  test('[RES-081] the url of a proxy has a scheme, a host and a port, and neither user nor path', () => {
    expect(parseProxyUrl('socks5://[::1]:1080')).toEqual({ scheme: 'socks5', host: '::1', port: 1080, path: '' })
    for (const bad of [
      'http://a:b@host:1',
      'http://a@host:1',
      'ftp://host:1',
      'http://host:1/x',
      'http://host:1/?a',
      'x',
    ])
      expect([bad, parseProxyUrl(bad)]).toEqual([bad, null])
  })

  test('an upstream is http or https, with a path of plain signs', () => {
    expect(parseUpstreamUrl('https://App.example.com/v1/')).toEqual({
      scheme: 'https',
      host: 'app.example.com',
      port: 443,
      path: '/v1',
    })
    for (const bad of ['http://a/$x', 'http://a/;b', 'http://a/%0a', 'http://a?b', 'socks5://a:1', 'http://u:p@a'])
      expect([bad, parseUpstreamUrl(bad)]).toEqual([bad, null])
    for (const bad of [
      'http://a\n/b',
      'http://a/b\n',
      'ht\ttp://a',
      ' http://a',
      'http:\\\\a',
      'http://a/\r\nb',
      '\u0001http://a',
    ])
      expect([bad, parseUpstreamUrl(bad)]).toEqual([bad, null])
  })

  test('what is reached without the proxy is named by host, suffix or range', () => {
    const is = (host: string, addresses: string[] = []) =>
      isDirectTarget(['one.example.com', '.inner.example.com', '10.0.0.0/8'], host, addresses)
    expect([is('one.example.com'), is('a.inner.example.com'), is('x.example.com', ['10.1.2.3'])]).toEqual([
      true,
      true,
      true,
    ])
    expect([is('two.example.com'), is('inner.example.com'), is('notinner.example.com', ['192.0.2.1'])]).toEqual([
      false,
      false,
      false,
    ])
  })

  test('[RES-091] a status is expected by range or by list', () => {
    expect([
      isExpectedStatus('200-399', 200),
      isExpectedStatus('200-399', 399),
      isExpectedStatus('200-399', 400),
    ]).toEqual([true, true, false])
    expect([isExpectedStatus('401', 401), isExpectedStatus('401', 200), isExpectedStatus([200, 401], 401)]).toEqual([
      true,
      false,
      true,
    ])
  })
})
