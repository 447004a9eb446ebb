// Acts of resources, which leave the hub as jobs (resources.md ), and what is named by others
//
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { PgBoss } from 'pg-boss'
import { freePort } from '../../apps/standalone/ports.ts'
import { until } from '../support/until.ts'
import { type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'

setDefaultTimeout(60_000)
let hub: TestHub
let tenant: Tenant
let root: Call

beforeAll(async () => {
  hub = await TestHub.start({ 'outbound.allowed_ranges': ['127.0.0.0/8'] })
  tenant = await hub.tenant()
  root = (await hub.user(tenant.companyId, ['*'], { superAdmin: true })).call
})
afterAll(() => hub.stop())

const made = async (path: string, body: Json, by: Call = tenant.call): Promise<Json> => {
  const answer = await by('POST', path, body)
  if (answer.status !== 201) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.data
}
let zoneCount = 0
/** A zone whose name server is at a port of this host. */
async function zoneAt(port: number, by: Call = tenant.call): Promise<Json> {
  const server = await made('/dns/servers', { name: `at ${zoneCount}`, host: '127.0.0.1', port }, by)
  const name = `runs-${zoneCount++}.example`
  return made('/dns/zones', { name, verify_interval_minutes: 0, server_ids: [server.id] }, by)
}
const sync = (zone: Json, by: Call = tenant.call) => by('POST', `/dns/zones/${zone.id}/sync`, {})
const lastRun = async (zone: Json): Promise<Json> =>
  (await tenant.call('GET', `/dns/zones/${zone.id}`)).body.data.last_run
const ended = (zone: Json): Promise<Json> =>
  until('the run has ended', async () => {
    const run = await lastRun(zone)
    return run?.finished_at ? run : null
  })

/** A name server that answers only when it is told to: authoritative, without records. */
async function slowServer() {
  const waiting: (() => void)[] = []
  let isOpen = false
  let asked = 0
  const socket = await Bun.udpSocket({
    hostname: '127.0.0.1',
    socket: {
      data(self, query, port, address) {
        asked++
        const answer = Buffer.from(query)
        answer[2] = 0x84
        answer[3] = 0
        const send = () => void self.send(answer, port, address)
        if (isOpen) send()
        else waiting.push(send)
      },
    },
  })
  return {
    port: socket.port,
    asked: () => asked,
    open() {
      isOpen = true
      for (const send of waiting) send()
    },
    close: () => socket.close(),
  }
}

test('[RES-029] an act is one run at a time, which ends as done or failed, and a later call begins another', async () => {
  const server = await slowServer()
  try {
    const zone = await zoneAt(server.port)
    // The job waits, so the first run is still under way when it is called for again.
    expect((await root('POST', '/queues/resources.probe/pause', {})).status).toBe(200)
    const first = await sync(zone)
    expect([first.status, first.body.data.state, first.body.data.requested_by.id]).toEqual([
      202,
      'queued',
      tenant.userId,
    ])
    expect((await sync(zone)).body.data.id).toBe(first.body.data.id)
    await root('POST', '/queues/resources.probe/resume')
    server.open()
    expect(await ended(zone)).toMatchObject({ id: first.body.data.id, state: 'done', error: null })
    const second = await sync(zone)
    expect(second.body.data.id).not.toBe(first.body.data.id)
    const log = (await tenant.call('GET', `/audit-log?subject=${zone.id}`)).body.data
    expect(log.filter((entry: Json) => entry.action === 'dns_zone.sync')).toHaveLength(2)
    await ended(zone)
  } finally {
    server.close()
  }
})

test('[RES-030] a run whose hub died is taken up once it counts as lost, and ends', async () => {
  const server = await slowServer()
  server.open()
  const { client } = hub.hub.database
  const watch = new PgBoss({
    connectionString: hub.databaseUrl,
    supervise: false,
    schedule: false,
    monitorIntervalSeconds: 1,
  })
  await watch.start()
  try {
    const zone = await zoneAt(server.port)
    await root('POST', '/queues/resources.probe/pause', {})
    const { id } = (await sync(zone)).body.data
    // What a hub that was killed in the middle leaves: a run and a job that are under way, and nobody works on.
    await client`update resource_runs set state = 'running', started_at = now() - interval '1 minute' where id = ${id}`
    await client`
      update pgboss.job set state = 'active', started_on = now() - interval '1 minute',
        heartbeat_on = now() - interval '1 minute'
      where name = 'resources.probe' and data ->> 'run_id' = ${id}`
    await root('POST', '/queues/resources.probe/resume')
    const run = await until('the run has ended', async () => {
      await client`
        update pgboss.job set start_after = now() - interval '1 hour' where name = 'resources.probe' and state = 'retry'`
      await client`update pgboss.queue set monitor_on = null, monitor_claim_on = null`
      await watch.supervise('resources.probe')
      const found = await lastRun(zone)
      return found?.finished_at ? found : null
    })
    expect([run.id, run.state]).toEqual([id, 'done'])
  } finally {
    await watch.stop({ graceful: false })
    server.close()
  }
})

test('[RES-029] the job of a run that failed is among the failed ones, and is not tried again by itself', async () => {
  const device = await made('/load-balancers', {
    name: 'gone',
    vendor: 'haproxy',
    integration: 'haproxy_dataplane',
    management_url: `http://127.0.0.1:${freePort()}`,
  })
  const { id } = (await tenant.call('POST', `/load-balancers/${device.id}/sync`, {})).body.data
  const job = await until('the job has failed', async () => {
    const [found] = await hub.hub.database.client`
      select id, state, retry_count from pgboss.job where name = 'resources.probe' and data ->> 'run_id' = ${id}`
    return found?.state === 'failed' ? found : null
  })
  expect(job.retry_count).toBe(0)
  expect((await root('GET', `/queues/failed/${job.id}`)).status).toBe(200)
  const { last_run } = (await tenant.call('GET', `/load-balancers/${device.id}`)).body.data
  expect([last_run.id, last_run.state]).toEqual([id, 'failed'])
})

/** A run that has failed, and its job; the queue stays paused. */
async function failedRun(zone: Json): Promise<{ id: string; jobId: string }> {
  const { client } = hub.hub.database
  await root('POST', '/queues/resources.probe/pause', {})
  const { id } = (await sync(zone)).body.data
  await client`
    update resource_runs set state = 'failed', finished_at = now(), error = 'timeout' where id = ${id}`
  const [job] = await client<{ id: string }[]>`
    update pgboss.job set state = 'failed', completed_on = now() where name = 'resources.probe'
      and data ->> 'run_id' = ${id} returning id`
  return { id, jobId: job?.id ?? '' }
}

test('[RES-029] a run that failed is taken up when its job is tried again', async () => {
  const server = await slowServer()
  server.open()
  try {
    const zone = await zoneAt(server.port)
    const { id, jobId } = await failedRun(zone)
    await root('POST', '/queues/resources.probe/resume')
    expect((await root('POST', `/queues/failed/${jobId}/retry`, {})).status).toBe(202)
    const run = await until('the run is done', async () => {
      const found = await lastRun(zone)
      return found?.state === 'done' ? found : null
    })
    expect([run.id, run.error]).toEqual([id, null])
  } finally {
    server.close()
  }
})

test('[RES-029] a run that failed is not taken up beside a later one of the same act', async () => {
  const server = await slowServer()
  const { client } = hub.hub.database
  try {
    const zone = await zoneAt(server.port)
    const { id, jobId } = await failedRun(zone)
    const later = (await sync(zone)).body.data
    await root('POST', '/queues/resources.probe/resume')
    await until('the later one is under way', async () => server.asked() > 0)
    expect((await root('POST', `/queues/failed/${jobId}/retry`, {})).status).toBe(202)
    await until('the job has ended', async () => {
      const [found] = await client`select state from pgboss.job where id = ${jobId}`
      return found?.state === 'completed'
    })
    const [first] = await client`select state from resource_runs where id = ${id}`
    expect(first?.state).toBe('failed')
    server.open()
    expect(await ended(zone)).toMatchObject({ id: later.id, state: 'done' })
  } finally {
    server.close()
  }
})

test('[check 16.19] [RES-032] a name that leads to a private address when it is probed is not connected to', async () => {
  const server = await slowServer()
  const strict = await TestHub.start()
  try {
    const own = await strict.tenant()
    const refused = await own.call('POST', '/dns/servers', { name: 'private', host: '127.0.0.1', port: server.port })
    expect(Object.keys(refused.body.errors)).toEqual(['host'])
    const saved = await made('/dns/servers', { name: 'public', host: '8.8.8.8', port: server.port }, own.call)
    const body = { name: 'moved.example', verify_interval_minutes: 0, server_ids: [saved.id] }
    const zone = await made('/dns/zones', body, own.call)
    // The name now leads elsewhere: what is saved is a name that this host resolves to itself.
    await strict.hub.database.client`update dns_servers set host = 'localhost' where id = ${saved.id}`
    expect((await sync(zone, own.call)).status).toBe(202)
    const run = await until('the run has ended', async () => {
      const { last_run } = (await own.call('GET', `/dns/zones/${zone.id}`)).body.data
      return last_run?.finished_at ? last_run : null
    })
    expect([run.state, run.error, server.asked()]).toEqual(['failed', 'target_not_allowed', 0])
  } finally {
    server.close()
    await strict.running.stop()
  }
})

test('[RES-034] of more acts in a minute than a company has, one answers 429 and says when to come again', async () => {
  const own = await hub.tenant()
  const zone = await zoneAt(9, own.call)
  let allowed = 0
  // On a slow host a minute ends meanwhile: then there are more.
  for (; allowed < 300; allowed++) {
    const { status, headers } = await sync(zone, own.call)
    if (status === 202) continue
    expect(status).toBe(429)
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    break
  }
  expect(allowed).toBeGreaterThanOrEqual(30)
  expect(allowed).toBeLessThan(300)
  // Another company has its own.
  expect((await sync(await zoneAt(9))).status).toBe(202)
})

test('[RES-015] [RES-016] what others name is not deleted, and only referrers that the caller may view are named', async () => {
  const subnet = await made('/subnets', { cidr: '10.50.0.0/24' })
  const server = await made('/servers', { name: 'named', subnet_id: subnet.id })
  const refused = await tenant.call('DELETE', `/subnets/${subnet.id}`)
  expect([refused.status, refused.body.reason, refused.body.referrers_total]).toEqual([409, 'in_use', 1])
  expect(refused.body.referrers).toEqual([{ kind: 'server', id: server.id, name: 'named', field: 'subnet_id' }])
  const blind = await hub.user(tenant.companyId, ['network.view', 'network.manage'])
  const hidden = await blind.call('DELETE', `/subnets/${subnet.id}`)
  expect([hidden.status, hidden.body.referrers, hidden.body.referrers_total]).toEqual([409, [], 1])
  await tenant.call('PATCH', `/servers/${server.id}`, { subnet_id: null })
  expect((await blind.call('DELETE', `/subnets/${subnet.id}`)).status).toBe(204)
})
