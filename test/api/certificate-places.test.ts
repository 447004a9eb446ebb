// What is asked for at the places where a certificate is served, and what is said of a chain.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CertificateMaker, type Issued } from '../support/certificates.ts'
import { TlsServer } from '../support/tls-server.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let tenant: Tenant
let folder = ''
let maker: CertificateMaker
let root: Issued

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'places-'))
  maker = new CertificateMaker(folder)
  root = maker.make({ subject: '/CN=Root', isAuthority: true, days: 3650 })
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
  for (const task of ['certificate_places', 'certificate_dates', 'conditions']) await hub.holdTask(task)
  tenant = await hub.tenant()
})
afterAll(async () => {
  await hub.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function made(path: string, body: Json): Promise<Json> {
  const { status, body: answered } = await tenant.call('POST', path, body)
  expect(status).toBe(201)
  return answered.data
}
const show = async ({ id }: Json): Promise<Json> => (await tenant.call('GET', `/certificates/${id}`)).body.data
const issue = (sans: string, days = 90): Issued => maker.make({ subject: '/CN=x', sans, issuer: root, days })

async function check(of: Json): Promise<void> {
  const { body } = await tenant.call('POST', `/certificates/${of.id}/check`, {})
  await until('the look is over', async () => {
    const run = (await show(of)).last_runs.find((each: Json) => each.action === 'check')
    return run?.id === body.data.id && run.finished_at !== null
  })
}

test('[R-032] a wildcard is asked for by the host of a rule that it is good for, else by a name below it', async () => {
  const leaf = issue('DNS:*.wild.example')
  const server = await TlsServer.start({ cert: leaf.pem, key: leaf.key })
  try {
    const of = await made('/certificates', { name: 'wild', pem: leaf.pem + root.pem })
    const device = `/load-balancers/${(await made('/load-balancers', { name: 'edge', vendor: 'haproxy' })).id}`
    const pool = await made(`${device}/pools`, { name: 'web' })
    const virtual = await made(`${device}/virtual-servers`, {
      name: 'shop',
      address: '127.0.0.1',
      port: server.port,
      protocol: 'https',
      certificate_ids: [of.id],
    })
    await check(of)
    expect(server.askedNames.at(-1)).toBe('www.wild.example')
    const rules = ['other.example', 'a.b.wild.example', '*.wild.example', 'shop.wild.example'].map(host => ({
      host,
      pool_id: pool.id,
    }))
    const { status } = await tenant.call('PATCH', `${device}/virtual-servers/${virtual.id}`, { rules })
    expect(status).toBe(200)
    await check(of)
    expect(server.askedNames.at(-1)).toBe('shop.wild.example')
    expect((await show(of)).conditions.map((each: Json) => each.code)).not.toContain('other_certificate_served')
  } finally {
    await server.stop()
  }
})

test('[R-032] a site is asked for by its own host, whichever names its certificate has', async () => {
  const leaf = issue('DNS:first.example,DNS:localhost')
  const server = await TlsServer.start({ cert: leaf.pem, key: leaf.key })
  try {
    const of = await made('/certificates', { name: 'of a site', pem: leaf.pem + root.pem })
    const proxy = await made('/proxies', {
      name: 'front',
      software: 'nginx',
      listen: [{ port: server.port, tls: true }],
      check_interval_seconds: 0,
    })
    await made(`/proxies/${proxy.id}/sites`, {
      hostnames: ['localhost'],
      certificate_id: of.id,
      upstream: { url: 'http://127.0.0.1:9' },
    })
    await check(of)
    expect(server.askedNames.at(-1)).toBe('localhost')
  } finally {
    await server.stop()
  }
})

test('[RES-102] of a chain that was uploaded no place is named, and of one that is served its place', async () => {
  const leaf = maker.make({
    subject: '/CN=y',
    sans: 'DNS:cut.example',
    issuer: maker.make({
      subject: '/CN=Between',
      isAuthority: true,
      issuer: root,
      days: 400,
    }),
  })
  const of = await made('/certificates', { name: 'cut', pem: leaf.pem })
  const messageOf = async () =>
    (await show(of)).conditions.find((each: Json) => each.code === 'chain_incomplete')?.message
  expect(await messageOf()).toBe('the chain does not lead to a root')
  const server = await TlsServer.start({ cert: leaf.pem, key: leaf.key })
  try {
    const place = { kind: 'endpoint', host: '127.0.0.1', port: server.port, sni: 'cut.example' }
    await made(`/certificates/${of.id}/deployments`, place)
    await check(of)
    await check(of)
    expect(await messageOf()).toBe(`the chain does not lead to a root at 127.0.0.1:${server.port}`)
  } finally {
    await server.stop()
  }
})
