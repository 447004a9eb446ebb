// Many writers at once: transactions that want the same locks end all the same, and what the database breaks off is run
// again.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { changePlan } from '../../apps/hub/companies/companies.ts'
import { sqlState } from '../../apps/hub/platform/db/connect.ts'
import { inTransaction, lockCompany } from '../../apps/hub/platform/db/transaction.ts'
import { Random, seedOf } from '../fuzz/seeded.ts'
import { type Json, type Tenant, TestHub, until } from './hub-harness.ts'

const CLIENTS = 32
const COMPANIES = 10
const WRITING_MS = 20_000

let hub: TestHub
const random = new Random(seedOf('contention'))

beforeAll(async () => {
  hub = await TestHub.start({ 'database.connections': 30 })
  // Without an address there is nobody to call: their jobs are over at once, which is when many start.
  await hub.collector()
  await hub.collector()
})
afterAll(() => hub.stop())

/** One thing that a client of a company does; what it makes it keeps for later. */
type Step = (company: Company) => Promise<Json>
type Company = Tenant & { readonly servers: string[]; readonly rules: string[] }

const inOneHour = () => new Date(Date.now() + 3_600_000).toISOString()
const scopeOf = ({ servers }: Company) =>
  random.chance(0.5) || servers.length === 0 ? { tags: ['web'] } : { server_ids: [random.pick(servers)] }
let names = 0

const steps: readonly Step[] = [
  async company => {
    const answer = await company.call('POST', '/servers', { name: `s${++names}`, tags: ['web'] })
    if (answer.status === 201) company.servers.push(answer.body.data.id)
    return answer
  },
  company => company.call('PATCH', `/servers/${random.pick(company.servers)}`, { status: 'maintenance' }),
  company =>
    company.call('PUT', `/servers/${random.pick(company.servers)}/tags`, { tags: [random.pick(['web', 'db'])] }),
  company => {
    const id = company.servers.length > 5 ? company.servers.shift() : randomUUID()
    return company.call('DELETE', `/servers/${id}${random.chance(0.5) ? '/permanent' : ''}`)
  },
  async company => {
    const answer = await company.call('POST', '/monitoring/rules', {
      name: `r${++names}`,
      severity: 'info',
      metric: 'cpu_load1',
      operator: '>',
      threshold: 1,
      scope: scopeOf(company),
    })
    if (answer.status === 201) company.rules.push(answer.body.data.id)
    return answer
  },
  company =>
    company.call('PATCH', `/monitoring/rules/${random.pick(company.rules)}`, {
      threshold: random.float(),
      scope: scopeOf(company),
    }),
  company =>
    company.call('DELETE', `/monitoring/rules/${company.rules.length > 5 ? company.rules.shift() : randomUUID()}`),
  company =>
    company.call('POST', '/monitoring/silences', { reason: 'work', ends_at: inOneHour(), scope: scopeOf(company) }),
  async company => {
    const made = await company.call('POST', '/monitoring/checks', {
      name: 'port',
      type: 'port',
      target: { port: 1 + (++names % 60_000), proto: 'tcp' },
      scope: scopeOf(company),
    })
    return made.status === 201 ? company.call('DELETE', `/monitoring/checks/${made.body.data.id}`) : made
  },
  async company => {
    const overrides = { metrics_retention_days: 1 + Math.floor(random.float() * 300) }
    await inTransaction(hub.hub.database.db, tx => changePlan(hub.hub, tx, company.companyId, { overrides }))
    return { status: 200 }
  },
]

test(
  '[HRL-034] 32 clients write rules, servers, silences, checks and plans of ten companies: nobody is answered 5xx, and no two wait for each other',
  async () => {
    const companies: Company[] = []
    for (let n = 0; n < COMPANIES; n++)
      companies.push({ ...(await hub.tenant()), servers: [randomUUID()], rules: [randomUUID()] })
    const startedAt = performance.now()
    const statuses = new Map<number, number>()
    const faults: string[] = []
    // On a host with other work few of them are done in that time.
    const isOver = (): boolean => {
      const ranMs = performance.now() - startedAt
      return ranMs > WRITING_MS && ((statuses.get(201) ?? 0) > 50 || ranMs > 3 * WRITING_MS)
    }
    await Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        while (!isOver()) {
          const { status, body } = await random.pick(steps)(companies[client % COMPANIES]!)
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
          if (status >= 500) faults.push(`${status} ${JSON.stringify(body)}`)
        }
      }),
    )
    const [deadlocks] = await hub.hub.database.client`
      select deadlocks::int as count from pg_stat_database where datname = current_database()`
    console.log('answers by status', Object.fromEntries(statuses))
    expect([faults, deadlocks?.count]).toEqual([[], 0])
    expect(statuses.get(201) ?? 0).toBeGreaterThan(50)
  },
  3 * WRITING_MS + 60_000,
)

describe('a transaction that the database breaks off', () => {
  /** Two transactions that lock two rows in opposite orders, `act` in each; returns how often each was run. */
  async function crossed(act: (tx: Parameters<Parameters<typeof inTransaction>[1]>[0], who: number) => void) {
    const { db } = hub.hub.database
    const [a, b] = [(await hub.tenant()).companyId, (await hub.tenant()).companyId]
    const runs = [0, 0]
    const arrived: (() => void)[] = []
    // Both hold their first lock before either asks for its second, in the first run.
    const both = Promise.all([0, 1].map(who => new Promise<void>(resolve => (arrived[who] = resolve))))
    const run = (who: number, first: string, second: string) =>
      inTransaction(db, async tx => {
        runs[who]!++
        await lockCompany(tx, first)
        arrived[who]!()
        await both
        await lockCompany(tx, second)
        await tx.db.execute(sql`update companies set name = name || ${String(who)} where id = ${second}`)
        act(tx, who)
        return who
      })
    const results = await Promise.all([run(0, a, b), run(1, b, a)])
    const names = await db.execute<{ name: string }>(
      sql`select right(name, 1) as name from companies where id in (${a}, ${b}) order by 1`,
    )
    return { runs, results, names: names.map(row => row.name) }
  }

  test('is run again, and both are done; what follows a commit happens once', async () => {
    const followed: number[] = []
    const { runs, results, names } = await crossed((tx, who) => tx.afterCommit(() => void followed.push(who)))
    expect(runs.sort()).toEqual([1, 2])
    expect([results, followed.sort(), names]).toEqual([
      [0, 1],
      [0, 1],
      ['0', '1'],
    ])
  })

  test('asks for its jobs and feed numbers anew, and gets each once', async () => {
    const { db } = hub.hub.database
    const own = await hub.tenant()
    const rows = await db.execute<{ id: string }>(sql`
      insert into servers (id, company_id, name) select gen_random_uuid(), ${own.companyId}, 's' || n from generate_series(1, 2) n
      returning id`)
    const counter = async () =>
      Number(
        (await db.execute<{ value: string }>(sql`select value from monitoring_feed_counters where feed = 'servers'`))[0]
          ?.value,
      )
    const before = await counter()
    await crossed((tx, who) => {
      tx.touch('servers', [rows[who]!.id])
      tx.leaveTombstones('servers', own.companyId, [randomUUID()])
      hub.hub.jobs.enqueue(tx, [{ queue: 'schedule', payload: { task: 'nothing' }, key: own.companyId }])
    })
    expect(await counter()).toBe(before + 4)
    const numbers = await db.execute<{ n: string }>(sql`
      select sync_version as n from servers where company_id = ${own.companyId}
      union all select sync_version from monitoring_feed_tombstones where company_id = ${own.companyId} order by 1`)
    expect(numbers.map(row => Number(row.n))).toEqual([1, 2, 3, 4].map(n => before + n))
  })

  test('ends with its fault where it is broken off each time, and any other fault is not tried again', async () => {
    const { db } = hub.hub.database
    let runs = 0
    const act = (code: string) =>
      inTransaction(db, async tx => {
        runs++
        await tx.db.execute(sql`do ${sql.raw(`$$ begin raise exception 'x' using errcode = '${code}'; end $$`)}`)
      }).catch(sqlState)
    expect([await act('40P01'), runs]).toEqual(['40P01', 8])
    runs = 0
    expect([await act('40001'), runs]).toEqual(['40001', 8])
    runs = 0
    expect([await act('23505'), runs]).toEqual(['23505', 1])
  })
})

test('jobs that many ask for at the same time are all added, however fast the ones before them start, and one starts after each commit', async () => {
  const key = randomUUID()
  const commits = 200
  let committed = 0
  let lastStart = 0
  hub.hub.jobs.register('schedule', {
    async handle(payload) {
      if (payload.key === key) lastStart = committed
    },
  })
  const ask = async () => {
    await inTransaction(hub.hub.database.db, async tx => {
      hub.hub.jobs.enqueue(tx, [{ queue: 'schedule', payload: { key }, key }])
    })
    committed++
  }
  await Promise.all(
    Array.from({ length: 25 }, async () => {
      for (let n = 0; n < commits / 25; n++) await ask()
    }),
  )
  expect(committed).toBe(commits)
  // What was asked for last is done too. A job may start before the answer that counts its commit is here.
  await until('the last job', async () => lastStart >= commits - 25)
}, 120_000)
