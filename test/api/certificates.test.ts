// Certificates over HTTP, with certificates that openssl made and real TLS servers that show them.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { certificateKind } from '../../apps/hub/certificates/certificate.ts'
import { judgeDueCertificates, lookAtDuePlaces } from '../../apps/hub/certificates/certificate-watch.ts'
import { certificateActs } from '../../apps/hub/certificates/look-at-deployments.ts'
import { hubEditor } from '../../apps/hub/resources/editor.ts'
import { findRow } from '../../apps/hub/resources/resource-rows.ts'
import { tellConditions } from '../../apps/hub/resources/tell-conditions.ts'
import { CertificateMaker, type Issued, openssl } from '../support/certificates.ts'
import { TlsServer } from '../support/tls-server.ts'
import { type Answer, type Json, type Tenant, TestHub, until } from './hub-harness.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let tenant: Tenant
let folder = ''
let maker: CertificateMaker
let root: Issued
let between: Issued
let count = 0
const servers: TlsServer[] = []

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'certificates-'))
  maker = new CertificateMaker(folder)
  root = maker.make({ subject: '/CN=Root', isAuthority: true, days: 3650 })
  between = maker.make({ subject: '/CN=Between', isAuthority: true, issuer: root, days: 400 })
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
  // What the clock does, tests do.
  for (const task of ['certificate_places', 'certificate_dates', 'conditions']) await hub.holdTask(task)
  tenant = await hub.tenant()
  const trusted = await tenant.call('PUT', '/system/settings/certificates.extra_roots?level=company', {
    value: root.pem,
  })
  expect(trusted.status).toBe(200)
})
afterAll(async () => {
  for (const server of servers) await server.stop()
  await hub.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function trustRoot(by: Tenant): Promise<void> {
  const path = '/system/settings/certificates.extra_roots?level=company'
  expect((await by.call('PUT', path, { value: root.pem })).status).toBe(200)
}
const call = (method: string, path: string, body?: Json): Promise<Answer> => tenant.call(method, path, body)
const freshName = (): string => `shop-${count++}.example.com`
const issue = (name: string, days = 90): Issued =>
  maker.make({ subject: `/CN=${name}`, sans: `DNS:${name}`, issuer: between, days })
const whole = (leaf: Issued): string => leaf.pem + between.pem
const shown = (leaf: Issued) => ({ cert: whole(leaf), key: leaf.key })

async function serve(leaf: Issued | { cert: string; key: string }): Promise<TlsServer> {
  const server = await TlsServer.start('cert' in leaf ? leaf : shown(leaf))
  servers.push(server)
  return server
}
async function made(body: Json): Promise<Json> {
  const answer = await call('POST', '/certificates', body)
  if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
const upload = (body: Json) => call('POST', '/certificates/upload', body)
const show = async ({ id }: Json): Promise<Json> => (await call('GET', `/certificates/${id}`)).body.data
const codesOf = async (of: Json): Promise<string[]> => (await show(of)).conditions.map((each: Json) => each.code)
const deploymentsOf = async ({ id }: Json): Promise<Json[]> =>
  (await call('GET', `/certificates/${id}/deployments`)).body.data
const errorsOf = async (answer: Promise<Answer>): Promise<string[]> => {
  const { status, body } = await answer
  expect(status).toBe(422)
  return Object.keys(body.errors)
}
async function ended(of: Json, runId: string, action: string): Promise<Json> {
  return until(`the run of ${action}`, async () => {
    const run = (await show(of)).last_runs.find((each: Json) => each.action === action)
    return run?.id === runId && run.finished_at !== null && run
  })
}
async function check(of: Json): Promise<Json> {
  const answer = await call('POST', `/certificates/${of.id}/check`, {})
  expect(answer.status).toBe(202)
  return ended(of, answer.body.data.id, 'check')
}
/** Of a certificate that is looked at where it is served, once its first look is over. */
async function watched(server: TlsServer, more: Json = {}): Promise<Json> {
  const of = await made({ name: freshName(), endpoint: { host: '127.0.0.1', port: server.port }, ...more })
  await until('the first look', async () => (await show(of)).last_run?.finished_at != null)
  return show(of)
}

describe('upload', () => {
  test('[RES-097] [RES-098] what is no chain of certificates is refused, a key above all', async () => {
    const leaf = issue(freshName())
    for (const pem of [
      'hello',
      leaf.pem.repeat(11),
      `${leaf.pem}-----BEGIN CERTIFICATE-----\nMIIB\n`,
      leaf.pem + leaf.key,
    ]) {
      expect(await errorsOf(upload({ name: 'x', pem }))).toEqual(['pem'])
      expect(await errorsOf(call('POST', '/certificates', { name: 'x', pem }))).toEqual(['pem'])
    }
    expect(await errorsOf(call('POST', '/certificates', { name: 'x' }))).toEqual(['pem'])
    expect(await kept(leaf.key)).toEqual([])
  })

  /** The tables of the whole database in which a part of a key is kept. */
  async function kept(key: string): Promise<string[]> {
    const part = key.split('\n')[1] ?? ''
    expect(part.length).toBeGreaterThan(30)
    const { client } = hub.hub.database
    const tables = await client<{ name: string }[]>`
      select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`
    const found = tables.map(
      ({ name }) => `select '${name}' as name where exists (select 1 from ${name} t where position($1 in t::text) > 0)`,
    )
    const rows = await client.unsafe<{ name: string }[]>(found.join(' union all '), [part])
    return rows.map(({ name }) => name)
  }

  test('[check 16.14] [RES-099] [RES-114] a key that fits is dropped, another refused, and the chain never has one', async () => {
    const leaf = issue(freshName())
    const other = issue(freshName())
    const pem = whole(leaf)
    expect(await errorsOf(upload({ pem, private_key: other.key }))).toEqual(['private_key'])
    expect(await errorsOf(upload({ pem, private_key: 'x' }))).toEqual(['private_key'])
    const answer = await upload({ pem, private_key: leaf.key })
    expect([answer.status, answer.body.data.key_matches]).toEqual([201, true])
    expect((await upload({ pem })).body.data.key_matches).toBeNull()
    for (const key of [leaf.key, other.key]) expect(await kept(key)).toEqual([])
    const file = async (format: string) =>
      fetch(`${hub.url}/api/v1/certificates/${answer.body.data.id}/chain?format=${format}`, {
        headers: { Authorization: `Bearer ${tenant.token}` },
      })
    const chain = await file('pem')
    expect(chain.headers.get('content-type')).toBe('application/x-pem-file')
    expect((await chain.text()).trim().split('\n')).toEqual(pem.trim().split('\n'))
    const der = Buffer.from(await (await file('der')).arrayBuffer())
    expect(der.toString('base64')).toBe(leaf.pem.replace(/-----[^-]+-----|\s/g, ''))
  })

  test('[RES-100] [RES-101] a chain in wrong order is kept in order, with what openssl shows of its leaf', async () => {
    const name = freshName()
    const leaf = issue(name)
    const { data } = (await upload({ name, pem: root.pem + leaf.pem + between.pem })).body
    const odd = maker.make({ subject: '/CN=x', sans: `DNS:o.${name},DNS:no host,DNS:O.${name}`, issuer: between })
    const { hostnames, id } = (await upload({ pem: whole(odd) })).body.data
    expect(hostnames).toEqual([`o.${name}`])
    expect((await call('PATCH', `/certificates/${id}`, { hostnames })).status).toBe(200)
    expect(data.chain).toMatchObject({ complete: true, trusted: true, order_fixed: true, problems: [] })
    expect(data.chain.expires_first.subject).toBe('CN=Between')
    const said = (option: string): string =>
      openssl('x509', '-in', leaf.certFile, '-noout', option, '-sha256')
        .trim()
        .replace(/^[^=]+= ?/, '')
    expect(data).toMatchObject({
      serial: said('-serial'),
      fingerprint_sha256: said('-fingerprint').replaceAll(':', '').toLowerCase(),
      not_after: new Date(said('-enddate')).toISOString(),
      not_before: new Date(said('-startdate')).toISOString(),
      subject: `CN=${name}`,
      issuer: 'CN=Between',
      sans: [name],
      hostnames: [name],
      key_type: 'ec-p256',
      source: 'uploaded',
      state: 'valid',
      self_signed: false,
      conditions: [],
    })
  })

  test('[RES-102] a leaf alone is told of, until its chain is whole', async () => {
    const leaf = issue(freshName())
    const { data } = (await upload({ pem: leaf.pem })).body
    expect([data.chain.complete, data.health]).toEqual([false, 'warning'])
    expect(await codesOf(data)).toEqual(['chain_incomplete'])
    const again = await upload({ pem: whole(leaf) })
    expect([again.status, again.body.data.versions.length, again.body.data.health]).toEqual([200, 1, 'ok'])
  })

  test('[RES-109] the same names are a new version of what stands, and the same leaf is none', async () => {
    const name = freshName()
    const first = (await upload({ name, pem: whole(issue(name, 60)) })).body.data
    const newer = issue(name, 90)
    const second = await upload({ pem: whole(newer) })
    expect([second.status, second.body.data.id]).toEqual([200, first.id])
    expect(second.body.data.versions.map((each: Json) => [each.number, each.source])).toEqual([
      [2, 'uploaded'],
      [1, 'uploaded'],
    ])
    const same = await upload({ pem: whole(newer) })
    expect([same.status, same.body.data.version]).toEqual([200, second.body.data.version])
    expect(same.body.data.versions).toHaveLength(2)
    const other = await upload({ pem: whole(issue(freshName())), certificate_id: first.id })
    expect(other.body.data).toMatchObject({ id: first.id, hostname_problems: [name], health: 'warning' })
    expect(await errorsOf(upload({ pem: whole(newer), certificate_id: crypto.randomUUID() }))).toEqual([
      'certificate_id',
    ])
    expect(await errorsOf(call('PATCH', `/certificates/${first.id}`, { pem: whole(newer) }))).toEqual(['pem'])
    const sentBack = await call('PATCH', `/certificates/${first.id}`, other.body.data)
    expect([sentBack.status, sentBack.body.data.version]).toEqual([200, other.body.data.version])
  })

  test('[RES-109] of two with the same names the upload must say which one', async () => {
    const name = freshName()
    const pem = whole(issue(name))
    for (const purpose of ['a', 'b']) await made({ name: `${name} ${purpose}`, pem })
    expect(await errorsOf(upload({ pem: whole(issue(name)) }))).toEqual(['certificate_id'])
  })
})

describe('the clock', () => {
  test('[RES-104] [RES-105] [RES-106] the nearer the end the worse, and a newer version ends it at once', async () => {
    const severities = async (of: Json) =>
      (await show(of)).conditions.map((each: Json) => `${each.code} ${each.severity}`)
    for (const [days, state, expected] of [
      [90, 'valid', []],
      [20, 'expiring', ['expiring warning']],
      [5, 'expiring', ['expiring critical']],
      [0, 'expired', ['expired critical']],
    ] as const) {
      const name = freshName()
      const of = (await upload({ name, pem: whole(issue(name, days)) })).body.data
      await until('the certificate has ended', async () => days > 0 || (await show(of)).state === 'expired')
      await hub.hub.database.db.execute(sql`update certificates set judge_at = now() where id = ${of.id}`)
      await judgeDueCertificates(hub.hub)
      expect([days, (await show(of)).state, await severities(of)]).toEqual([days, state, [...expected]])
      const listed = await call('GET', `/certificates?state=${state}&hostname=${name}`)
      expect(listed.body.data.map((row: Json) => row.id)).toEqual([of.id])
      if (days > 0) await until('a second has passed', async () => issuedLater(of))
      const renewed = await upload({ pem: whole(issue(name, 200)) })
      expect([renewed.body.data.id, await severities(of)]).toEqual([of.id, []])
    }
  })

  /** Certificates begin at whole seconds: a newer one begins in another. */
  const issuedLater = (of: Json): boolean => Date.now() >= Date.parse(of.not_before) + 1000

  test('[RES-107] what renews itself is told of in its last week only', async () => {
    const name = freshName()
    const of = await made({ name, pem: whole(issue(name, 10)), auto_renewed: true })
    expect(await codesOf(of)).toEqual([])
    await call('PATCH', `/certificates/${of.id}`, { auto_renewed: false })
    expect(await codesOf(of)).toEqual(['expiring'])
    const near = freshName()
    expect(await codesOf(await made({ name: near, pem: whole(issue(near, 6)), auto_renewed: true }))).toEqual([
      'expiring',
    ])
  })

  test('[RES-105] [RES-107] each stage of a version is told once, and the next one when it comes', async () => {
    const apart = await hub.tenant()
    await trustRoot(apart)
    const told = async (): Promise<string[]> => {
      await tellConditions(hub.hub)
      const { data } = (await apart.call('GET', '/notifications')).body
      return data.map((each: Json) => each.title.replace(/ \S+:/, '')).reverse()
    }
    const name = freshName()
    const auto = { name: `auto ${name}`, pem: whole(issue(name, 10)), auto_renewed: true }
    expect((await apart.call('POST', '/certificates', auto)).status).toBe(201)
    expect(await told()).toEqual([])
    const of = (await apart.call('POST', '/certificates', { name, pem: whole(issue(name, 20)) })).body.data
    const warning = '[warning] certificate expiring'
    expect(await told()).toEqual([warning])
    await apart.call('PATCH', `/certificates/${of.id}`, { description: 'looked at again' })
    expect(await told()).toEqual([warning])
    // Stages are set so that the second one is today's.
    await apart.call('PATCH', `/certificates/${of.id}`, { warn_days: [30, 25] })
    expect(await told()).toEqual([warning, warning])
    const renewed = await apart.call('POST', '/certificates/upload', {
      pem: whole(issue(name, 200)),
      certificate_id: of.id,
    })
    expect(renewed.body.data.conditions).toEqual([])
    expect((await told()).slice(2)).toEqual(['Resolved: certificate expiring'])
  })

  test('an intermediate that ends before the leaf is told of', async () => {
    const soon = maker.make({ subject: '/CN=Soon', isAuthority: true, issuer: root, days: 20 })
    const name = freshName()
    const leaf = maker.make({ subject: `/CN=${name}`, sans: `DNS:${name}`, issuer: soon, days: 90 })
    expect(await codesOf(await made({ name, pem: leaf.pem + soon.pem }))).toEqual(['chain_expiring'])
  })

  test('[RES-103] [RES-116] what ends soon is found, and lists are sorted by the days that are left', async () => {
    const apart = await hub.tenant()
    const days = [20, 50, 5]
    for (const left of days) {
      const name = freshName()
      await apart.call('POST', '/certificates', { name, pem: whole(issue(name, left)) })
    }
    const listed = async (query: string) =>
      (await apart.call('GET', `/certificates?${query}`)).body.data.map((row: Json) => row.days_left)
    expect(await listed('sort=days_left')).toEqual([4, 19, 49])
    expect(await listed('sort=-days_left')).toEqual([49, 19, 4])
    const inMonth = new Date(Date.now() + 30 * 86_400_000).toISOString()
    expect(await listed(`sort=not_after&expires_before=${inMonth}`)).toEqual([4, 19])
    expect(await listed(`expires_after=${inMonth}`)).toEqual([49])
  })

  test('[RES-108] a host is found at its wildcard, one label deep', async () => {
    const name = freshName()
    const wild = maker.make({ subject: '/CN=wild', sans: `DNS:*.${name}`, issuer: between })
    const of = await made({ name, pem: whole(wild) })
    const found = async (host: string) =>
      (await call('GET', `/certificates?hostname=${host}`)).body.data.map((row: Json) => row.id)
    expect(await found(`A.${name}`)).toEqual([of.id])
    for (const host of [`a.b.${name}`, name]) expect(await found(host)).toEqual([])
  })
})

describe('where it is served', () => {
  test('[RES-110] an endpoint is looked at, and a newer leaf with its names is its next version', async () => {
    const name = freshName()
    const server = await serve(issue(name, 5))
    const first = await made({ name, endpoint: { host: '127.0.0.1', port: server.port, sni: name } })
    expect(first).toMatchObject({ source: 'observed', fingerprint_sha256: null, state: 'unknown', health: 'unknown' })
    await until('the first look', async () => (await show(first)).last_run?.finished_at != null)
    const of = await show(first)
    expect(of).toMatchObject({ subject: `CN=${name}`, days_left: 4, hostnames: [name], health: 'critical' })
    await until('the server was asked for its name', async () => server.askedNames.includes(name))
    await until('a second has passed', async () => Date.now() >= Date.parse(of.not_before) + 1000)
    await server.show(shown(issue(name, 200)))
    await check(of)
    const after = await show(of)
    expect([after.days_left, after.versions.length, after.conditions, after.health]).toEqual([199, 2, [], 'ok'])
    const [place] = await deploymentsOf(of)
    expect(place).toMatchObject({
      kind: 'endpoint',
      made_by: 'hand',
      state: 'ok',
      port: server.port,
      observed: { fingerprint: after.fingerprint_sha256, chain_complete: true, tls_version: 'TLSv1.3' },
    })
  })

  test('[RES-111] another certificate there is told of with host and port, when it is seen twice', async () => {
    const name = freshName()
    const server = await serve(issue(name))
    const of = await watched(server)
    await server.show(shown(issue(freshName())))
    await check(of)
    expect((await deploymentsOf(of))[0]?.state).toBe('other')
    expect(await codesOf(of)).toEqual([])
    await check(of)
    const [told] = (await show(of)).conditions
    expect(told).toMatchObject({ code: 'other_certificate_served', severity: 'warning' })
    expect(told.message).toContain(`127.0.0.1:${server.port}`)
    const found = await call('GET', `/certificates?endpoint=127.0.0.1:${server.port}`)
    expect(found.body.data.map((row: Json) => row.id)).toEqual([of.id])
  })

  test('[check 16.16] [RES-112] a renewal is over when the last deployment serves the new leaf', async () => {
    const name = freshName()
    const old = issue(name, 20)
    const [one, two] = [await serve(old), await serve(old)]
    const of = await watched(one)
    const added = await call('POST', `/certificates/${of.id}/deployments`, {
      kind: 'endpoint',
      host: '127.0.0.1',
      port: two.port,
    })
    expect(added.status).toBe(201)
    await check(of)
    const asked = await call('POST', `/certificates/${of.id}/renew`, { note: 'before the holidays' })
    expect(asked.status).toBe(202)
    await ended(of, asked.body.data.id, 'renew')
    const [rung] = (await call('GET', '/notifications')).body.data
    expect(rung).toMatchObject({ type: 'certificate.renewal_requested', title: `Renew the certificate ${of.name}` })
    expect(rung.body).toContain('before the holidays')
    expect((await call('POST', `/certificates/${of.id}/renew`, {})).body.data.id).toBe(asked.body.data.id)
    const renewal = async () => (await show(of)).renewal
    expect(await renewal()).toMatchObject({ state: 'requested', new_fingerprint: null, note: 'before the holidays' })
    await until('a second has passed', async () => Date.now() >= Date.parse(of.not_before) + 1000)
    const renewed = issue(name, 200)
    await one.show(shown(renewed))
    await check(of)
    const issued = await renewal()
    expect([issued.state, issued.remaining_deployments]).toEqual(['issued', [`127.0.0.1:${two.port}`]])
    await check(of)
    expect(await codesOf(of)).toEqual(['old_certificate_served'])
    await two.show(shown(renewed))
    await check(of)
    expect(await renewal()).toMatchObject({ state: 'deployed', remaining_deployments: [] })
    expect(await codesOf(of)).toEqual([])
  })

  test('[R-034] who was told of a renewal is not told again by a run that is taken up', async () => {
    const of = await made({ name: freshName(), pem: whole(issue(freshName())) })
    const asked = await call('POST', `/certificates/${of.id}/renew`, {})
    expect((await ended(of, asked.body.data.id, 'renew')).result).toEqual({ told: 1 })
    // As a hub leaves it that dies after it has told people.
    const row = await findRow(certificateKind, hub.hub.database.db, tenant.companyId, of.id)
    expect(await certificateActs.renew.work({ editor: hubEditor(hub.hub, tenant.companyId), row })).toEqual({ told: 0 })
    const rung = (await call('GET', '/notifications')).body.data
    expect(rung.filter((each: Json) => each.title.endsWith(of.name))).toHaveLength(1)
  })

  test('[RES-104] [RES-113] what was revoked and is served still is told of at once', async () => {
    const of = await watched(await serve(issue(freshName(), 5)))
    const revoked = await call('POST', `/certificates/${of.id}/revoke`, { reason: 'key_compromise', note: 'leaked' })
    expect([revoked.status, revoked.body.data.state]).toEqual([200, 'revoked'])
    expect(revoked.body.data.conditions.map((each: Json) => [each.code, each.severity])).toEqual([
      ['revoked_in_use', 'critical'],
    ])
    const again = await call('POST', `/certificates/${of.id}/revoke`, { reason: 'other' })
    expect([again.status, again.body.data.version]).toEqual([200, revoked.body.data.version])
  })

  test('[RES-115] a place that cannot be reached is a result, and told of at the second time', async () => {
    const server = await serve(issue(freshName()))
    const of = await watched(server)
    servers.splice(servers.indexOf(server), 1)
    await server.stop()
    const run = await check(of)
    expect([run.state, run.result.deployments[0].state, run.result.deployments[0].error]).toEqual([
      'done',
      'unreachable',
      'refused',
    ])
    expect(await codesOf(of)).toEqual([])
    await check(of)
    expect(await codesOf(of)).toEqual(['unreachable'])
  })

  test('[check 16.17] [RES-102] a server that sends its leaf only has no whole chain', async () => {
    const leaf = issue(freshName())
    const of = await watched(await serve({ cert: leaf.pem, key: leaf.key }))
    expect([of.chain.complete, await codesOf(of)]).toEqual([false, ['chain_incomplete']])
  })

  test('[RES-031] [RES-033] the hub looks at no address that it may not connect to', async () => {
    for (const host of ['10.0.0.1', '169.254.169.254']) {
      expect(await errorsOf(call('POST', '/certificates', { name: host, endpoint: { host } }))).toEqual([
        'endpoint.host',
      ])
      const of = await made({ name: freshName(), pem: whole(issue(freshName())) })
      const added = call('POST', `/certificates/${of.id}/deployments`, { kind: 'endpoint', host })
      expect(await errorsOf(added)).toEqual(['host'])
    }
    const odd = { name: freshName(), endpoint: { host: 'a b' }, hostnames: ['a.example.com', 'a b'] }
    expect(await errorsOf(call('POST', '/certificates', odd))).toEqual(['endpoint.host', 'hostnames.1'])
  })

  test('[RES-025] [RES-117] what is due is looked at by the clock, twenty connections at once, and nothing planned', async () => {
    const held = new Set<Socket>()
    let most = 0
    const silent = createServer(socket => {
      held.add(socket)
      most = Math.max(most, held.size)
      socket.on('error', () => {})
      socket.on('close', () => held.delete(socket))
    })
    await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as AddressInfo
    const pem = whole(issue(freshName()))
    const [of, planned] = [
      await made({ name: freshName(), pem }),
      await made({ name: freshName(), pem, status: 'planned' }),
    ]
    const place = (index: number) => ({ kind: 'endpoint', host: '127.0.0.1', port, sni: `n${index}.example` })
    for (let index = 0; index < 30; index++)
      expect((await call('POST', `/certificates/${of.id}/deployments`, place(index))).status).toBe(201)
    await call('POST', `/certificates/${planned.id}/deployments`, place(0))
    const states = async (id: string) => {
      const rows = await hub.hub.database.db.execute<{ state: string }>(sql`
        select distinct state from certificate_deployments where certificate_id = ${id}`)
      return rows.map(row => row.state)
    }
    // The hub's own clock and this call share the connections.
    const looked = lookAtDuePlaces(hub.hub)
    await until('twenty are connected', async () => held.size === 20)
    await until('all were looked at', async () => {
      for (const socket of held) socket.destroy()
      return (await states(of.id)).join() === 'unreachable'
    })
    await looked
    expect([most, await states(planned.id)]).toEqual([20, ['unknown']])
    await new Promise<void>(resolve => silent.close(() => resolve()))
  })

  test('[RES-015] [RES-075] a virtual server that names a certificate is a deployment of it, until it names it no more', async () => {
    const leaf = issue(freshName())
    const server = await serve(leaf)
    const of = await made({ name: freshName(), pem: whole(leaf) })
    const device = (await call('POST', '/load-balancers', { name: freshName(), vendor: 'haproxy' })).body.data
    const path = `/load-balancers/${device.id}/virtual-servers`
    const answer = await call('POST', path, {
      name: 'shop',
      address: '127.0.0.1',
      port: server.port,
      protocol: 'https',
      certificate_ids: [of.id],
    })
    expect(answer.status).toBe(201)
    await check(of)
    const [link] = await deploymentsOf(of)
    expect(link).toMatchObject({ kind: 'virtual_server', target: 'shop', target_id: answer.body.data.id })
    expect([link?.made_by, link?.state]).toEqual(['link', 'ok'])
    await until('it was asked by a name of its own', async () => server.askedNames.includes(of.sans[0]))
    expect(await errorsOf(call('DELETE', `/certificates/${of.id}/deployments/${link?.id}`))).toEqual(['deployment'])
    const refused = await call('DELETE', `/certificates/${of.id}`)
    expect([refused.status, refused.body.reason, refused.body.referrers[0].name]).toEqual([409, 'in_use', 'shop'])
    await call('DELETE', `/load-balancers/${device.id}`)
    expect(await deploymentsOf(of)).toEqual([])
    await call('PATCH', `/load-balancers/${device.id}`, { deleted_at: null })
    expect(await deploymentsOf(of)).toHaveLength(1)
    await call('PATCH', `${path}/${answer.body.data.id}`, { certificate_ids: [] })
    expect(await deploymentsOf(of)).toEqual([])
  })

  test('[RES-118] agents check each endpoint once while it is monitored, and no check of others goes', async () => {
    const apart = await hub.tenant()
    await trustRoot(apart)
    const leaf = issue(freshName(), 5)
    const [one, two] = [await serve(leaf), await serve(leaf)]
    const targetOf = (server: TlsServer): string => `127.0.0.1:${server.port}`
    const byHand = await apart.call('POST', '/monitoring/checks', {
      name: 'by hand',
      type: 'cert',
      target: { target: targetOf(two) },
      scope: { all: true },
    })
    expect(byHand.status).toBe(201)
    const created = await apart.call('POST', '/certificates', {
      name: 'monitored',
      pem: whole(leaf),
      endpoint: { host: '127.0.0.1', port: one.port },
      monitor: { enabled: true, scope: { tags: ['edge'] } },
    })
    const { id } = created.body.data
    const checks = async () =>
      (await apart.call('GET', '/monitoring/checks')).body.data.map((each: Json) => [each.target.target, each.id])
    const [made, ...others] = (await checks()).filter(([target]: string[]) => target === targetOf(one))
    expect([others, created.body.data.check_ids]).toEqual([[], [made[1]]])
    await apart.call('POST', `/certificates/${id}/deployments`, { kind: 'endpoint', host: '127.0.0.1', port: two.port })
    expect(await checks()).toHaveLength(2)
    await tellConditions(hub.hub)
    expect((await apart.call('GET', '/notifications')).body.data).toEqual([])
    expect(await errorsOf(apart.call('PATCH', `/certificates/${id}`, { monitor: { enabled: true } }))).toEqual([
      'monitor.scope',
    ])
    await apart.call('PATCH', `/certificates/${id}`, { monitor: { enabled: false } })
    expect(await checks()).toEqual([[targetOf(two), byHand.body.data.id]])
  })

  test('the command looks at every place of a company, and says what is not well', async () => {
    const apart = await hub.tenant()
    const leaf = issue(freshName())
    const server = await serve(leaf)
    const body = { name: 'well', pem: whole(leaf), endpoint: { host: '127.0.0.1', port: server.port } }
    await apart.call('POST', '/certificates', body)
    const other = issue(freshName())
    await apart.call('POST', '/certificates', { ...body, name: 'not well', pem: whole(other) })
    const run = await apart.call('POST', '/system/commands/verify-certificates/run', {})
    expect(run.status).toBe(202)
    const { output, progress } = await until('the command has ended', async () => {
      const { data } = (await apart.call('GET', `/system/command-runs/${run.body.data.id}`)).body
      return data.state === 'done' && data
    })
    expect(output.trim().split('\n')).toEqual([
      `not well at 127.0.0.1:${server.port}: other`,
      '2 certificates, 2 places',
    ])
    expect(progress).toEqual({ done: 2, total: 2 })
  })

  test('deployments are of hand or of a link, each once, and the only source stays', async () => {
    const server = await serve(issue(freshName()))
    const of = await made({ name: freshName(), endpoint: { host: '127.0.0.1', port: server.port } })
    const path = `/certificates/${of.id}/deployments`
    const [first] = await deploymentsOf(of)
    await until('the first look', async () => (await show(of)).last_run?.finished_at != null)
    expect(await errorsOf(call('POST', path, { kind: 'endpoint', host: '127.0.0.1', port: server.port }))).toEqual([
      'host',
    ])
    expect(await errorsOf(call('POST', path, { kind: 'virtual_server', host: 'a.b' }))).toEqual(['kind'])
    expect(await errorsOf(call('POST', path, { kind: 'endpoint' }))).toEqual(['host'])
    expect(await errorsOf(call('POST', path, { kind: 'server' }))).toEqual(['server_id'])
    const host = (await call('POST', '/servers', { name: 'web', ip_address: '127.0.0.1' })).body.data
    const added = await call('POST', path, { kind: 'server', server_id: host.id, port: server.port })
    expect(added.body.data).toMatchObject({ kind: 'server', target: 'web', target_id: host.id, host: '127.0.0.1' })
    expect((await deploymentsOf(of)).length).toBe(2)
    expect((await call('GET', `${path}?kind=server`)).body.meta.total).toBe(1)
    expect((await call('DELETE', `${path}/${added.body.data.id}`)).status).toBe(204)
    expect((await call('DELETE', `${path}/${added.body.data.id}`)).status).toBe(404)
    expect((await call('DELETE', `${path}/${first?.id}`)).status).toBe(204)
    expect(await show(of)).toMatchObject({ endpoint: null, deployments_count: 0 })
  })
})
