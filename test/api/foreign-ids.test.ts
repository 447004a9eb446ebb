// What a company has is unknown to another one: every path of the resource groups with its ids (resources.md section
// 16, RES-003), as the OpenAPI document has them.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { firstCertificate } from '../ingest/certificates.ts'
import { type Json, TestHub } from './hub-harness.ts'
import { acme, manifest, submit } from './iac-rig.ts'

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
async function everything(): Promise<Json> {
  const b = await acme(hub)
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

test('[check 16.2] [RES-003] every path with an id of another company answers 404, to every method', async () => {
  const ids = await everything()
  const a = await hub.tenant()
  const document: Json = await (await fetch(`${hub.url}/openapi.json`)).json()
  const asked: string[] = []
  for (const [path, operations] of Object.entries<Json>(document.paths)) {
    const steps = path.split('/')
    const parameters = steps.flatMap((step, at) =>
      step.startsWith('{') ? [[step.slice(1, -1), steps[at - 1] ?? '']] : [],
    )
    if (!GROUPS.test(path) || parameters.every(([name]) => (name ?? '') in WORDS)) continue
    const filled = parameters.reduce((sum, [name = '', before = '']) => {
      const value = WORDS[name] ?? ids[before]
      if (value === undefined) throw new Error(`${path}: say in this test what {${name}} is`)
      return sum.replace(`{${name}}`, value)
    }, path)
    for (const method of Object.keys(operations).filter(each => each !== 'parameters')) {
      const answer = await a.call(method.toUpperCase(), filled, method === 'get' ? undefined : {})
      expect([method, path, answer.status]).toEqual([method, path, 404])
      asked.push(`${method} ${path}`)
    }
  }
  // The catalogue has more than a hundred of them.
  expect(asked.length).toBeGreaterThan(100)
})
