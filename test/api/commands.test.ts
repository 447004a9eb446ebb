import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { hubKeys, loadHubConfig } from '../../apps/hub/config.ts'
import { commandOf } from '../support/executable.ts'
import { newDatabase, stopPostgres } from '../support/postgres.ts'
import { AdminListener } from './admin-listener.ts'
import { caller, type Json, until } from './hub-harness.ts'

const DAY_MS = 86_400_000
let databaseUrl = ''
let folder = ''
let hub: ReturnType<typeof Bun.spawn> | null = null
let ready: Json = null

/** The environment without anything that would configure the hub. */
function environment(): Record<string, string> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(SVC_|MONITORING_|DATABASE_URL)/.test(name))
  return Object.fromEntries(kept.map(([name, value]) => [name, value ?? '']))
}

async function run(
  words: string[],
  input = '',
  database = databaseUrl,
): Promise<{ code: number; out: string; error: string }> {
  const child = Bun.spawn([...commandOf('hub'), ...words], {
    env: { ...environment(), DATABASE_URL: database },
    stdin: new TextEncoder().encode(input),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, error] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { code: await child.exited, out, error }
}
const json = async (...words: string[]): Promise<Json> => {
  const { code, out, error } = await run([...words, '--json'])
  expect([code, error]).toEqual([0, ''])
  return JSON.parse(out)
}
const api = (token: string) => caller(ready.hub_url, token)

beforeAll(async () => {
  databaseUrl = await newDatabase()
  folder = mkdtempSync(join(tmpdir(), 'hub-commands-'))
  const file = join(folder, 'hub.yaml')
  writeFileSync(file, 'listen: 127.0.0.1:0\nops:\n  listen: 127.0.0.1:0\nlog:\n  level: info\n')
  const readyFile = join(folder, 'ready.json')
  hub = Bun.spawn(
    [...commandOf('hub'), 'serve', '--config', file, '--ready-file', readyFile, '--database-url', databaseUrl],
    {
      env: { ...environment(), MONITORING_COLLECTOR_RATE_LIMIT: '77' },
      stdout: 'pipe',
      stderr: 'inherit',
    },
  )
  ready = await until('the hub is ready', async () => {
    try {
      expect(statSync(readyFile).mode & 0o777).toBe(0o600)
      return JSON.parse(readFileSync(readyFile, 'utf8'))
    } catch {
      return null
    }
  })
})
afterAll(async () => {
  hub?.kill('SIGTERM')
  await hub?.exited
  rmSync(folder, { recursive: true, force: true })
  await stopPostgres()
})

describe('the executable', () => {
  test('[OPS-020] the ops listener answers health, readiness and metrics', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics'])
      expect((await fetch(`${ready.ops_url}${path}`)).status).toBe(200)
    expect(await (await fetch(`${ready.ops_url}/readyz`)).json()).toEqual({ ready: true, failing: [] })
    expect(await (await fetch(`${ready.ops_url}/metrics`)).text()).toContain('hub_build_info{version=')
  })

  test('[OPS-020] a database that does not answer makes it not ready, and metrics are served', async () => {
    const other = postgres(databaseUrl, { max: 1 })
    const holding = await other.reserve()
    try {
      await holding`begin`
      await holding`lock table hub_migrations, pgboss.job in access exclusive mode`
      const [readiness, metrics] = await Promise.all(
        ['/readyz', '/metrics'].map(path => fetch(`${ready.ops_url}${path}`, { signal: AbortSignal.timeout(20_000) })),
      )
      expect([readiness!.status, await readiness!.json()]).toEqual([503, { ready: false, failing: ['database'] }])
      expect(metrics!.status).toBe(200)
      expect(await metrics!.text()).toContain('hub_build_info{version=')
    } finally {
      await holding`rollback`
      holding.release()
      await other.end()
    }
    expect((await fetch(`${ready.ops_url}/readyz`)).status).toBe(200)
  })

  test('check-config says every fault with its key', async () => {
    const file = join(folder, 'bad.yaml')
    writeFileSync(
      file,
      'listen: nowhere\nrate:\n  default_per_minute: many\nsmpt: { url: hunter2 }\nsmtp.url: ftp://hunter2\n',
    )
    const { code, error } = await run(['check-config', '--config', file])
    expect(code).toBe(1)
    for (const key of ['listen', 'rate.default_per_minute', 'smpt.url', 'smtp.url']) expect(error).toContain(key)
    expect(error).not.toContain('hunter2')
    expect(await run(['check-config'])).toEqual({ code: 0, out: 'the configuration is valid\n', error: '' })
  })

  test('a database whose address is none fails the check as it refuses the start', async () => {
    const file = join(folder, 'database.yaml')
    const missing = join(folder, 'no-such-file')
    for (const [text, told] of [
      [`database: { url_file: ${missing} }\n`, `database.url_file = ${missing}: `],
      ['database: { url: "postgres://me:hunter2@127.0.0.1:99999/x" }\n', 'database.url: must be postgres://'],
      ['database: { url: "postgres://me:hunter2@one:5432,two:99999/x" }\n', 'database.url: must be postgres://'],
      ['database: { url: "postgres://me:hunter2%zz@127.0.0.1/x" }\n', 'database.url: must be postgres://'],
    ] as const) {
      writeFileSync(file, text)
      for (const command of ['check-config', 'serve']) {
        const { code, error } = await run([command, '--config', file], '', '')
        expect([code, error.includes(told), error.split('database.url').length]).toEqual([1, true, 2])
        expect(error).not.toContain('hunter2')
      }
    }
    // It may be named where the hub is started.
    writeFileSync(file, 'log: { level: info }\n')
    expect((await run(['check-config', '--config', file], '', '')).code).toBe(0)
    expect((await run(['serve', '--config', file], '', '')).error).toContain('database.url is not set')
    for (const url of ['postgres://me:a@b:5432,c:5433/x', 'postgresql:///x', 'postgres://me:%2F@[::1]:5432/x?ssl=1'])
      expect(loadHubConfig(undefined, { 'database.url': url }).faults).toEqual([])
  })

  test('a part on another host that would be called by plain http is a fault, unless listen.insecure allows it', () => {
    for (const key of ['matcher.url', 'collector.admin_url']) {
      const faultsWith = (url: string, isAllowed: boolean) =>
        loadHubConfig(undefined, { [key]: url, 'listen.insecure': isAllowed }).faults
      expect(faultsWith('http://10.0.0.5:8085', false)).toEqual([
        { key, value: 'http://10.0.0.5:8085', message: 'is plain http to another host; use https' },
      ])
      expect(faultsWith('http://10.0.0.5:8085', true)).toEqual([])
      expect(faultsWith('https://10.0.0.5:8085', false)).toEqual([])
      expect(faultsWith('http://127.0.0.1:8085', false)).toEqual([])
    }
  })

  test('values out of their domain refuse the start as they fail the check', async () => {
    const values = {
      'collector.admin_url': 'collector:8082',
      'database.url': 'mysql://hunter2@127.0.0.1/x',
      'matcher.url': 'nonsense',
      'ops.listen': '0.0.0.0:0',
      'outbound.allowed_ranges': ['10.0.0.0/8', '300.1.1.1/8'],
      public_url: 'not a url',
      'push.fcm_url': 'ftp://127.0.0.1',
    }
    const file = join(folder, 'domains.yaml')
    writeFileSync(file, JSON.stringify(values))
    for (const command of ['check-config', 'serve']) {
      // The address of the database in the environment would win.
      const { code, error } = await run([command, '--config', file, '--database-url', values['database.url']])
      expect(code).toBe(1)
      for (const key of Object.keys(values)) expect(error).toContain(key)
      expect(error).toContain('300.1.1.1/8')
      expect(error).not.toContain('10.0.0.0/8:')
      expect(error).not.toContain('hunter2')
    }
    const { faults } = loadHubConfig(undefined, { 'collector.admin_url': '', 'matcher.url': '' })
    expect(faults).toEqual([])
  })

  test('plain HTTP is served on loopback only', async () => {
    const file = join(folder, 'plain.yaml')
    writeFileSync(file, 'listen: 0.0.0.0:0\n')
    for (const command of ['check-config', 'serve']) {
      const { code, error } = await run([command, '--config', file])
      expect(code).toBe(1)
      expect(error).toContain('listen = 0.0.0.0:0: would serve plain HTTP beyond this host')
    }
  })

  test('a database that cannot be reached is said so, without its password', async () => {
    const words = ['serve', '--listen', '127.0.0.1:0', '--database-url', 'postgres://me:hunter2@127.0.0.1:1/x']
    const { code, error } = await run(words)
    expect([code, error.includes('hunter2')]).toEqual([1, false])
    expect(error).toContain('cannot open the database')
  })

  test('a database that is not UTF8 is told of, with what makes one that is', async () => {
    const server = postgres(databaseUrl, { max: 1 })
    const name = `ascii_${crypto.randomUUID().replaceAll('-', '')}`
    await server.unsafe(
      `create database ${name} encoding 'SQL_ASCII' template template0 locale_provider libc locale 'C'`,
    )
    await server.end()
    const url = new URL(databaseUrl)
    url.pathname = name
    const { code, error } = await run(['migrate', '--database-url', url.href])
    expect(code).toBe(0)
    expect(error).toContain('hub: warning: the database has the encoding SQL_ASCII')
    expect(error).toContain(`create database "${name}" encoding 'UTF8' template template0`)
    expect((await run(['migrate', '--database-url', await newDatabase()])).error).toBe('')
  })

  test('a database that is newer than the program refuses the start', async () => {
    const other = await newDatabase()
    expect((await run(['migrate', '--database-url', other])).code).toBe(0)
    const client = postgres(other, { max: 1 })
    await client`insert into hub_migrations (number, name, checksum) values (9999, 'future', 'x')`
    await client.end()
    const { code, error } = await run(['serve', '--listen', '127.0.0.1:0', '--database-url', other])
    expect(code).toBe(1)
    expect(error).toContain('newer than this program')
  })
})

describe('companies, people, tokens', () => {
  test('[HUB-026] [HUB-024] a token of a new user works, is stored hashed, and ends after 90 days', async () => {
    const company = await json(
      'company',
      'create',
      '--name',
      'Acme Corp',
      '--agent-quota',
      '5',
      '--retention-days',
      '10',
    )
    expect(company.slug).toBe('acme-corp')
    const user = await json(
      'user',
      'create',
      '--company',
      'acme-corp',
      '--email',
      'Boss@Acme.test',
      '--name',
      'Boss',
      '--admin',
    )
    expect(user.email).toBe('boss@acme.test')
    const made = await json('token', 'create', '--user', 'boss@acme.test')
    expect(made.token).toMatch(/^hub_[0-9A-Za-z]{40}$/)
    const { body } = await api(made.token)('GET', '/me')
    expect(body.data).toMatchObject({ email: 'boss@acme.test', company: { id: company.company_id } })
    const client = postgres(databaseUrl, { max: 1 })
    const [row] =
      await client`select expires_at, rate_per_minute, to_jsonb(t)::text as text from api_tokens t where id = ${made.token_id}`
    await client.end()
    expect((row?.expires_at.getTime() - Date.now()) / DAY_MS).toBeWithin(89.9, 90.01)
    expect(row?.text).not.toContain(made.token)
    expect((await api(made.token)('GET', '/monitoring/licenses/quota')).body.data.agent_quota).toBe(5)
    expect((await api(made.token)('GET', '/monitoring/settings')).body.data.metrics_retention_effective_days).toBe(10)
    await json('token', 'revoke', made.token_id)
    expect((await api(made.token)('GET', '/me')).body.reason).toBe('token_revoked')
  })

  test('[HUB-048] [HUB-021] [HUB-022] [HUB-023] a token is narrowed, limited and ended by options', async () => {
    const { company_id } = await json('company', 'create', '--name', 'Narrow')
    await json(
      'user',
      'create',
      '--company',
      company_id,
      '--email',
      'n@n.test',
      '--name',
      'N',
      '--permissions',
      'servers.view,monitoring.view',
    )
    const narrow = await json(
      'token',
      'create',
      '--user',
      'n@n.test',
      '--permissions',
      'servers.view',
      '--expires-in',
      'never',
      '--rate',
      '7',
    )
    const shown = await api(narrow.token)('GET', '/me')
    expect([shown.body.data.permissions, shown.headers.get('x-ratelimit-limit')]).toEqual([['servers.view'], '7'])
    const abroad = await json('token', 'create', '--user', 'n@n.test', '--ip-range', '203.0.113.0/24')
    expect((await api(abroad.token)('GET', '/me')).body.reason).toBe('ip_not_allowed')
    const short = await json('token', 'create', '--user', 'n@n.test', '--expires-in', '1s')
    await until(
      'the token has ended',
      async () => (await api(short.token)('GET', '/me')).body.reason === 'token_expired',
    )
    for (const words of [
      ['--expires-in', 'soon'],
      ['--rate', '0'],
      ['--ip-range', 'here'],
      ['--permissions', 'no.such'],
    ])
      expect((await run(['token', 'create', '--user', 'n@n.test', ...words])).code).toBe(1)
  })

  test('[HUB-048] the operator bounds the rate that people of a company may give a token', async () => {
    const { company_id } = await json('company', 'create', '--name', 'Bounded')
    const client = postgres(databaseUrl)
    const bound = async () =>
      (await client`select token_rate_max from companies where id = ${company_id}`)[0]?.token_rate_max
    try {
      expect((await json('company', 'limits', company_id, '--token-rate', '600')).token_rate).toBe(600)
      expect(await bound()).toBe(600)
      expect((await run(['company', 'limits', company_id, '--token-rate', '0'])).code).toBe(1)
      await json('company', 'limits', company_id, '--token-rate', 'none')
      expect(await bound()).toBeNull()
    } finally {
      await client.end()
    }
  })

  test('child companies are granted; plans are changed', async () => {
    const parent = await json('company', 'create', '--name', 'Parent')
    const child = await json('company', 'create', '--name', 'Child', '--parent', parent.company_id)
    await json('user', 'create', '--company', parent.company_id, '--email', 'p@p.test', '--name', 'P', '--admin')
    await json('company', 'grant', '--user', 'p@p.test', '--company', child.company_id)
    const { token } = await json('token', 'create', '--user', 'p@p.test')
    const inChild = await api(token)('GET', '/monitoring/settings', undefined, { 'X-Company-Id': child.company_id })
    expect(inChild.body.data).toMatchObject({ company_id: child.company_id, metrics_retention_effective_days: 7 })
    await json('company', 'plan', child.company_id, '--plan', 'pro', '--agent-quota', 'none')
    const list = (await json('company', 'list')).data
    const shown = list.find((item: Json) => item.company_id === child.company_id)
    expect(shown).toMatchObject({
      plan: 'pro',
      plan_overrides: { agent_quota: null },
      metrics_retention_days: 30,
      parent_id: parent.company_id,
    })
    await json('company', 'suspend', child.company_id)
    await json('company', 'resume', child.company_id)
    await json('company', 'purge', parent.company_id, '--yes')
    expect((await api(token)('GET', '/me')).status).toBe(401)
    expect((await run(['company', 'plan', child.company_id, '--plan', 'pro'])).code).toBe(1)
  })

  test('a password is read from standard input and never printed', async () => {
    const { company_id } = await json('company', 'create', '--name', 'Secretive')
    const words = [
      'user',
      'create',
      '--company',
      company_id,
      '--email',
      's@s.test',
      '--name',
      'S',
      '--password-stdin',
      '--json',
    ]
    for (const short of ['x\n', ''])
      expect(await run(words, short)).toMatchObject({ code: 1, error: expect.stringContaining('12 characters') })
    const { code, out } = await run(words, 'correct horse\n')
    expect([code, out.includes('horse')]).toEqual([0, false])
    const client = postgres(databaseUrl, { max: 1 })
    const [row] = await client`select password_hash from users where email = 's@s.test'`
    await client.end()
    expect(row?.password_hash).toStartWith('$argon2id$')
    expect(await Bun.password.verify('correct horse', row?.password_hash)).toBe(true)
  })

  test('a password is replaced from standard input, which ends the sessions of the person', async () => {
    const { company_id } = await json('company', 'create', '--name', 'Lost & <found>')
    const { user_id } = await json('user', 'create', '--company', company_id, '--email', 'l@l.test', '--name', 'L')
    const client = postgres(databaseUrl, { max: 1 })
    await client`insert into sessions (id, token_hash, csrf_token, user_id) values (${crypto.randomUUID()}, 'h', 'c', ${user_id})`
    expect(await run(['user', 'password', 'L@l.test'], 'short\n')).toMatchObject({ code: 1, out: '' })
    expect((await run(['user', 'password', 'L@l.test'], 'a new password\n')).code).toBe(0)
    const [row] = await client`
      select password_hash, (select count(*)::int from sessions where user_id = u.id) as sessions from users u where id = ${user_id}`
    await client.end()
    expect(row?.sessions).toBe(0)
    expect(await Bun.password.verify('a new password', row?.password_hash)).toBe(true)
    expect((await run(['user', 'password', 'nobody@l.test'], 'a new password\n')).error).toContain('there is no user')
  })

  test('lists are readable without --json, and an up-to-date database is said so', async () => {
    await json('company', 'create', '--name', 'Listed', '--agent-quota', '5')
    const { out } = await run(['company', 'list'])
    expect(out).toContain('plan_overrides={"agent_quota":5}')
    expect((await run(['migrate'])).out).toContain('up to date')
  })
})

describe('the audit log', () => {
  /** What the log has of a company, and of none, oldest first. */
  const logOf = async (companyId: string | null): Promise<Json[]> => {
    const client = postgres(databaseUrl, { max: 1 })
    const rows = await client`select action, actor_type, actor_name, subject_id, subject_name, changes from audit_log
      where company_id is not distinct from ${companyId} order by position`
    await client.end()
    return rows
  }

  test('[AUD-007] what a command does stands in the log, as what a request does', async () => {
    const { company_id: parent } = await json('company', 'create', '--name', 'Audited')
    const { company_id: child } = await json('company', 'create', '--name', 'Audited child', '--parent', parent)
    const { user_id } = await json(
      'user',
      'create',
      '--company',
      parent,
      '--email',
      'a@a.test',
      '--name',
      'A',
      '--admin',
    )
    const { token_id } = await json('token', 'create', '--user', 'a@a.test')
    await json('token', 'revoke', token_id)
    await json('token', 'revoke', token_id)
    await json('company', 'grant', '--user', 'a@a.test', '--company', child)
    await json('company', 'plan', child, '--plan', 'pro')
    await json('company', 'suspend', child)
    const { server_id } = await json('server', 'create', '--company', parent, '--name', 'logged')
    await json('server', 'delete', server_id)
    await json('server', 'delete', server_id, '--permanent')
    const ofParent = await logOf(parent)
    expect(ofParent.map(row => [row.action, row.subject_id])).toEqual([
      ['company.create', parent],
      ['company.create', child],
      ['user.create', user_id],
      ['token.create', token_id],
      ['token.revoke', token_id],
      ['server.create', server_id],
      ['server.delete', server_id],
      ['server.delete_permanent', server_id],
      ['purge.requested', server_id],
    ])
    for (const row of ofParent) expect([row.actor_type, row.actor_name]).toEqual(['system', 'hub'])
    const ofChild = await logOf(child)
    expect(ofChild.map(row => row.action)).toEqual(['company.grant', 'company.update', 'company.update'])
    expect(ofChild[1]).toMatchObject({ subject_name: 'Audited child', changes: { plan: { old: null, new: 'pro' } } })
    await json('company', 'purge', child, '--yes')
    expect((await logOf(child)).at(-1)?.action).toBe('purge.requested')
  })

  test('[AUD-007] service accounts too, without their tokens', async () => {
    const made = await json('service', 'create', '--kind', 'collector', '--name', 'logged')
    const { token } = await json('service', 'rotate', made.collector_id)
    const { admin_token } = await json('service', 'rotate-admin-token', made.collector_id)
    const log = await logOf(null)
    const actions = log.filter(row => row.subject_id === made.collector_id).map(row => row.action)
    expect(actions).toEqual(['collector.create', 'collector.update'])
    const ofToken = log.filter(row => row.subject_name === 'logged' && row.action.startsWith('token.'))
    expect(ofToken.map(row => row.action).sort()).toEqual(['token.create', 'token.create', 'token.revoke'])
    for (const secret of [made.token, made.admin_token, token, admin_token])
      expect(JSON.stringify(log)).not.toContain(secret)
  })
})

describe('service accounts and servers', () => {
  test('[HUB-051] [HUB-057] [ADM-007] [OPS-019] [SEC-007] [SEC-008] a collector gets its token and admin token once; both can be replaced; its limit is of the environment', async () => {
    const made = await json('service', 'create', '--kind', 'collector', '--name', 'c1')
    const feed = (token: string) => api(token)('GET', '/monitoring/collector/rules')
    expect((await feed(made.token)).status).toBe(200)
    expect((await feed(made.token)).headers.get('x-ratelimit-limit')).toBe('77')
    expect(hubKeys['rate.collector_per_minute'].default).toBe(1200)
    expect(made.admin_token).toMatch(/^adm_/)
    const client = postgres(databaseUrl, { max: 1 })
    const [row] =
      await client`select to_jsonb(c)::text as text from monitoring_collectors c where id = ${made.collector_id}`
    const [token] =
      await client`select expires_at from api_tokens t join monitoring_collectors c on c.service_user_id = t.user_id where c.id = ${made.collector_id}`
    await client.end()
    expect(row?.text).not.toContain(made.admin_token)
    expect(token?.expires_at).toBeNull()
    const rotated = await json('service', 'rotate', made.collector_id)
    expect([(await feed(made.token)).status, (await feed(rotated.token)).status]).toEqual([401, 200])
    expect((await json('service', 'rotate-admin-token', made.collector_id)).admin_token).not.toBe(made.admin_token)
    const matcher = await json('service', 'create', '--kind', 'matcher', '--name', 'm1', '--ip-range', '127.0.0.0/8')
    expect((await feed(matcher.token)).status).toBe(403)
    const hosts = async (token: string) => (await api(token)('GET', '/security/matcher/scan-hosts')).status
    expect(await hosts(matcher.token)).toBe(200)
    const next = await json('service', 'rotate', matcher.matcher_id)
    expect([await hosts(matcher.token), await hosts(next.token)]).toEqual([401, 200])
    const elsewhere = await json(
      'service',
      'create',
      '--kind',
      'matcher',
      '--name',
      'm2',
      '--ip-range',
      '203.0.113.0/24',
    )
    expect(await hosts(elsewhere.token)).toBe(403)
    expect((await run(['service', 'create', '--kind', 'other', '--name', 'x'])).code).toBe(1)
  })

  test('what there is none of is said by name, and a statement of the database never', async () => {
    const id = '00000000-0000-4000-8000-000000000000'
    for (const unknown of ['nope', id]) {
      const answers = [await run(['service', 'rotate', unknown]), await run(['service', 'rotate-admin-token', unknown])]
      expect(answers.map(({ code, out, error }) => [code, out, error])).toEqual([
        [1, '', `hub: there is no collector or matcher ${unknown}\n`],
        [1, '', `hub: there is no collector ${unknown}\n`],
      ])
    }
    const other = await newDatabase()
    expect((await run(['migrate', '--database-url', other])).code).toBe(0)
    const client = postgres(other, { max: 1 })
    const failed = async () => (await run(['company', 'list', '--database-url', other])).error
    await client`alter table companies rename to companies_elsewhere`
    expect(await failed()).toBe('hub: a statement of the database failed (42P01)\n')
    await client`alter table roles rename to roles_elsewhere`
    expect(await failed()).toBe('hub: cannot open the database: a statement of the database failed (42P01)\n')
    await client.end()
  })

  test('[ADM-007] the admin token can be one that the collector has already, and is not printed then', async () => {
    const admin = new AdminListener()
    try {
      const words = ['service', 'create', '--kind', 'collector', '--name', 'c2', '--admin-url', admin.url]
      const { collector_id } = await json(...words)
      const next = 'given-to-the-workers-before'
      const rotate = ['service', 'rotate-admin-token', collector_id, '--token-stdin', '--json']
      for (const bad of ['', 'short', 'of two words and long enough'])
        expect((await run(rotate, bad)).error).toStartWith('hub: the token on standard input must have')
      const { code, out, error } = await run(rotate, `${next}\n`)
      expect([code, JSON.parse(out), error]).toEqual([0, { collector_id }, ''])
      const { company_id } = await json('company', 'create', '--name', 'Rotating')
      await json('user', 'create', '--company', company_id, '--email', 'a@r.test', '--name', 'A', '--super-admin')
      const { token } = await json('token', 'create', '--user', 'a@r.test')
      await api(token)('GET', `/monitoring/collectors/${collector_id}/status`)
      expect([...new Set(admin.asked.map(asked => asked.token))]).toEqual([next])
    } finally {
      await admin.stop()
    }
  })

  test('what the API refuses no command takes', async () => {
    const { company_id } = await json('company', 'create', '--name', 'Refusing')
    await json('user', 'create', '--company', company_id, '--email', 'r@r.test', '--name', 'R', '--admin')
    const of = ['--company', company_id]
    const collector = ['service', 'create', '--kind', 'collector', '--name', 'c']
    const refused: [string[], string][] = [
      [['server', 'create', ...of, '--name', 's', '--ip', '999.1.1.1'], 'ip_address: '],
      [['server', 'create', ...of, '--name', '   '], 'name: '],
      [['server', 'create', ...of, '--name', 'x'.repeat(400)], 'name: '],
      [['company', 'create', '--name', ''], 'name: '],
      [['user', 'create', ...of, '--email', 's@r.test', '--name', ' '], 'name: '],
      [['token', 'create', '--user', 'r@r.test', '--name', ''], 'name: '],
      [['service', 'create', '--kind', 'matcher', '--name', ''], 'name: '],
      [[...collector, '--base-url', 'x'], 'base_url: '],
      [[...collector, '--admin-url', 'ftp://x'], 'admin_url: '],
    ]
    for (const [words, field] of refused) {
      const { code, out, error } = await run(words)
      expect([words, code, out, error]).toEqual([words, 1, '', expect.stringContaining(`hub: ${field}`)])
    }
  })

  test('servers are created and deleted, softly and for good', async () => {
    const { company_id } = await json('company', 'create', '--name', 'Servers')
    await json('user', 'create', '--company', company_id, '--email', 'm@m.test', '--name', 'M', '--admin')
    const nobody = await run(['user', 'create', '--company', company_id, '--email', 'nobody', '--name', 'N', '--admin'])
    expect([nobody.code, nobody.error.includes('email')]).toEqual([1, true])
    const { token } = await json('token', 'create', '--user', 'm@m.test')
    const words = [
      'server',
      'create',
      '--company',
      company_id,
      '--name',
      'web1',
      '--hostname',
      'web1.example',
      '--ip',
      '10.0.0.1',
      '--tag',
      'a',
      '--tag',
      'b',
    ]
    const { server_id } = await json(...words)
    const shown = (await api(token)('GET', `/servers/${server_id}`)).body.data
    expect(shown).toMatchObject({ name: 'web1', hostname: 'web1.example', ip_address: '10.0.0.1', tags: ['a', 'b'] })
    expect((await run(words)).error).toContain('already taken')
    await json('server', 'delete', server_id)
    expect((await api(token)('GET', '/servers/trashed')).body.data).toHaveLength(1)
    await json('server', 'delete', server_id, '--permanent')
    expect((await api(token)('GET', '/servers/trashed')).body.data).toEqual([])
    expect((await run(['server', 'delete', server_id])).code).toBe(1)
  })
})
