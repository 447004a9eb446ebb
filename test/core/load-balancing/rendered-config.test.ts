// Configurations of load balancers, judged by the programs that read them, and the values that may not become text.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../apps/standalone/ports.ts'
import type {
  ConfigIntent,
  ConfigMember,
  ConfigPool,
  ConfigRule,
  ConfigText,
} from '../../../core/load-balancing/config-text.ts'
import { haproxyConfig } from '../../../core/load-balancing/haproxy-config.ts'
import { nginxConfig } from '../../../core/load-balancing/nginx-config.ts'
import { runProgram } from '../../support/foreign-program.ts'

setDefaultTimeout(60_000)
let folder = ''
let port = 0

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'balanced-'))
  port = freePort()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const member = (address: string, more: Partial<ConfigMember> = {}): ConfigMember => ({
  name: address,
  address,
  port: 8080,
  weight: 1,
  backup: false,
  max_connections: null,
  admin_state: 'enabled',
  ...more,
})
const check = { type: 'none', path: '/', expect_status: 200, interval_seconds: 10, timeout_seconds: 5 } as const
const pool = (name: string, more: Partial<ConfigPool> = {}): ConfigPool => ({
  id: name,
  name,
  protocol: 'http',
  algorithm: 'round_robin',
  persistence: 'none',
  health_check: check,
  members: [member('127.0.0.1')],
  ...more,
})
const rule = (more: Partial<ConfigRule>): ConfigRule => ({ host: null, path_prefix: null, pool_id: 'api', ...more })
const intentOf = (rules: readonly ConfigRule[], pools = [pool('web'), pool('api')]): ConfigIntent => ({
  pools,
  virtualServers: [
    { name: 'www', address: '127.0.0.1', port, protocol: 'http', pool_id: 'web', rules, certificates: [] },
  ],
})

function judgedByNginx({ text }: ConfigText) {
  const file = join(folder, 'nginx.conf')
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(each => `${each}_temp_path ${folder}/t;`)
  const inHttp = text.replace('http {', `http { access_log off; ${paths.join(' ')}`)
  writeFileSync(file, `pid ${folder}/pid; error_log stderr; ${inHttp}`)
  return runProgram(['nginx', '-t', '-q', '-p', folder, '-c', file])
}
function judgedByHaproxy({ text }: ConfigText) {
  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, text)
  return runProgram(['haproxy', '-c', '-q', '-f', file])
}
function expectTaken(intent: ConfigIntent) {
  expect(judgedByNginx(nginxConfig(intent))).toMatchObject({ code: 0 })
  expect(judgedByHaproxy(haproxyConfig(intent))).toMatchObject({ code: 0 })
}

describe('[RES-079] [RES-025] what is rendered', () => {
  test('is taken for every method, with backups and without', () => {
    const members = [member('127.0.0.1'), member('127.0.0.2', { backup: true })]
    for (const algorithm of ['round_robin', 'least_connections', 'source_hash', 'random'] as const)
      for (const persistence of ['none', 'source_ip', 'cookie'] as const)
        for (const own of [members, members.slice(1), []])
          expectTaken(intentOf([], [pool('web', { algorithm, persistence, members: own })]))
    const { text, warnings } = nginxConfig(intentOf([], [pool('web', { algorithm: 'random', members })]))
    expect(text).not.toContain('backup')
    expect(warnings).toEqual(['web: random takes no backups'])
  })

  test('is taken for hosts as long as a name may be', () => {
    const labels = `${`${'a'.repeat(63)}.`.repeat(3)}${'b'.repeat(49)}.example.com`
    const hosts = [`${'h'.repeat(60)}.example.com`, `*.${labels}`, labels]
    expectTaken(intentOf(hosts.map(host => rule({ host }))))
    expect(nginxConfig(intentOf([rule({ host: 'short.example.com' })])).text).not.toContain('bucket')
  })

  test('names hosts of rules as requests have them, although they are stored otherwise', () => {
    const intent = intentOf([rule({ host: 'Bücher.example.com.' }), rule({ host: '*.Example.net.' })])
    expectTaken(intent)
    for (const { text } of [nginxConfig(intent), haproxyConfig(intent)])
      expect(text).toMatch(/ xn--bcher-kva\.example\.com[; ][\s\S]*\.example\.net[; ]/)
  })

  test('HAProxy starts while a member does not resolve, and of NGINX it is said that it does not', () => {
    const intent = intentOf([], [pool('web', { members: [member('gone.invalid'), member('127.0.0.1')] })])
    expect(judgedByHaproxy(haproxyConfig(intent))).toMatchObject({ code: 0 })
    expect(haproxyConfig(intent).warnings).toEqual([])
    expect(nginxConfig(intent).warnings).toEqual(['web: NGINX does not start while gone.invalid does not resolve'])
  })

  test('has nothing of a stored path or host that would be a command', () => {
    const paths = ['/a;b', '/{x}', '/a#b', '/$x', '/status/{stub_status;}#', '/a" { return 200; } #', '/a\n  bind :1']
    const hosts = ['a.example.com; listen 1', 'a b', '', '*', '*.*.example.com', '192.0.2.1']
    const odd = [...paths.map(path_prefix => rule({ path_prefix })), ...hosts.map(host => rule({ host }))]
    const intent = intentOf([...odd, rule({ path_prefix: '/good~v1/@x', host: 'a.example.com' })])
    expectTaken(intent)
    for (const { text, warnings } of [nginxConfig(intent), haproxyConfig(intent)]) {
      expect(warnings.filter(warning => /^www: rule \d+ is left out/.test(warning))).toHaveLength(odd.length)
      expect(text).toContain('/good~v1/@x')
      expect(text).not.toMatch(/stub_status|bind :1\b|listen 1\b|[#$]|return 200/)
    }
  })

  test('has nothing of a stored address or health check that would be a command', () => {
    const intent = intentOf(
      [],
      [
        pool('web', {
          health_check: { ...check, type: 'http', path: '/up#x' },
          members: [member('127.0.0.1'), member('127.0.0.1 disabled\n  bind :1; }')],
        }),
      ],
    )
    expectTaken(intent)
    const { text, warnings } = haproxyConfig(intent)
    expect(text).toContain('option httpchk GET /\n')
    expect(text).not.toContain('bind :1')
    expect(warnings.map(warning => warning.split(':')[1])).toEqual([
      ' its health check asks for /, for its path cannot stand here',
      ' 127.0.0.1 disabled\n  bind ',
    ])
    expect(nginxConfig(intent).text).not.toContain('bind')
  })
})
