// A secret that is stored goes to the address that it was given for: whoever changes the address gives it again.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { type Json, TestHub } from './hub-harness.ts'
import { type Acme, acme, applied, manifest, submit } from './iac-rig.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let by: Acme
let count = 0

beforeAll(async () => {
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
  by = await acme(hub)
})
afterAll(() => hub.stop())

type Sample = {
  readonly path: string
  readonly kind: string
  readonly address: string
  readonly secret: string
  readonly body: Json
  /** What needs the address, of a kind that can be without one. */
  readonly integration?: string
}
const SAMPLES: readonly Sample[] = [
  {
    path: '/load-balancers',
    kind: 'load-balancer',
    address: 'management_url',
    secret: 'password',
    body: { vendor: 'haproxy', username: 'admin' },
    integration: 'haproxy_dataplane',
  },
  {
    path: '/dns/servers',
    kind: 'dns-server',
    address: 'api_url',
    secret: 'api_key',
    body: { host: '127.0.0.1' },
    integration: 'powerdns',
  },
  { path: '/proxies', kind: 'proxy', address: 'url', secret: 'password', body: { mode: 'forward', username: 'hub' } },
]
const OWN = 'http://127.0.0.1:8001'
const OTHERS = ['http://127.0.0.2:8001', 'http://127.0.0.1:8002', 'https://127.0.0.1:8001']
const TEXT = 'give it again, or remove it, since the address that it is sent to has changed'

for (const { path, kind, address, secret, body, integration } of SAMPLES)
  describe(path, () => {
    async function made(more: Json = {}): Promise<{ readonly one: string; readonly data: Json }> {
      const given = { ...body, name: `s-${count++}`, [address]: OWN, [secret]: 'hush', ...more }
      // A name server is known by its port too.
      const own = kind === 'dns-server' ? { port: 5000 + count } : {}
      const answer = await by.call('POST', path, { ...given, ...own })
      if (answer.status !== 201) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
      return { one: `${path}/${answer.body.data.id}`, data: answer.body.data }
    }
    /** What is refused, by field. */
    async function refused(one: string, change: Json, language = 'en'): Promise<Json> {
      const answer = await by.call('PATCH', one, change, { 'Accept-Language': language })
      expect([JSON.stringify(change), answer.status]).toEqual([JSON.stringify(change), 422])
      return answer.body.errors
    }
    async function taken(one: string, change: Json): Promise<Json> {
      const answer = await by.call('PATCH', one, change)
      expect([JSON.stringify(change), answer.status, answer.body.errors]).toEqual([
        JSON.stringify(change),
        200,
        undefined,
      ])
      return answer.body.data
    }

    test('[RES-018] [RES-019] another address does not get the secret that is stored', async () => {
      const { one, data } = await made()
      for (const other of OTHERS) expect(await refused(one, { [address]: other })).toEqual({ [secret]: [TEXT] })
      expect(await refused(one, { [address]: OTHERS[0] }, 'vi')).toEqual({
        [secret]: ['hãy nhập lại hoặc xóa, vì địa chỉ nhận giá trị này đã thay đổi'],
      })
      const now = await taken(one, {})
      expect([now[address], now[`${secret}_set`], now.version]).toEqual([data[address], true, data.version])
    })

    test('[RES-019] the secret given again, or removed, goes with another address; none is no obstacle', async () => {
      const { one } = await made()
      expect(await taken(one, { [address]: OTHERS[0], [secret]: 'hush' })).toMatchObject({
        [address]: OTHERS[0],
        [`${secret}_set`]: true,
      })
      expect(await taken(one, { [address]: OTHERS[1], [secret]: null })).toMatchObject({
        [address]: OTHERS[1],
        [`${secret}_set`]: false,
      })
      await taken(one, { [address]: OTHERS[0] })
    })

    test('[RES-019] another spelling of the address, and every other field, keep the secret', async () => {
      const { one } = await made({ [address]: 'http://localhost:80' })
      for (const change of [
        { [address]: 'HTTP://LocalHost' },
        { description: 'x' },
        { [address]: 'http://localhost:80' },
      ])
        expect((await taken(one, change))[`${secret}_set`]).toBe(true)
      if (kind === 'proxy') return
      for (const more of ['/', '/mgmt', '//127.0.0.2/x'])
        expect((await taken(one, { [address]: `http://localhost${more}` }))[`${secret}_set`]).toBe(true)
    })

    test('[RES-013] [RES-018] what comes back from the trash does not bring its secret to another address', async () => {
      const { one, data } = await made()
      await by.call('DELETE', one)
      const change = { deleted_at: null, [address]: OTHERS[0] }
      expect(await refused(one, change)).toEqual({ [secret]: [TEXT] })
      expect((await taken(one, { deleted_at: null }))[address]).toBe(data[address])
      await by.call('DELETE', one)
      expect((await taken(one, { ...change, [secret]: 'new' }))[address]).toBe(OTHERS[0])
    })

    if (integration !== undefined)
      test('[RES-018] an address is removed freely, and the secret waits for no other one', async () => {
        const { one } = await made()
        expect((await taken(one, { [address]: null }))[`${secret}_set`]).toBe(true)
        expect(await refused(one, { [address]: OTHERS[0] })).toEqual({ [secret]: [TEXT] })
        expect(await refused(one, { [address]: OTHERS[0], integration })).toEqual({ [secret]: [TEXT] })
        expect((await taken(one, { [address]: OTHERS[0], integration, [secret]: 'new' }))[address]).toBe(OTHERS[0])
      })

    test('[RES-018] [RES-039] a manifest with another address fails in its plan, and nothing is written', async () => {
      const { one, data } = await made()
      const { port } = data
      const spec = { ...body, ...(kind === 'dns-server' ? { port } : {}), [address]: OWN, description: 'as it is' }
      const first = await submit(hub, by, [manifest(by.slug, kind, data.name, spec)])
      expect([first.status, first.errors]).toEqual(['planned', []])
      await applied(by, first.id)
      const before = await taken(one, {})
      expect([before.origin, before[`${secret}_set`]]).toEqual(['iac', true])
      const run = await submit(hub, by, [manifest(by.slug, kind, data.name, { ...spec, [address]: OTHERS[0] })])
      expect([run.status, run.errors.map((each: Json) => each.message)]).toEqual(['invalid', [`${secret}: ${TEXT}`]])
      expect(await taken(one, {})).toEqual(before)
    })
  })

test('[RES-018] a certificate that is no longer checked lets nobody between read the stored password', async () => {
  const path = '/load-balancers'
  const body = { name: 'tls', vendor: 'haproxy', management_url: 'https://127.0.0.1', password: 'hush' }
  const { data } = (await by.call('POST', path, body)).body
  const change = (more: Json) => by.call('PATCH', `${path}/${data.id}`, more)
  const { status, body: said } = await change({ verify_tls: false })
  expect([status, said.errors]).toEqual([
    422,
    { password: ['give it again, or remove it, since the certificate of its address is no longer checked'] },
  ])
  expect((await change({ verify_tls: false, password: 'hush' })).status).toBe(200)
  for (const verify_tls of [false, true]) expect((await change({ verify_tls })).status).toBe(200)
  expect((await change({ verify_tls: false, password: null })).status).toBe(200)
})
