// Fields that manifests give as null: what was applied is planned to nothing (resources.md §6, decision G-13).
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { manifestKind } from '../../apps/hub/iac/kinds/all-manifest-kinds.ts'
import { type Json, TestHub } from './hub-harness.ts'
import { type Acme, acme, applied, manifest, submit } from './iac-rig.ts'

let hub: TestHub

beforeAll(async () => {
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
})
afterAll(() => hub.stop())

/** Manifests of most kinds, each with values for what it may do without. */
const specs: Readonly<Record<string, Json>> = {
  subnet: { cidr: '10.61.0.0/24', gateway: '10.61.0.1', vlan_id: 7, description: 'd' },
  server: { hostname: 'h', tags: ['a'], cpu_cores: 2 },
  'dns-server': { host: '127.0.0.1', description: 'd' },
  certificate: { endpoint: { host: '127.0.0.1', port: 8443 }, warn_days: [9] },
  'ip-address': { address: '10.62.0.9', dns_name: 'a.example.com' },
  check: { type: 'port', target: { port: 22, proto: 'tcp' }, scope: { all: true }, interval_seconds: 30 },
  'alert-rule': {
    scope: { all: true },
    severity: 'info',
    metric: 'cpu_usage_percent',
    operator: '>',
    threshold: 9,
    for_seconds: 60,
  },
  webhook: { url: 'https://127.0.0.1/hook', events: ['agent.down'] },
  'load-balancer': { vendor: 'f5', datacenter: 'han' },
  proxy: { mode: 'reverse', addresses: ['127.0.0.1'] },
  'dns-zone': { zone: 'nulls.example', default_ttl: 600 },
  connection: {
    source: { kind: 'server', name: 'own' },
    target: { kind: 'external', host: 'b.example.com' },
    protocol: 'https',
    port: 443,
    path: '/up',
  },
  'export-schedule': { resource: 'servers', every: 'day', at: '02:30', time_zone: 'UTC', filters: { search: 'a' } },
}
/** What a manifest needs although it may be null by itself. */
const needed = [
  'endpoint',
  'metric',
  'operator',
  'threshold',
  'protocol',
  'zone',
  'source',
  'target',
  'cidr',
  'address',
]

function withNulls(kind: string): Json {
  const { properties, required = [] } = manifestKind(kind)?.spec ?? { properties: {} }
  const nullable = Object.entries(properties).filter(
    ([name, schema]) => JSON.stringify(schema).includes('"null"') && ![...required, ...needed].includes(name),
  )
  return { ...specs[kind], ...Object.fromEntries(nullable.map(([name]) => [name, null])) }
}

const every = (company: Acme, specOf: (kind: string) => Json) =>
  Object.keys(specs).map(kind => manifest(company.slug, kind, 'own', specOf(kind)))

async function applyAll(company: Acme, files: ReturnType<typeof every>): Promise<void> {
  const run = await submit(hub, company, files)
  expect([run.errors, run.status]).toEqual([[], 'planned'])
  const after = await applied(company, run.id)
  expect(after.items.flatMap((item: Json) => item.error ?? [])).toEqual([])
}

test('[RES-126] [G-13] what says null for all that may be null comes to rest, and is called as its manifest', async () => {
  const [made, changed] = [await acme(hub), await acme(hub)]
  await applyAll(
    changed,
    every(changed, kind => specs[kind]),
  )
  for (const company of [made, changed]) {
    const files = every(company, withNulls)
    await applyAll(company, files)
    const again = await submit(hub, company, files)
    expect(again.items.flatMap((item: Json) => item.diff.map((each: Json) => [item.kind, each]))).toEqual([])
    expect(again.items.map((item: Json) => item.action)).toEqual(files.map(() => 'none'))
    const { data } = (await company.call('GET', '/subnets')).body
    expect(data.map((subnet: Json) => subnet.name)).toEqual(['own'])
  }
})
