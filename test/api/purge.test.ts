// The purge job of the hub against a collector that answers, refuses and hangs.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { purgeAtCollectors } from '../../apps/hub/collectors/collector-jobs.ts'
import { changePlan } from '../../apps/hub/companies/companies.ts'
import { hubKeys } from '../../apps/hub/config.ts'
import { runHub } from '../../apps/hub/main.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { queueOf } from '../../apps/hub/platform/jobs/retries-and-concurrency.ts'
import { AdminListener } from './admin-listener.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

let hub: TestHub
let admin: AdminListener
const ok = () => ({ status: 200, body: { data: {} } })

beforeAll(async () => {
  // The waits are the real ones: a test brings the next try forward in the database.
  // The tokens of collectors are sealed with a key that commands with only the database do not know.
  hub = await TestHub.start({
    'jobs.backoff_scale': 1,
    'jobs.poll': '50ms',
    'collector.purge_timeout': '300ms',
    'secret.key': 'known to the hub that serves',
  })
  admin = new AdminListener()
  await hub.collector(admin.url)
})
afterAll(async () => {
  await admin.stop()
  await hub.stop()
})
afterEach(() => {
  admin.answer = ok
})

const sql = (strings: TemplateStringsArray, ...values: string[]) => hub.hub.database.client(strings, ...values)
let names = 0
const server = async (by: Tenant): Promise<string> =>
  (await by.call('POST', '/servers', { name: `purged-${++names}` })).body.data.id
const destroy = async (by: Tenant, id: string) => {
  await by.call('DELETE', `/servers/${id}`)
  expect((await by.call('DELETE', `/servers/${id}/permanent`)).status).toBe(204)
}
const calls = (id: string): number => admin.count('DELETE', `/servers/${id}/data`)
type JobRow = { id: string; state: string; retry_count: number; wait: number; output: Json }
const jobOf = async (id: string): Promise<JobRow | null> =>
  (
    await sql`select id, state, retry_count, output, extract(epoch from start_after - now())::float as wait
      from pgboss.job where name = 'collector.purge' and data->>'id' = ${id}`
  )[0] as unknown as JobRow | null
const jobIn = (id: string, state: string, tries = 1) =>
  until(`the job is ${state}`, async () => {
    const job = await jobOf(id)
    return job?.state === state && job.retry_count === tries - 1 ? job : null
  })
const audited = async (by: Tenant, id: string): Promise<string[]> =>
  (await by.call('GET', `/audit-log/subjects/server/${id}`)).body.data.map((entry: Json) => entry.action)

describe('when the collector is told', () => {
  test('[PUR-015 PUR-019 PUR-022] a permanent deletion purges once, after its commit; a soft one does not; 200 ends the job', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    expect((await own.call('DELETE', `/servers/${id}`)).status).toBe(204)
    expect(await jobOf(id)).toBeUndefined()
    const seen: boolean[] = []
    admin.answer = async ({ path }) => {
      if (path === `/servers/${id}/data`) seen.push((await sql`select id from servers where id = ${id}`).length > 0)
      return ok()
    }
    await own.call('DELETE', `/servers/${id}/permanent`)
    const job = await jobIn(id, 'completed')
    expect([calls(id), seen, job.retry_count]).toEqual([1, [false], 0])
    const [asked] = admin.asked.filter(item => item.path === `/servers/${id}/data`)
    expect(asked?.query.get('company_id')).toBe(own.companyId)
    expect(asked?.token).toBeString()
    expect(await audited(own, id)).toContain('purge.done')
  })

  test('[PUR-023] a plan that is suspended, cut down or over does not purge', async () => {
    const own = await hub.tenant()
    await server(own)
    expect(await runHub(['company', 'suspend', own.companyId, '--database-url', hub.databaseUrl, '--json'])).toBe(0)
    await inTransaction(hub.hub.database.db, tx =>
      changePlan(hub.hub, tx, own.companyId, { overrides: { agent_quota: 0, metrics_retention_days: 1 } }),
    )
    expect(
      await sql`select id from pgboss.job where name = 'collector.purge' and data->>'company_id' = ${own.companyId}`,
    ).toHaveLength(0)
  })

  const command = async (...words: string[]): Promise<void> =>
    expect(await runHub([...words, '--database-url', hub.databaseUrl, '--json'])).toBe(0)

  test('[PUR-015] [PUR-016] [PUR-025] commands that know nothing but the database reach the collector by the hub that serves', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    await command('server', 'delete', id, '--permanent')
    await jobIn(id, 'completed')
    const [asked] = admin.asked.filter(item => item.path === `/servers/${id}/data`)
    expect(asked?.token).toStartWith('adm_')
    await command('company', 'purge', own.companyId, '--yes')
    await jobIn(own.companyId, 'completed')
    expect(admin.count('DELETE', `/companies/${own.companyId}/data`)).toBe(1)
  })

  test('[RET-013] a change of retention by command is told to the collector at once', async () => {
    const own = await hub.tenant({ metrics_retention_days: 10 })
    const before = admin.count('POST', '/reload/settings')
    await command('company', 'plan', own.companyId, '--retention-days', '20')
    await until('it is told', async () => admin.count('POST', '/reload/settings') > before)
  })

  test('[PUR-015] a collector without an address has nothing to be told, but is not purged', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    const silent = await hub.collector()
    await command('company', 'plan', own.companyId, '--retention-days', '5')
    await destroy(own, id)
    const states = await until('both have ended', async () => {
      const rows = await sql`select data->>'collector_id' as collector, state, output from pgboss.job
        where name = 'collector.purge' and data->>'id' = ${id} and state in ('completed', 'failed')`
      return rows.length === 2 && rows
    })
    const failed = states.find(row => row.state === 'failed')
    expect([failed?.collector, failed?.output.message]).toEqual([
      silent.id,
      'the collector has no address of its admin API',
    ])
    await until('the failure is audited', async () => (await audited(own, id)).includes('purge.failed'))
    await until('every reload has ended', async () => {
      const rows =
        await sql`select state from pgboss.job where name = 'collector.reload' and data->>'collector_id' = ${silent.id}`
      return rows.length > 0 && rows.every(row => row.state === 'completed')
    })
    await sql`delete from monitoring_collectors where id = ${silent.id}`
  })

  test('[PUR-015] a deletion that is rolled back leaves no job', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    const failing = inTransaction(hub.hub.database.db, async tx => {
      await purgeAtCollectors(hub.hub, tx, { scope: 'server', company_id: own.companyId, id })
      throw new Error('rolled back')
    })
    await expect(failing).rejects.toThrow('rolled back')
    expect(await jobOf(id)).toBeUndefined()
  })
})

describe('how often', () => {
  test('[PUR-017 PUR-018 PUR-021] ten tries, 30, 60, 120, 300 and then 600 seconds apart; then it has failed, and the audit log says so', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    // Everything that is tried again, in turn: refused token, faults, an answer that never comes, a closed connection.
    const answers = [401, 403, 500, 502, 503, 504, 429, 401, 500, 503]
    admin.answer = async ({ path }) => {
      if (path !== `/servers/${id}/data`) return ok()
      return { status: answers[calls(id) - 1] ?? 500, body: { error: { code: 'x', message: 'x' } } }
    }
    await destroy(own, id)
    const waits: number[] = []
    for (let tries = 1; tries < 10; tries++) {
      const job = await jobIn(id, 'retry', tries)
      waits.push(job.wait)
      await sql`update pgboss.job set start_after = now() where id = ${job.id}`
    }
    const expected = [30, 60, 120, 300, 600, 600, 600, 600, 600]
    for (const [at, wait] of waits.entries()) {
      // The two times that it is the difference of are of two clocks' readings.
      expect(wait).toBeLessThan((expected[at] ?? 0) + 1)
      expect(wait).toBeGreaterThan((expected[at] ?? 0) - 5)
    }
    const failed = await jobIn(id, 'failed', 10)
    expect([calls(id), failed.output.message]).toEqual([10, 'the collector answered 503 to a purge'])
    await until('the failure is audited', async () => (await audited(own, id)).includes('purge.failed'))
  })

  test('[PUR-020] 400 ends the job at once, and so do 404 and 405', async () => {
    const own = await hub.tenant()
    for (const status of [400, 404, 405]) {
      const id = await server(own)
      admin.answer = ({ path }) => (path === `/servers/${id}/data` ? { status, body: {} } : ok())
      await destroy(own, id)
      const job = await jobIn(id, 'failed')
      expect([calls(id), job.output.message]).toEqual([1, `the collector answered ${status} to a purge`])
      await until('the failure is audited', async () => (await audited(own, id)).includes('purge.failed'))
    }
  })

  test('[PUR-021] a collector that cannot be reached is tried again', async () => {
    const own = await hub.tenant()
    const id = await server(own)
    await sql`update monitoring_collectors set admin_url = 'http://127.0.0.1:1'`
    await destroy(own, id)
    const { id: jobId } = await jobIn(id, 'retry')
    await sql`update monitoring_collectors set admin_url = ${admin.url}`
    await sql`update pgboss.job set start_after = now() where id = ${jobId}`
    await jobIn(id, 'completed', 2)
    expect(calls(id)).toBe(1)
  })

  test('[PUR-024] the call is given up after 30 seconds, and tried again; others are not held up, and the metrics tell', async () => {
    expect(hubKeys['collector.purge_timeout'].default).toBe(30_000)
    // The lease of a try outlasts its call.
    expect(queueOf('collector.purge').leaseSeconds).toBeGreaterThan(30)
    const own = await hub.tenant()
    const [hanging, other] = [await server(own), await server(own)]
    const { promise, resolve } = Promise.withResolvers<ReturnType<typeof ok>>()
    admin.answer = ({ path }) => (path === `/servers/${hanging}/data` ? promise : ok())
    await destroy(own, hanging)
    await destroy(own, other)
    await jobIn(other, 'completed')
    const job = await jobIn(hanging, 'retry')
    resolve(ok())
    expect(job.output.message).toMatch(/timed? ?out/i)
    const metrics = await (await fetch(`${hub.running.opsUrl}/metrics`)).text()
    expect(metrics).toContain('hub_queue_depth{queue="collector.purge"} 1')
    expect(metrics).toContain('hub_jobs_total{job="collector.purge",result="retried"}')
    await sql`update pgboss.job set start_after = now() where id = ${job.id}`
    await jobIn(hanging, 'completed', 2)
  })
})
