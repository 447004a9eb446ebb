// What is made of the answers of load balancers: of those that are no lists, of what the hub cannot keep, of settings
// that stand elsewhere, and of servers that share a name.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { dataPlaneResponses, type JsonDevice, nginxPlusResponses, startJsonDevice } from '../support/json-device.ts'
import { until } from '../support/until.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let tenant: Tenant
let count = 0

beforeAll(async () => {
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
  tenant = await hub.tenant()
})
afterAll(() => hub.stop())

async function made(path: string, body: Json): Promise<Json> {
  const answer = await tenant.call('POST', path, body)
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
const got = async (path: string): Promise<Json> => (await tenant.call('GET', path)).body.data
const haproxyOf = ({ url }: JsonDevice): Promise<Json> =>
  made('/load-balancers', {
    name: `lb ${count++}`,
    vendor: 'haproxy',
    integration: 'haproxy_dataplane',
    management_url: url,
  })
const nginxOf = ({ url }: JsonDevice): Promise<Json> =>
  made('/load-balancers', {
    name: `lb ${count++}`,
    vendor: 'nginx_plus',
    integration: 'nginx_plus',
    management_url: url,
    writes: true,
  })
async function synced(of: Json, apply = true): Promise<Json> {
  const answer = await tenant.call('POST', `/load-balancers/${of.id}/sync`, { apply })
  expect(answer.status).toBe(202)
  return until('the run ends', async () => {
    const { last_runs } = await got(`/load-balancers/${of.id}`)
    return last_runs.find((run: Json) => run.id === answer.body.data.id && run.finished_at !== null)
  })
}
/** Every pool of a device with its members. */
async function poolsOf(of: Json): Promise<Json[]> {
  const pools: Json[] = await got(`/load-balancers/${of.id}/pools`)
  return Promise.all(pools.map(pool => got(`/load-balancers/${of.id}/pools/${pool.id}`)))
}
async function withDevice(
  answers: Record<string, unknown>,
  act: (device: JsonDevice) => Promise<void>,
  onWrite?: Parameters<typeof startJsonDevice>[1],
): Promise<void> {
  const device = startJsonDevice(answers, onWrite)
  try {
    await act(device)
  } finally {
    await device.stop()
  }
}

const server = (name: string, address: string, port: number | null = 80, more: object = {}) => ({
  name,
  address,
  ...(port === null ? {} : { port }),
  ...more,
})

test('[RES-077] [R-024] a device that answers no list has not lost everything: the run fails and the record stays', async () => {
  const whole = dataPlaneResponses({
    backends: [{ name: 'web', mode: 'http', servers: [server('a', '10.0.0.1')] }],
    frontends: [{ name: 'www', mode: 'http', default_backend: 'web', binds: [{ address: '10.9.9.9', port: 80 }] }],
  })
  const root = '/v3/services/haproxy'
  await withDevice(whole, async device => {
    const of = await haproxyOf(device)
    expect((await synced(of)).result.created).toBe(3)
    const odd: [string, unknown][] = [
      ...Object.keys(whole).flatMap((path): [string, unknown][] => [
        [path, ''],
        [path, {}],
      ]),
      [`${root}/configuration/backends`, { code: 200, message: 'maintenance' }],
      [`${root}/configuration/backends`, ['web']],
      [`${root}/configuration/backends`, [{ mode: 'http' }]],
      [`${root}/configuration/backends/web/servers`, undefined],
      [`${root}/configuration/frontends`, undefined],
      [`${root}/configuration/frontends/www/binds`, undefined],
      [`${root}/runtime/backends/web/servers`, undefined],
    ]
    for (const [path, answer] of odd.filter(([given]) => !/info|defaults/.test(given))) {
      device.answers = { ...whole, [path]: answer }
      expect([path, answer, await synced(of)]).toMatchObject([
        path,
        answer,
        { state: 'failed', error: 'the device answered no list' },
      ])
    }
    device.answers = whole
    expect((await synced(of)).result).toMatchObject({ created: 0, updated: 0, removed: 0, unchanged: 3 })
  })
})

test('[RES-077] [R-024] NGINX Plus without an area has no upstreams there; what is no upstream fails the run', async () => {
  const whole = nginxPlusResponses(
    { web: [{ id: 0, server: '10.0.0.1:80' }] },
    { database: [{ id: 0, server: '10.0.0.9:5432' }] },
  )
  await withDevice(whole, async device => {
    const of = await nginxOf(device)
    expect((await synced(of)).result.created).toBe(4)
    const http = '/api/9/http/upstreams'
    for (const answer of ['', [], { code: 200, message: 'maintenance' }, { web: {} }, { web: { peers: [null] } }]) {
      device.answers = { ...whole, [http]: answer }
      expect(await synced(of)).toMatchObject({ state: 'failed', error: 'the device answered no list' })
    }
    for (const path of Object.keys(whole)) whole[path] = {}
    device.answers = whole
    expect(await synced(of)).toMatchObject({ state: 'failed', error: 'the device answered no list' })
    expect((await poolsOf(of)).map(pool => pool.members.length)).toEqual([1, 1])
    device.answers = {
      ...nginxPlusResponses({ web: [{ id: 0, server: '10.0.0.1:80' }] }),
      [http.replace('http', 'stream')]: undefined,
    }
    expect((await synced(of)).result).toMatchObject({ removed: 2, unchanged: 2 })
  })
})
