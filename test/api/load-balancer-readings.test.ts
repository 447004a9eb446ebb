// What is made of the answers of load balancers: of those that are no lists, of what the hub cannot keep, of settings
// that stand elsewhere, and of servers that share a name.
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { dataPlaneResponses, type JsonDevice, nginxPlusResponses, startJsonDevice } from '../support/json-device.ts'
import { until } from '../support/until.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let tenant: Tenant
let count = 0

beforeAll(async () => {
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
})
afterAll(() => hub.stop())
// A company reads its devices so often a minute.
beforeEach(async () => {
  tenant = await hub.tenant()
})

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
const serversOf = (of: Json): Promise<Json[]> => got(`/load-balancers/${of.id}/virtual-servers`)
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
    ]
    for (const [path, answer] of odd.filter(([given]) => given !== '/v3/info')) {
      device.answers = { ...whole, [path]: answer }
      expect([path, answer, await synced(of)]).toMatchObject([
        path,
        answer,
        { state: 'failed', error: 'the device answered no list' },
      ])
    }
    const nowhere = ['stats/native?type=server', 'configuration/defaults', 'configuration/frontends']
    for (const path of [...nowhere, 'configuration/frontends/www/binds', 'runtime/backends/web/servers']) {
      device.answers = { ...whole, [`${root}/${path}`]: undefined }
      expect([path, (await synced(of)).result]).toMatchObject([path, { created: 0, updated: 0, removed: 0 }])
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

const bind = (name: string, address: string, port: number | null) => server(name, address, port)

test('[R-024] binds of one frontend at one port are virtual servers of their own, named by their addresses', async () => {
  const binds = [
    bind('v4', '*', 443),
    bind('v6', '::', 443),
    bind('plain', '', 80),
    bind('one', 'ipv4@10.9.9.9', 8443),
    bind('two', '10.9.9.10', 8443),
    bind('six', 'ipv6@', 81),
  ]
  const answers = dataPlaneResponses({
    backends: [{ name: 'web', mode: 'http', servers: [] }],
    frontends: [{ name: 'www', mode: 'http', default_backend: 'web', binds }],
  })
  await withDevice(answers, async device => {
    const of = await haproxyOf(device)
    expect((await synced(of)).result).toMatchObject({ created: 7, skipped: [] })
    expect((await serversOf(of)).map(({ name, address, port }) => [name, address, port]).sort()).toEqual([
      ['www:0.0.0.0:443', '0.0.0.0', 443],
      ['www:10.9.9.10:8443', '10.9.9.10', 8443],
      ['www:10.9.9.9:8443', '10.9.9.9', 8443],
      ['www:80', '0.0.0.0', 80],
      ['www:81', '::', 81],
      ['www:[::]:443', '::', 443],
    ])
    expect((await synced(of)).result).toMatchObject({ created: 0, updated: 0, removed: 0, unchanged: 7 })
  })
})

test('[R-024] what the hub cannot keep is left out and said, and all else is taken over', async () => {
  const answers = dataPlaneResponses({
    backends: [
      { name: 'web', mode: 'http', servers: ['a', 'A', 'b'].map((name, at) => server(name, `10.0.0.${at + 1}`)) },
      {
        name: 'api',
        mode: 'http',
        servers: [server('a', '10.0.0.1'), server('b', '10.0.0.1'), server('c', 'unix@/x', null)],
      },
      { name: 'x'.repeat(256), mode: 'http', servers: [server('a', '10.0.0.1')] },
    ],
    frontends: [
      { name: 'named', default_backend: 'api', binds: [bind('x', 'www.example.com', 80)] },
      {
        name: 'www',
        mode: 'http',
        default_backend: 'web',
        binds: [bind('x', '10.9.9.9', 80), bind('y', '/run/x.sock', null)],
      },
    ],
  })
  await withDevice(answers, async device => {
    const of = await haproxyOf(device)
    const { state, result } = await synced(of)
    expect([state, result.created, result.skipped.map((each: Json) => each.text).sort()]).toEqual([
      'done',
      6,
      [
        'pools.api.members.b',
        'pools.api.members.c',
        'pools.web.members.A',
        `pools.${'x'.repeat(256)}`,
        `pools.${'x'.repeat(256)}.members.a`,
        'virtual_servers.named',
        'virtual_servers.www:/run/x.sock',
      ].sort(),
    ])
    expect(result.skipped).toContainEqual({
      text: 'pools.api.members.b',
      reason: 'port: the pool has this address and port already',
    })
    expect((await poolsOf(of)).map(({ name, members }) => [name, members.map((each: Json) => each.name)])).toEqual([
      ['api', ['a']],
      ['web', ['a', 'b']],
    ])
    expect((await serversOf(of)).map(({ name, address }) => [name, address])).toEqual([['www:80', '10.9.9.9']])
    expect((await synced(of)).result).toMatchObject({ created: 0, updated: 0, removed: 0, unchanged: 6 })
    const { drift } = await got(`/load-balancers/${of.id}`)
    expect(drift.map((each: Json) => each.field)).toContain('pools.web.members.A')
  })
})

test('[R-024] a server that lost its port is no server that went: its member stays, and the difference is said', async () => {
  const withPort = (port: number | null) =>
    dataPlaneResponses({
      backends: [
        { name: 'web', mode: 'http', servers: [server('a', '10.0.0.1', port), server('new', '10.0.0.2', port)] },
      ],
    })
  await withDevice(withPort(80), async device => {
    const of = await haproxyOf(device)
    await synced(of)
    const [{ id, members }] = await poolsOf(of)
    // People call it otherwise than the device does.
    await tenant.call('PATCH', `/load-balancers/${of.id}/pools/${id}/members/${members[1].id}`, { name: 'old' })
    device.answers = withPort(null)
    const { state, result } = await synced(of)
    expect([state, result]).toMatchObject([
      'done',
      {
        created: 0,
        removed: 0,
        skipped: [
          { text: 'pools.web.members.a', reason: 'port: is required' },
          { text: 'pools.web.members.old', reason: 'port: is required' },
        ],
      },
    ])
    expect(result.differences).toContainEqual({ field: 'pools.web.members.a.port', intended: 80, actual: null })
    expect((await poolsOf(of))[0]?.members.map(({ name, port }: Json) => [name, port])).toEqual([
      ['a', 80],
      ['old', 80],
    ])
  })
})

test('[R-024] servers that hand on their addresses are all taken over', async () => {
  const at = (...addresses: string[]) =>
    dataPlaneResponses({
      backends: [
        { name: 'web', mode: 'http', servers: addresses.map((address, index) => server(`s${index}`, address)) },
      ],
    })
  await withDevice(at('10.0.0.1', '10.0.0.2', '10.0.0.3'), async device => {
    const of = await haproxyOf(device)
    await synced(of)
    device.answers = at('10.0.0.2', '10.0.0.3', '10.0.0.4')
    expect((await synced(of)).result).toMatchObject({ updated: 3, skipped: [] })
    expect((await poolsOf(of))[0]?.members.map((each: Json) => each.address)).toEqual([
      '10.0.0.2',
      '10.0.0.3',
      '10.0.0.4',
    ])
  })
})

test('[R-024] mode and balance that stand in defaults are those of the sections that have them', async () => {
  const named = (name: string, more: object = {}) => ({ name, servers: [server('a', '10.0.0.1')], ...more })
  const front = (name: string, port: number, more: object = {}) => ({
    name,
    binds: [{ address: '10.9.9.9', port, ssl: true }],
    ...more,
  })
  const leastconn = { balance: { algorithm: 'leastconn' } }
  const configured = {
    defaults: [
      { name: 'base', mode: 'http', ...leastconn },
      { name: 'derived', from: 'base', balance: { algorithm: 'source' } },
      { name: 'bare' },
    ],
    backends: [
      named('a', { from: 'base' }),
      named('b', { from: 'derived' }),
      named('c', { from: 'base', mode: 'tcp', balance: { algorithm: 'random' } }),
      named('d', { from: 'bare' }),
      named('e'),
    ],
    frontends: [front('f', 443, { from: 'base' }), front('g', 444, { from: 'bare' }), front('h', 445)],
  }
  await withDevice(dataPlaneResponses(configured), async device => {
    const of = await haproxyOf(device)
    // Where several could be meant, the record of people stands.
    await made(`/load-balancers/${of.id}/pools`, { name: 'e', protocol: 'https', algorithm: 'source_hash' })
    await synced(of)
    expect((await poolsOf(of)).map(({ name, protocol, algorithm }) => [name, protocol, algorithm])).toEqual([
      ['a', 'http', 'least_connections'],
      ['b', 'http', 'source_hash'],
      ['c', 'tcp', 'random'],
      ['d', 'tcp', 'round_robin'],
      ['e', 'https', 'source_hash'],
    ])
    const [, , h] = await serversOf(of)
    const path = `/load-balancers/${of.id}/virtual-servers/${h?.id}`
    await tenant.call('PATCH', path, { protocol: 'https' })
    expect((await synced(of)).result).toMatchObject({ updated: 0, differences: [] })
    expect((await serversOf(of)).map(({ name, protocol }) => [name, protocol])).toEqual([
      ['f', 'https'],
      ['g', 'tcp'],
      ['h', 'https'],
    ])
    // The only ones are meant also where nobody names them; without any, HAProxy has its own.
    for (const [defaults, expected] of [
      [[{ name: 'unnamed_defaults_1', mode: 'http', ...leastconn }], ['http', 'least_connections']],
      [[], ['tcp', 'round_robin']],
    ] as const) {
      device.answers = dataPlaneResponses({ defaults, backends: [named('e')] })
      await synced(of)
      expect((await poolsOf(of)).map(({ protocol, algorithm }) => [protocol, algorithm])).toEqual([[...expected]])
    }
  })
})

test('[R-024] version 2 has defaults by name, and before that one section without a name', async () => {
  const section = { mode: 'http', balance: { algorithm: 'leastconn' } }
  const root = '/v2/services/haproxy'
  const common = {
    '/v2/info': { api: {} },
    [`${root}/stats/native?type=server`]: [{ runtimeAPI: '/run/x', stats: [] }],
    [`${root}/configuration/frontends`]: { _version: 1, data: [] },
    [`${root}/configuration/backends`]: { _version: 1, data: [{ name: 'web' }] },
    [`${root}/configuration/servers?backend=web`]: { _version: 1, data: [] },
  }
  for (const [part, data, expected] of [
    ['named_defaults', [{ name: 'unnamed_defaults_1', ...section }], ['http', 'least_connections']],
    ['defaults', section, ['http', 'least_connections']],
    ['none', null, ['https', 'random']],
  ] as const)
    await withDevice({ ...common, [`${root}/configuration/${part}`]: { _version: 1, data } }, async device => {
      const of = await haproxyOf(device)
      await made(`/load-balancers/${of.id}/pools`, { name: 'web', protocol: 'https', algorithm: 'random' })
      expect(await synced(of)).toMatchObject({ state: 'done' })
      expect((await poolsOf(of)).map(({ protocol, algorithm }) => [protocol, algorithm])).toEqual([[...expected]])
    })
})

/** NGINX Plus that does what it is told, of upstreams of http and of stream. */
function nginxWith(
  http: Parameters<typeof nginxPlusResponses>[0],
  stream: Parameters<typeof nginxPlusResponses>[1] = {},
) {
  const areas: Json = { http: structuredClone(http), stream: structuredClone(stream) }
  const laid = () => nginxPlusResponses(areas.http, areas.stream)
  const device = startJsonDevice(laid(), (path, body) => {
    const [, area = '', pool = '', id] =
      /^\/api\/9\/(http|stream)\/upstreams\/([^/]+)\/servers\/(\d+)$/.exec(path) ?? []
    const peer = areas[area][pool].find((each: Json) => each.id === Number(id))
    peer.state = body.drain ? 'draining' : body.down ? 'down' : 'up'
    device.answers = laid()
  })
  return device
}
const ofOneName = (...servers: string[]) =>
  servers.map((address, id) => ({ id, server: address, name: 'app.example.com:80' }))

test('[R-023] [R-024] servers of one host name are called by their addresses, and the one that is meant is told', async () => {
  const device = nginxWith({
    app: ofOneName('10.1.0.1:80', '10.1.0.2:80', '[2001:db8::1]:80'),
    web: ofOneName('10.1.0.9:80'),
  })
  try {
    const of = await nginxOf(device)
    expect((await synced(of)).result).toMatchObject({ created: 6, skipped: [] })
    const [app, web] = await poolsOf(of)
    expect([app, web].map(pool => pool?.members.map((each: Json) => each.name))).toEqual([
      ['10.1.0.1:80', '10.1.0.2:80', '[2001:db8::1]:80'],
      ['app.example.com:80'],
    ])
    const path = `/load-balancers/${of.id}/pools/${app?.id}`
    const one = `${path}/members/${app?.members[1].id}`
    // As it was kept when the host name had one address.
    await tenant.call('PATCH', one, { name: 'app.example.com:80' })
    await tenant.call('PATCH', one, { admin_state: 'disabled' })
    await until('it is told', async () => (await got(path)).members.every((each: Json) => each.pending_state === null))
    expect(device.written).toEqual(['PATCH /api/9/http/upstreams/app/servers/1 {"down":true}'])
  } finally {
    await device.stop()
  }
})

test('[R-023] a name that several servers have is ambiguous where none has the address: nobody is told', async () => {
  const device = nginxWith({ app: ofOneName('10.1.0.1:80', '10.1.0.2:80') })
  try {
    const of = await nginxOf(device)
    const pool = await made(`/load-balancers/${of.id}/pools`, {
      name: 'app',
      protocol: 'http',
      members: [{ name: 'app.example.com:80', address: '10.1.0.7', port: 80 }],
    })
    const path = `/load-balancers/${of.id}/pools/${pool.id}`
    const member = pool.members[0].id
    await tenant.call('PATCH', `${path}/members/${member}`, { admin_state: 'disabled' })
    const run = await until('the run fails', async () => {
      const [row] = await hub.hub.database.client`
        select state, error from resource_runs where resource_id = ${member} and finished_at is not null`
      return row
    })
    expect(run).toMatchObject({
      state: 'failed',
      error: 'ambiguous: the device has several servers app/app.example.com:80',
    })
    expect([device.written, (await got(path)).members[0].pending_state]).toEqual([[], 'disabled'])
  } finally {
    await device.stop()
  }
})

test('[R-024] text that the database cannot hold and numbers that are no counts break no run', async () => {
  const odd = dataPlaneResponses({
    backends: [{ name: 'web', mode: 'http', servers: [server('a\ud800', '10.0.0.1'), server('b', '10.0.0.2')] }],
    frontends: [{ name: 'www', mode: 'http', binds: [{ address: '\0', port: 80 }] }],
  })
  odd['/v3/services/haproxy/stats/native?type=server'] = [
    { name: 'b', backend_name: 'web', stats: { status: 'UP', scur: 5e9 } },
    { name: 'a\ud800', backend_name: 'web', stats: { status: 'UP', scur: 1.5 } },
  ]
  await withDevice(odd, async device => {
    const { state, result } = await synced(await haproxyOf(device))
    expect([state, result.created, result.skipped.map((each: Json) => each.text)]).toEqual([
      'done',
      3,
      ['virtual_servers.www'],
    ])
  })
})

test('[R-024] servers that each moved to the address of the next one are all taken over', async () => {
  const at = (first: number, length: number) =>
    dataPlaneResponses({
      backends: [
        {
          name: 'web',
          mode: 'http',
          servers: Array.from({ length }, (_, index) => server(`s${100 + index}`, `10.0.0.${first + index}`)),
        },
      ],
    })
  await withDevice(at(1, 60), async device => {
    const of = await haproxyOf(device)
    expect((await synced(of)).result.created).toBe(61)
    device.answers = at(2, 59)
    expect((await synced(of)).result).toMatchObject({ updated: 59, removed: 1, skipped: [] })
  })
})
