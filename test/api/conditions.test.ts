// Who is told of the conditions of resources, and when (resources.md ). What holds for every kind alike is
// in kinds.test.ts.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { ipAddressKind } from '../../apps/hub/network/ip-address.ts'
import { subnetKind } from '../../apps/hub/network/subnet.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { type Finding, setConditions } from '../../apps/hub/resources/conditions.ts'
import { tellConditions } from '../../apps/hub/resources/tell-conditions.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

let hub: TestHub
let peer: TestHub
let count = 0

beforeAll(async () => {
  hub = await TestHub.start({ public_url: 'https://hub.example.test', 'webhooks.allow_private': true })
  await hub.holdTask('conditions')
  peer = await hub.peer()
})
afterAll(async () => {
  await peer.running.stop()
  await hub.stop()
})

type Listener = Pick<Tenant, 'call'>
const made = async (by: Listener, path: string, body: Json): Promise<Json> => {
  const answer = await by.call('POST', path, body)
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
const address = (own: Tenant, more: Json = {}): Promise<Json> =>
  made(own, '/ips', { address: `10.9.${Math.floor(count / 250)}.${(count++ % 250) + 1}`, ...more })
const server = (own: Tenant, more: Json = {}): Promise<Json> =>
  made(own, '/servers', { name: crypto.randomUUID(), ...more })
const MOVED = 'address_moved'
const moved: Finding = { code: MOVED, detail: { address: '10.9.0.1', servers: ['web-1'] } }
/** What an address has now: the given finding, or none. */
const set = (own: Tenant, { id }: Json, finding: Finding | null) =>
  inTransaction(hub.hub.database.db, tx =>
    setConditions(
      tx,
      ipAddressKind.info,
      own.companyId,
      [id],
      [finding?.code ?? MOVED],
      new Map([[id, finding ? [finding] : []]]),
    ),
  )
const bell = async (by: Listener): Promise<Json[]> => {
  await tellConditions(hub.hub)
  return (await by.call('GET', '/notifications')).body.data
}
const types = async (by: Listener): Promise<string[]> => (await bell(by)).map(each => each.type).reverse()
const sent = async (own: Tenant): Promise<Json[]> => {
  await tellConditions(hub.hub)
  return (await own.call('GET', '/notifications/deliveries')).body.data
}

test('[RES-026] the text says what it is, in the language of its reader, and the webhook has it member by member', async () => {
  const own = await hub.tenant()
  const hook = await made(own, '/webhooks', {
    name: 'all',
    url: 'http://127.0.0.1:9/hook',
    events: ['resource.problem'],
  })
  const of = await address(own)
  await set(own, of, moved)
  const [item] = await bell(own)
  expect(item).toMatchObject({
    type: 'resource.problem',
    title: `[warning] address ${of.address}: address_moved`,
    body: `10.9.0.1 is reported by web-1 only. https://hub.example.test/ips/${of.id}`,
    link: `/ips/${of.id}`,
  })
  const [delivery] = await sent(own)
  expect(delivery).toMatchObject({ webhook_id: hook.webhook?.id ?? hook.id, type: 'resource.problem' })
  expect(delivery.payload.data.resource).toMatchObject({
    kind: 'ip_address',
    id: of.id,
    code: MOVED,
    severity: 'warning',
    resolved_at: null,
    owner_team: null,
  })
  await set(own, of, null)
  expect(await types(own)).toEqual(['resource.problem', 'resource.recovered'])
  expect(await sent(own)).toHaveLength(1)
})

test('[RES-026] the members of the owner team who may see it are told, and all who may where there is none', async () => {
  const own = await hub.tenant()
  const member = await hub.user(own.companyId, ['network.view'])
  const blind = await hub.user(own.companyId, ['servers.view'])
  const team = await made(own, '/teams', { name: 'Network' })
  for (const { userId } of [member, blind])
    expect((await own.call('POST', `/teams/${team.id}/members`, { user_id: userId })).status).toBeLessThan(300)
  await set(own, await address(own, { owner_team_id: team.id }), moved)
  expect([await types(own), await types(member), await types(blind)]).toEqual([[], ['resource.problem'], []])
  const lonely = await made(own, '/teams', { name: 'Nobody' })
  await set(own, await address(own, { owner_team_id: lonely.id }), moved)
  expect([await types(own), await types(blind)]).toEqual([['resource.problem'], []])
  expect(await types(member)).toHaveLength(2)
})

test('[RES-026] a webhook with a scope is told of what is bound to a server in it', async () => {
  const own = await hub.tenant()
  const bound = await server(own, { environment: 'prod' })
  const hook = (name: string, more: Json) =>
    made(own, '/webhooks', { name, url: `http://127.0.0.1:9/${name}`, ...more })
  await hook('prod', { scope: { environments: ['prod'] } })
  await hook('test', { scope: { environments: ['test'] } })
  await hook('critical', { min_severity: 'critical' })
  await set(own, await address(own), moved)
  expect(await sent(own)).toEqual([])
  const of = await address(own, { server_id: bound.id })
  await set(own, of, moved)
  expect((await sent(own)).map(each => each.target)).toEqual(['http://127.0.0.1:9/prod'])
  await set(own, of, { ...moved, severity: 'critical' })
  expect((await sent(own)).map(each => each.target).sort()).toEqual(
    ['critical', 'prod', 'prod'].map(name => `http://127.0.0.1:9/${name}`),
  )
})

test('[RES-028] while a bound server is in maintenance or silenced nothing is told, and afterwards what still stands', async () => {
  const own = await hub.tenant()
  const bound = await server(own)
  const [opens, ends] = [await address(own, { server_id: bound.id }), await address(own, { server_id: bound.id })]
  await set(own, ends, moved)
  expect(await types(own)).toEqual(['resource.problem'])
  await own.call('PATCH', `/servers/${bound.id}`, { status: 'maintenance' })
  await set(own, opens, moved)
  await set(own, ends, null)
  expect(await types(own)).toHaveLength(1)
  const silence = await made(own, '/monitoring/silences', {
    scope: { server_ids: [bound.id] },
    starts_at: new Date(hub.hub.now() - 1000).toISOString(),
    ends_at: new Date(hub.hub.now() + 3_600_000).toISOString(),
    reason: 'work',
  })
  await own.call('PATCH', `/servers/${bound.id}`, { status: 'active' })
  expect(await types(own)).toHaveLength(1)
  // One that opened and ended meanwhile is nothing to worry about.
  const short = await address(own, { server_id: bound.id })
  await set(own, short, moved)
  await set(own, short, null)
  expect((await own.call('POST', `/monitoring/silences/${silence.id}/end`)).status).toBe(200)
  expect(await types(own)).toEqual(['resource.problem', 'resource.problem', 'resource.recovered'])
})

test('[RES-026] people are told again at another stage and when it becomes critical, and of its end once', async () => {
  const own = await hub.tenant()
  const of = await address(own)
  for (const [finding, expected] of [
    [{ ...moved, stage: '30' }, 1],
    [{ ...moved, stage: '30' }, 1],
    [{ ...moved, stage: '14' }, 2],
    [{ ...moved, stage: '14', severity: 'critical' }, 3],
    [{ ...moved, stage: '14' }, 3],
    [{ ...moved, stage: '14', severity: 'critical' }, 3],
    [null, 4],
  ] as const) {
    await set(own, of, finding)
    expect(await types(own)).toHaveLength(expected)
  }
  expect((await bell(own))[0].type).toBe('resource.recovered')
})

test('[RES-026] what is only for information, deleted, or planned is told to nobody', async () => {
  const own = await hub.tenant()
  await set(own, await address(own), { ...moved, severity: 'info' })
  const gone = await address(own)
  await set(own, gone, moved)
  await hub.hub.database.db.execute(sql`update ip_addresses set deleted_at = now() where id = ${gone.id}`)
  const subnet = await made(own, '/subnets', { cidr: '10.0.0.0/24', status: 'planned' })
  await inTransaction(hub.hub.database.db, tx =>
    setConditions(
      tx,
      subnetKind.info,
      own.companyId,
      [subnet.id],
      ['subnet_full'],
      new Map([[subnet.id, [{ code: 'subnet_full' }]]]),
    ),
  )
  expect(await types(own)).toEqual([])
})

test('[RES-026] hubs that look at once tell once', async () => {
  const own = await hub.tenant()
  for (let index = 0; index < 8; index++) await set(own, await address(own), moved)
  await Promise.all([hub, peer, hub, peer].map(each => tellConditions(each.hub)))
  expect(await types(own)).toEqual(Array(8).fill('resource.problem'))
})

test('[RES-026] a hub whose connection dies while it tells has told nobody, and the next one tells once', async () => {
  const own = await hub.tenant()
  await set(own, await address(own), moved)
  const { client } = hub.hub.database
  const blocker = await client.reserve()
  try {
    await blocker`begin`
    await blocker`lock table notifications in share mode`
    const telling = tellConditions(peer.hub).then(
      () => 'told',
      () => 'died',
    )
    // The mark of the condition is written, the notification waits: here the hub is gone.
    const pid = await until('the notification waits', async () => {
      const [row] = await client<{ pid: number }[]>`
        select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '%insert into notifications%'
          and datname = current_database()`
      return row?.pid
    })
    await client`select pg_terminate_backend(${pid})`
    expect(await telling).toBe('died')
    await blocker`rollback`
  } finally {
    blocker.release()
  }
  expect(await types(own)).toEqual(['resource.problem'])
  expect(await types(own)).toEqual(['resource.problem'])
})
