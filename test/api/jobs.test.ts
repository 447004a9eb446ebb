// Jobs in the job library: committed with their cause, shared by hubs, woken at once, taken over from a hub that died.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { purgeAtCollectors, reloadCollectors } from '../../apps/hub/collectors/collector-jobs.ts'
import { loadHubConfig } from '../../apps/hub/config.ts'
import { bringUpToDate, createHub, openHubDatabase } from '../../apps/hub/hub.ts'
import { createCollector } from '../../apps/hub/identity/service-accounts.ts'
import { openDatabase } from '../../apps/hub/platform/db/connect.ts'
import { migrateDatabase, migrations } from '../../apps/hub/platform/db/migrate.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { installQueues, openJobStore } from '../../apps/hub/platform/jobs/job-store.ts'
import { queueNames, queueOf } from '../../apps/hub/platform/jobs/retries-and-concurrency.ts'
import { createLogger } from '../../apps/hub/platform/telemetry.ts'
import { commandOf } from '../support/executable.ts'
import { newDatabase } from '../support/postgres.ts'
import { AdminListener } from './admin-listener.ts'
import { caller, type Json, type Tenant, TestHub, until } from './hub-harness.ts'

let hub: TestHub
let admin: AdminListener
let receiver: ReturnType<typeof Bun.serve>
/** How often each delivery came, and what is answered to it. */
const came = new Map<string, number>()
const folder = mkdtempSync(join(tmpdir(), 'hub-jobs-'))
let answer: (delivery: string) => Response | Promise<Response> = () => new Response()

beforeAll(async () => {
  receiver = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    fetch(request) {
      const delivery = request.headers.get('x-hub-delivery') ?? ''
      came.set(delivery, (came.get(delivery) ?? 0) + 1)
      return answer(delivery)
    },
  })
  admin = new AdminListener()
  hub = await TestHub.start({ 'webhooks.allow_private': true })
  await hub.collector(admin.url)
})
afterAll(async () => {
  await receiver.stop(true)
  await admin.stop()
  await hub.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Child = { url: string; process: ReturnType<typeof Bun.spawn> }

/** A second hub on the same database, as a process of its own. */
async function otherHub(): Promise<Child> {
  const readyFile = join(folder, 'ready.json')
  const words = ['serve', '--database-url', hub.databaseUrl, '--ready-file', readyFile]
  const process = Bun.spawn([...commandOf('hub'), ...words], {
    stdout: Bun.file(join(folder, 'hub.log')),
    stderr: 'inherit',
    env: {
      ...Bun.env,
      SVC_LISTEN: '127.0.0.1:0',
      SVC_WEBHOOKS_ALLOW_PRIVATE: 'true',
      SVC_RATE_DEFAULT_PER_MINUTE: '100000',
    },
  })
  const url = await until('the other hub is ready', async () => existsSync(readyFile) && readJson(readyFile).hub_url)
  return { url, process }
}

const readJson = (path: string): Json => JSON.parse(readFileSync(path, 'utf8'))

const hookOf = async (by: Tenant): Promise<string> =>
  (await by.call('POST', '/webhooks', { name: 'hook', url: `http://127.0.0.1:${receiver.port}/` })).body.data.id
const ping = async (by: Pick<Tenant, 'call'>, hook: string): Promise<string> =>
  (await by.call('POST', `/webhooks/${hook}/test`)).body.data.delivery_id
const deliveryState = async (id: string): Promise<string> =>
  (await hub.hub.database.client`select state from notification_deliveries where id = ${id}`)[0]?.state

describe('a job and its cause', () => {
  test('a job is there with the commit of its cause, not before and not without', async () => {
    const { db } = hub.hub.database
    const [kept, lost] = [randomUUID(), randomUUID()]
    const purgeOf = (id: string) => ({ scope: 'server' as const, company_id: randomUUID(), id })
    await inTransaction(db, async tx => {
      await purgeAtCollectors(hub.hub, tx, purgeOf(lost))
      throw new Error('no')
    }).catch(() => {})
    await inTransaction(db, tx => purgeAtCollectors(hub.hub, tx, purgeOf(kept)))
    await until('the job has run', async () => admin.count('DELETE', `/servers/${kept}/data`) === 1)
    expect(admin.count('DELETE', `/servers/${lost}/data`)).toBe(0)
  })

  test('transactions that ask for the same jobs in another order do not wait for each other', async () => {
    const kinds = ['rules', 'silences', 'checks', 'settings'] as const
    const { db } = hub.hub.database
    const ask = (order: readonly (typeof kinds)[number][]) =>
      inTransaction(db, async tx => {
        for (const kind of order) await reloadCollectors(hub.hub, tx, kind)
      })
    // Many rounds: jobs also start between the two statements that add or lock one.
    for (let round = 0; round < 10; round++)
      await Promise.all(Array.from({ length: 40 }, (_, at) => ask(at % 2 === 0 ? kinds : kinds.toReversed())))
  })

  test('a job that waits and does the work of a second one starts only after the commit of the second', async () => {
    // Nothing runs these jobs: the hub is not started.
    const { config } = loadHubConfig(undefined, { 'database.url': await newDatabase() })
    const database = await openHubDatabase(config)
    try {
      const idle = await createHub(config, createLogger('silent'), database)
      await inTransaction(database.db, tx => createCollector(idle, tx, { name: 'c', adminUrl: admin.url }))
      const free = async () =>
        (
          await database.client`select id from pgboss.job where name = 'collector.reload' and state = 'created'
            for update skip locked`
        ).length
      await inTransaction(database.db, tx => reloadCollectors(idle, tx, 'rules'))
      expect(await free()).toBe(1)
      await inTransaction(database.db, async tx => {
        await reloadCollectors(idle, tx, 'rules')
        tx.beforeCommit(async () => expect(await free()).toBe(0))
      })
      expect(await free()).toBe(1)
    } finally {
      await database.close()
    }
  })
})

describe('a reload of collectors', () => {
  test('comes after the commit of what changed, three times while it is refused, and never fails the request', async () => {
    const own = await hub.tenant()
    const before = admin.count('POST', '/reload/silences')
    const { promise, resolve } = Promise.withResolvers<number>()
    admin.answer = async ({ path }) => {
      if (path !== '/reload/silences') return { status: 200, body: {} }
      resolve((await hub.hub.database.client`select id from monitoring_silences where reason = 'reloaded'`).length)
      return { status: 503, body: {} }
    }
    const silence = {
      scope: { all: true },
      ends_at: new Date(Date.now() + 3_600_000).toISOString(),
      reason: 'reloaded',
    }
    expect((await own.call('POST', '/monitoring/silences', silence)).status).toBe(201)
    expect(await promise).toBe(1)
    await until('it has failed', async () => {
      const rows = await hub.hub.database.client`select retry_count from pgboss.job
        where name = 'collector.reload' and state = 'failed' and data->>'kind' = 'silences'`
      return rows.length === 1 && rows[0]?.retry_count === 2
    })
    expect(admin.count('POST', '/reload/silences') - before).toBe(3)
    admin.answer = () => ({ status: 200, body: {} })
  })
})

describe('what an operator sees', () => {
  test('[HUB-039] super administrators see every queue and failed job; a failed job is tried once more, or forgotten', async () => {
    const own = await hub.tenant()
    const { call } = await hub.user(own.companyId, ['*'], { superAdmin: true })
    admin.answer = ({ path }) => ({ status: path.startsWith('/servers/refused-') ? 400 : 200, body: {} })
    const purgeOf = (id: string) => ({ scope: 'server' as const, company_id: own.companyId, id })
    const failed = async (id: string) =>
      until('it has failed', async () => {
        const { data } = (await call('GET', '/queues/failed')).body
        return data.find((job: Json) => job.payload.id === id)
      })
    const { db } = hub.hub.database
    const refused = ['refused-1', 'refused-2']
    await inTransaction(db, async tx => {
      for (const id of refused) await purgeAtCollectors(hub.hub, tx, purgeOf(id))
    })
    const [first, second] = [await failed('refused-1'), await failed('refused-2')]
    expect(first).toMatchObject({
      queue: 'collector.purge',
      state: 'failed',
      tries: 1,
      last_error: 'the collector answered 400 to a purge',
    })
    const nobody = await hub.user(own.companyId, ['monitoring.view'])
    for (const path of ['/queues', '/queues/failed', `/queues/failed/${first.id}`, '/queues/collector.purge/jobs'])
      expect([(await call('GET', path)).status, (await nobody.call('GET', path)).status]).toEqual([200, 403])
    const reader = await hub.user(own.companyId, ['queues.view'])
    expect((await reader.call('GET', `/queues/failed/${first.id}`)).status).toBe(200)
    expect((await reader.call('POST', `/queues/failed/${first.id}/retry`)).status).toBe(403)
    expect((await call('GET', '/queues/nonsense')).status).toBe(404)
    expect((await call('GET', '/queues/collector.purge')).body.data.failed).toBeGreaterThanOrEqual(2)
    admin.answer = () => ({ status: 200, body: {} })
    expect((await call('POST', `/queues/failed/${first.id}/retry`)).status).toBe(202)
    await until('it is done', async () => (await call('GET', `/queues/failed/${first.id}`)).status === 404)
    await until('it was called again', async () => admin.count('DELETE', '/servers/refused-1/data') === 2)
    expect((await call('DELETE', `/queues/failed/${second.id}`)).status).toBe(204)
    expect((await call('GET', `/queues/failed/${second.id}`)).status).toBe(404)
    expect(admin.count('DELETE', '/servers/refused-2/data')).toBe(1)
  })
})

describe('what a company sees of the queues', () => {
  test('[HUB-033] [HUB-034] [HUB-039] its own jobs and no others: neither counted, nor shown, nor touched', async () => {
    const [own, other] = [await hub.tenant(), await hub.tenant()]
    const { db } = hub.hub.database
    admin.answer = ({ path }) => ({ status: path.startsWith('/servers/refused-') ? 400 : 200, body: {} })
    const purge = (of: Tenant) => ({
      scope: 'server' as const,
      company_id: of.companyId,
      id: `refused-${of.companyId}`,
    })
    await inTransaction(db, async tx => {
      for (const each of [own, other]) await purgeAtCollectors(hub.hub, tx, purge(each))
    })
    const failedOf = async (by: Tenant): Promise<Json[]> => (await by.call('GET', '/queues/failed')).body.data
    const [mine] = await until('mine has failed', async () => (await failedOf(own)).length > 0 && failedOf(own))
    const [theirs] = await until('theirs has failed', async () => (await failedOf(other)).length > 0 && failedOf(other))
    expect([mine.payload.company_id, theirs.payload.company_id]).toEqual([own.companyId, other.companyId])
    // A super administrator sees every job, with a token that is limited to some permissions those of the own company.
    const root = await hub.user(own.companyId, ['*'], { superAdmin: true })
    const limited = await hub.token(root.userId, { permissions: ['queues.view'] })
    expect((await root.call('GET', `/queues/failed/${theirs.id}`)).status).toBe(200)
    expect((await limited.call('GET', `/queues/failed/${mine.id}`)).status).toBe(200)
    expect((await limited.call('GET', `/queues/failed/${theirs.id}`)).status).toBe(404)
    expect([(await failedOf(own)).length, (await failedOf(other)).length]).toEqual([1, 1])
    const shown = (await own.call('GET', '/queues/collector.purge')).body.data
    expect([shown.failed, shown.waiting, shown.running]).toEqual([1, 0, 0])
    for (const [method, path] of [
      ['GET', `/queues/failed/${theirs.id}`],
      ['POST', `/queues/failed/${theirs.id}/retry`],
      ['DELETE', `/queues/failed/${theirs.id}`],
    ] as const)
      expect([path, (await own.call(method, path)).status]).toEqual([path, 404])
    expect((await own.call('POST', '/queues/failed/retry-all')).body.data.retried).toBe(1)
    expect((await failedOf(other)).map(job => job.id)).toEqual([theirs.id])
    // A delivery is of the company whose webhook it goes to.
    const [hook, theirHook] = [await hookOf(own), await hookOf(other)]
    answer = () => new Response('', { status: 500 })
    const [sent, theirSent] = [await ping(own, hook), await ping(other, theirHook)]
    const failedDelivery = await until('my delivery has failed', async () =>
      (await failedOf(own)).find(job => job.payload.delivery_id === sent),
    )
    expect(failedDelivery.queue).toBe('notifications.webhook')
    expect((await failedOf(own)).some(job => job.payload.delivery_id === theirSent)).toBe(false)
    answer = () => new Response()
    admin.answer = () => ({ status: 200, body: {} })
  })

  test('[HUB-033] [HUB-034] what waits is shown and removed by its own company only', async () => {
    // Nothing runs these jobs: no queue takes them before their time.
    const [own, other] = [await hub.tenant(), await hub.tenant()]
    const { client } = hub.hub.database
    const later = async (queue: string, data: object): Promise<string> => {
      const id = randomUUID()
      await client`insert into pgboss.job (id, name, data, start_after, singleton_key, policy)
        values (${id}, ${queue}, ${JSON.stringify(data)}::text::jsonb, now() + interval '1 hour', ${id}, 'short')`
      return id
    }
    const agentId = randomUUID()
    await client`insert into monitoring_agents (id, company_id, machine_id, hostname, state, token_hash)
      values (${agentId}, ${own.companyId}, ${agentId}, 'h', 'active', ${agentId})`
    const pushed = await later('collector.agent', { agent_id: agentId, collector_id: randomUUID() })
    const reload = await later('collector.reload', { kind: 'rules', collector_id: randomUUID() })
    const waiting = async (by: Tenant, queue: string) =>
      (await by.call('GET', `/queues/${queue}/jobs`)).body.data.map((job: Json) => job.id)
    expect([await waiting(own, 'collector.agent'), await waiting(other, 'collector.agent')]).toEqual([[pushed], []])
    expect(await waiting(own, 'collector.reload')).toEqual([])
    expect((await own.call('DELETE', `/queues/collector.reload/jobs/${reload}`)).status).toBe(404)
    expect((await other.call('DELETE', `/queues/collector.agent/jobs/${pushed}`)).status).toBe(404)
    expect((await own.call('DELETE', `/queues/collector.agent/jobs/${pushed}`)).status).toBe(204)
    expect(await waiting(own, 'collector.agent')).toEqual([])
    await client`delete from pgboss.job where id = ${reload}`
  })

  test('[HUB-039] jobs that delete its data or take an agent its access are not removed by a company, waiting or failed', async () => {
    const own = await hub.tenant()
    const root = await hub.user(own.companyId, ['*'], { superAdmin: true })
    const { client } = hub.hub.database
    const job = async (queue: string, data: Json, state = 'created'): Promise<string> => {
      const id = randomUUID()
      await client`insert into pgboss.job (id, name, data, state, start_after, singleton_key, policy)
        values (${id}, ${queue}, ${JSON.stringify(data)}::text::jsonb, ${state}, now() + interval '1 hour', ${id}, 'short')`
      return id
    }
    const agentOf = async (state: string): Promise<string> => {
      const id = randomUUID()
      await client`insert into monitoring_agents (id, company_id, machine_id, hostname, state, token_hash)
        values (${id}, ${own.companyId}, ${id}, 'h', ${state}, ${id})`
      return id
    }
    const purge = { scope: 'server', company_id: own.companyId, id: randomUUID(), collector_id: randomUUID() }
    const revocation = { agent_id: await agentOf('revoked'), collector_id: randomUUID() }
    const paths = [
      `/queues/collector.purge/jobs/${await job('collector.purge', purge)}`,
      `/queues/collector.agent/jobs/${await job('collector.agent', revocation)}`,
      `/queues/failed/${await job('collector.purge', purge, 'failed')}`,
      `/queues/failed/${await job('collector.agent', revocation, 'failed')}`,
    ]
    // A token of a super administrator that is limited to queues is no super administrator.
    const limited = await hub.token(root.userId, { permissions: ['queues.view', 'queues.manage'] })
    for (const by of [own, limited])
      for (const path of paths) {
        const { status, body } = await by.call('DELETE', path)
        expect([status, Object.keys(body?.errors ?? {})]).toEqual([422, ['job']])
      }
    const elsewhere = await job('collector.purge', { ...purge, company_id: (await hub.tenant()).companyId })
    expect(
      (await limited.call('GET', '/queues/collector.purge/jobs')).body.data.map((each: Json) => each.id),
    ).not.toContain(elsewhere)
    for (const path of paths) expect((await root.call('DELETE', path)).status).toBe(204)
    // An agent that is revoked while its push waits: what the push is to do is the revocation.
    const agentId = await agentOf('active')
    const push = await job('collector.agent', { agent_id: agentId, collector_id: randomUUID() })
    let answered: Promise<{ status: number }> | null = null
    await inTransaction(hub.hub.database.db, async tx => {
      await tx.db.execute(sql`select id from pgboss.job where id = ${push} for update`)
      answered = own.call('DELETE', `/queues/collector.agent/jobs/${push}`)
      await until('the removal waits', async () => {
        const waiting = await client`select 1 from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%pgboss.job%'`
        return waiting.length > 0
      })
      await tx.db.execute(sql`update monitoring_agents set state = 'revoked' where id = ${agentId}`)
    })
    expect((await answered!).status).toBe(422)
  })
})

describe('two hubs on one database', () => {
  test('each job runs once, a notification made by one rings in the other, and what one lost the other does', async () => {
    const own = await hub.tenant()
    const hook = await hookOf(own)
    const other = await otherHub()
    try {
      const there = { call: caller(other.url, own.token) }
      const ids: string[] = []
      for (let at = 0; at < 20; at++) ids.push(await ping(own, hook), await ping(there, hook))
      await until('all are delivered', async () =>
        (await Promise.all(ids.map(deliveryState))).every(state => state === 'delivered'),
      )
      expect(ids.map(id => came.get(id))).toEqual(ids.map(() => 1))
      await rings(own, other.url)
      await takesOver(own, there, other.process)
    } finally {
      other.process.kill('SIGKILL')
      await other.process.exited
    }
  })
})

/** An event that comes to one hub is seen in the stream of the other. */
async function rings(own: Tenant, otherUrl: string): Promise<void> {
  const leave = new AbortController()
  const stream = await fetch(`${otherUrl}/api/v1/notifications/stream`, {
    headers: { Authorization: `Bearer ${own.token}` },
    signal: leave.signal,
  })
  const reader = stream.body!.getReader()
  let text = new TextDecoder().decode((await reader.read()).value)
  const { id } = (await own.call('POST', '/servers', { name: 'rung' })).body.data
  const collector = await hub.collector(admin.url)
  const event: Json = {
    event_id: randomUUID(),
    type: 'alert.opened',
    seq: 1,
    occurred_at: new Date().toISOString(),
    company_id: own.companyId,
    server_id: id,
    rule_id: randomUUID(),
    rule_version: 1,
    series_key: 'cpu_usage_percent',
    severity: 'critical',
    value: 95,
    threshold: 90,
    suppressed: false,
    suppress_reason: null,
    group_key: null,
    labels: {},
  }
  await collector.call('POST', '/events', { events: [event] })
  while (!text.includes('event: notification')) text += new TextDecoder().decode((await reader.read()).value)
  expect(JSON.parse(/data: (.*)/.exec(text)![1]!)).toMatchObject({ type: 'alert.opened', read_at: null })
  leave.abort()
}

/** The other hub is killed while its receiver lets it wait; this one tries again under the same delivery id. */
async function takesOver(own: Tenant, there: Pick<Tenant, 'call'>, process: Child['process']): Promise<void> {
  const hook = await hookOf(own)
  const silent = Promise.withResolvers<void>()
  answer = () => silent.promise.then(() => new Response())
  // Two at once a webhook, in all hubs together: enough that the other hub has one.
  const ids = [await ping(there, hook), await ping(own, hook)]
  await until('both wait for their answers', async () => ids.every(id => came.get(id) === 1))
  process.kill('SIGKILL')
  await process.exited
  answer = () => new Response()
  silent.resolve()
  const client = hub.hub.database.client
  // As if the dead hub had been silent for long enough; its lease has most of its time left.
  await until('both are delivered', async () => {
    await client`update pgboss.job set heartbeat_on = now() - interval '1 minute'
      where name = 'notifications.webhook' and state = 'active' and retry_count = 0`
    await client`update pgboss.job set start_after = now() where name = 'notifications.webhook' and state = 'retry'`
    return (await Promise.all(ids.map(deliveryState))).every(state => state === 'delivered')
  })
  for (const id of ids) expect(came.get(id)).toBeLessThanOrEqual(2)
}

test('a hub says of a delivery under way that it still runs', async () => {
  const busy = await TestHub.start({})
  const ended = Promise.withResolvers<void>()
  try {
    const { client } = busy.hub.database
    busy.hub.jobs.register('notifications.push', { handle: () => ended.promise })
    await inTransaction(busy.hub.database.db, async tx =>
      busy.hub.jobs.enqueue(tx, [{ queue: 'notifications.push', payload: {}, group: randomUUID() }]),
    )
    const beats = async () =>
      client<{ later: boolean }[]>`select heartbeat_on > started_on + interval '1 second' as later
        from pgboss.job where name = 'notifications.push' and state = 'active' and heartbeat_seconds = 30`
    await until('it says so', async () => (await beats())[0]?.later === true)
  } finally {
    ended.resolve()
    await busy.running.stop()
  }
})

test('the places of a company that a lost hub holds are free once it counts as lost, in every queue where they are few', async () => {
  const few = queueNames.filter(name => queueOf(name).atOnceOfGroupMax !== null && queueOf(name).leaseSeconds > 120)
  expect(few).toEqual(['security.export', 'resources.probe', 'exports', 'system.commands', 'iac.apply'])
  const busy = await TestHub.start({})
  const ended = Promise.withResolvers<void>()
  try {
    const { db, client } = busy.hub.database
    // Side by side: the library looks at a queue every five seconds.
    const untilFreed = async (queue: (typeof few)[number]): Promise<void> => {
      const ran: unknown[] = []
      busy.hub.jobs.register(queue, {
        handle: async ({ number }) => {
          ran.push(number)
          if (number !== 'next') await ended.promise
        },
      })
      const group = randomUUID()
      const ask = (number: number | 'next') => {
        const keyed = queueOf(queue).isKeyed ? { key: `${number}` } : {}
        return inTransaction(db, async tx =>
          busy.hub.jobs.enqueue(tx, [{ queue, payload: { number }, group, ...keyed }]),
        )
      }
      const places = queueOf(queue).atOnceOfGroupMax ?? 0
      for (let number = 0; number < places; number++) await ask(number)
      await until(`all places of ${queue} to be taken`, async () => ran.length === places)
      await ask('next')
      await until(`the next job of ${queue}`, async () => {
        await client`update pgboss.job set heartbeat_on = now() - interval '1 minute'
          where name = ${queue} and state = 'active' and data->>'number' <> 'next'`
        return ran.includes('next')
      })
    }
    await Promise.all(few.map(untilFreed))
  } finally {
    ended.resolve()
    await busy.running.stop()
  }
})

test('queues that an earlier version made are watched from the next start on, and no others', async () => {
  const { client } = hub.hub.database
  const watched = async () =>
    (await client<{ name: string }[]>`select name from pgboss.queue where heartbeat_seconds = 30 order by name`).map(
      ({ name }) => name,
    )
  const queues = [
    'exports',
    'iac.apply',
    'notifications.dispatch',
    'notifications.push',
    'notifications.webhook',
    'resources.probe',
    'security.export',
    'system.commands',
  ]
  expect(await watched()).toEqual(queues)
  await client`update pgboss.queue set heartbeat_seconds = case when name = 'schedule' then 30 end`
  await installQueues(hub.hub.database)
  expect(await watched()).toEqual(queues)
})

test('a job starts as soon as it is committed, however seldom is looked', async () => {
  const seldom = await TestHub.start({ 'jobs.poll': '1h', 'webhooks.allow_private': true })
  try {
    const own = await seldom.tenant()
    const hook = await hookOf(own)
    const delivery = await ping(own, hook)
    await until('it came', async () => came.get(delivery) === 1)
  } finally {
    await seldom.running.stop()
  }
})

test('statements of the library that fail leave their connections to the next', async () => {
  const store = openJobStore(hub.hub.database, () => {}).getDb()
  // More often than there are connections.
  for (let at = 0; at < 5; at++)
    await expect(store.executeSql('begin; select 1/0; commit;')).rejects.toThrow('division')
  for (let at = 0; at < 5; at++) expect((await store.executeSql('select 1 as one')).rows).toEqual([{ one: 1 }])
})

test('open jobs of a hub before the library are taken along, with their tries and their order', async () => {
  const database = openDatabase(await newDatabase(), 2)
  try {
    const { client } = database
    await migrateDatabase(client, async () => {}, migrations.slice(0, 6))
    const company = randomUUID()
    await client`insert into companies (id, name, slug) values (${company}, 'x', 'x')`
    const job = (queue: string, state: string, tries: number, payload: object, key: string | null = null) =>
      client`insert into jobs (id, queue, payload, state, tries, dedupe_key)
        values (${randomUUID()}, ${queue}, ${JSON.stringify(payload)}, ${state}, ${tries}, ${key})`
    const told = (type: string) => ({ told: [{ type, alert: { companyId: company } }] })
    await job(
      'collector.purge',
      'waiting',
      3,
      { scope: 'server', company_id: company, id: 'a', collector_id: 'c' },
      'k',
    )
    await job('collector.reload', 'running', 1, { kind: 'rules', collector_id: 'c' })
    await job('collector.reload', 'done', 1, { kind: 'rules', collector_id: 'c' })
    await job('notifications.dispatch', 'waiting', 0, told('alert.opened'))
    await job('notifications.dispatch', 'waiting', 0, told('alert.resolved'))
    await bringUpToDate(database)
    const jobs = await client`select name, state, retry_count, group_id from pgboss.job order by name`
    expect(jobs.map(row => [row.name, row.state, row.retry_count, row.group_id])).toEqual([
      ['collector.purge', 'retry', 2, 'c'],
      ['collector.reload', 'retry', 0, 'c'],
      ['notifications.dispatch', 'created', 0, null],
    ])
    const outbox = await client`select told from notification_outbox order by position`
    expect(outbox.map(row => row.told[0].type)).toEqual(['alert.opened', 'alert.resolved'])
    expect((await client`select to_regclass('public.jobs') as name`)[0]?.name).toBeNull()
  } finally {
    await database.close()
  }
})
