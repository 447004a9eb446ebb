// What a company has is unknown to another one: every path of the resource groups with its ids (resources.md section
// 16, RES-003), as the OpenAPI document has them.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { firstCertificate } from '../ingest/certificates.ts'
import { type Json, TestHub } from './hub-harness.ts'
import { type Acme, acme, manifest, submit } from './iac-rig.ts'

setDefaultTimeout(60_000)
let hub: TestHub
beforeAll(async () => {
  hub = await TestHub.start()
})
afterAll(() => hub.stop())

const GROUPS =
  /^\/api\/v1\/(connections|load-balancers|proxies|certificates|iac|approvals|mobile|dns|subnets|ips|options|system\/command-runs|exports|files)\b/
/** Parameters that are words and no ids. */
const WORDS: Json = { list: 'environments', kind: 'server' }

/** One of each thing that has an id in a path, by the name that the path has before the id. */
async function everything(b: Acme): Promise<Json> {
  const made = async (path: string, body: Json): Promise<string> => {
    const answer = await b.call('POST', path, body)
    if (![200, 201, 202].includes(answer.status))
      throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
    return answer.body.data.id
  }
  const ids: Json = {}
  const service = (name: string) => ({ kind: 'service', name })
  ids.connections = await made('/connections', { source: service('a'), target: service('b') })
  const device = await made('/load-balancers', { name: 'lb', vendor: 'haproxy' })
  const pool = await made(`/load-balancers/${device}/pools`, { name: 'pool' })
  ids['load-balancers'] = device
  ids.pools = pool
  ids.members = await made(`/load-balancers/${device}/pools/${pool}/members`, { address: '10.0.0.1', port: 80 })
  const vs = { name: 'vs', address: '10.0.0.2', port: 80, pool_id: pool }
  ids['virtual-servers'] = await made(`/load-balancers/${device}/virtual-servers`, vs)
  ids.proxies = await made('/proxies', { name: 'proxy', check_interval_seconds: 0 })
  ids.sites = await made(`/proxies/${ids.proxies}/sites`, { hostnames: ['a.example'] })
  ids.certificates = await made('/certificates', { name: 'cert', pem: firstCertificate.cert })
  const place = { kind: 'endpoint', host: '8.8.8.8', port: 443 }
  ids.deployments = await made(`/certificates/${ids.certificates}/deployments`, place)
  ids.servers = await made('/dns/servers', { name: 'ns', host: '8.8.8.8' })
  ids.zones = await made('/dns/zones', { name: 'a.example', verify_interval_minutes: 0 })
  ids.records = await made(`/dns/zones/${ids.zones}/records`, { name: 'www', type: 'A', value: '192.0.2.1' })
  ids.subnets = await made('/subnets', { cidr: '10.0.0.0/24' })
  ids.ips = await made('/ips', { address: '10.0.0.9' })
  ids.items = await made('/options/environments/items', { value: 'prod' })
  const step = { name: 'first', user_ids: [b.userId] }
  const workflow = { name: 'flow', kinds: ['server'], allow_self: true, steps: [step] }
  ids.workflows = await made('/approvals/workflows', workflow)
  ids.steps = (await b.call('GET', `/approvals/workflows/${ids.workflows}`)).body.data.steps[0].id
  const run = await submit(hub, b, [manifest(b.slug, 'server', 'one', {})])
  ids.tickets = (await b.call('GET', `/approvals/tickets?run_id=${run.id}`)).body.data[0].id
  ids.files = await made('/files', { name: 'a.txt', content_base64: btoa('hello') })
  ids.runs = run.id
  ids.attachments = await made(`/iac/runs/${run.id}/attachments`, { file_id: ids.files })
  const resource = (await b.call('GET', '/exports/resources')).body.data[0].resource
  ids.exports = await made('/exports', { resource })
  const daily = { name: 'daily', resource, every: 'day', at: '06:00', time_zone: 'UTC' }
  ids.schedules = await made('/exports/schedules', daily)
  ids.devices = await made('/mobile/devices', {
    platform: 'webpush',
    name: 'phone',
    language: 'en',
    time_zone: 'UTC',
    subscription: {
      endpoint: 'https://8.8.8.8/push',
      keys: {
        p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
        auth: 'BTBZMqHH6r4Tts7J_aSIgg',
      },
    },
  })
  ids['command-runs'] = await made('/system/commands/recount-subnets/run', {})
  return ids
}

type Place = { readonly method: string; readonly path: string; readonly filled: string }

/** Every operation of the groups that has an id in its path, with the ids that `idOf` gives its parameters in turn. */
async function places(idOf: (of: string, index: number) => string): Promise<Place[]> {
  const document: Json = await (await fetch(`${hub.url}/openapi.json`)).json()
  return Object.entries<Json>(document.paths).flatMap(([path, operations]) => {
    const steps = path.split('/')
    const parameters = steps.flatMap((step, at) =>
      step.startsWith('{') ? [[step.slice(1, -1), steps[at - 1] ?? '']] : [],
    )
    if (!GROUPS.test(path) || parameters.every(([name]) => (name ?? '') in WORDS)) return []
    let ids = 0
    const filled = parameters.reduce((sum, [name = '', before = '']) => {
      const value = WORDS[name] ?? idOf(before, ids++)
      if (value === undefined) throw new Error(`${path}: say in this test what {${name}} is`)
      return sum.replace(`{${name}}`, value)
    }, path)
    const methods = Object.keys(operations).filter(each => each !== 'parameters')
    return methods.map(method => ({ method: method.toUpperCase(), path, filled }))
  })
}

test('[check 16.2] [RES-003] every path with an id of another company answers 404, to every method, also below what one has', async () => {
  const [a, b] = [await acme(hub), await acme(hub)]
  const [own, foreign] = [await everything(a), await everything(b)]
  const asked = new Set<string>()
  // At each place of a path an id of the other company; beside it ids that one has.
  for (const at of [null, 0, 1, 2]) {
    const isForeign = (index: number) => at === null || index === at
    const all = await places((of, index) => (isForeign(index) ? foreign : own)[of])
    for (const { method, path, filled } of all) {
      if (!Object.values<string>(foreign).some(id => filled.includes(id))) continue
      const answer = await a.call(method, filled, method === 'GET' ? undefined : {})
      expect([at, method, path, answer.status]).toEqual([at, method, path, 404])
      asked.add(`${method} ${filled}`)
    }
  }
  // The catalogue has more than a hundred of them, of which a quarter lies below something else.
  expect(asked.size).toBeGreaterThan(130)
})

/** What the answers of a viewer are where they are neither 200 to read nor 403 to write. */
const BESIDE = [
  // To look at where a certificate is served changes nothing that people keep.
  'POST /certificates/{certificate}/check 202',
  // Commands and exports have permissions of their own to be read.
  'GET /system/command-runs/{run} 403',
  'GET /exports/{export} 403',
  'GET /exports/{export}/download 403',
  // Devices are those of a person: another one has none of them.
  'PATCH /mobile/devices/{device} 404',
  'DELETE /mobile/devices/{device} 404',
  'POST /mobile/devices/{device}/test 404',
]

test('[check 16.3] [RES-005] the built-in viewer reads whatever has an id, and writes nothing of it', async () => {
  const b = await acme(hub)
  const ids = await everything(b)
  const role = (await b.call('GET', '/roles')).body.data.find((each: Json) => each.name === 'viewer')
  const viewer = await hub.user(b.companyId, role.permissions)
  const beside: string[] = []
  for (const { method, path, filled } of await places(of => ids[of])) {
    // Not by `call`: what is downloaded is no JSON.
    const headers = { Authorization: `Bearer ${viewer.token}`, 'Content-Type': 'application/json' }
    const { status } = await fetch(`${hub.url}${filled}`, {
      method,
      headers,
      ...(method === 'GET' ? {} : { body: '{}' }),
    })
    const what = `${method} ${path.replace('/api/v1', '')}`
    if (status !== (method === 'GET' ? 200 : 403)) beside.push(`${what} ${status}`)
  }
  expect(beside.sort()).toEqual([...BESIDE].sort())
})
