// What the hub does by the clock: which tasks are begun.
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { until } from '../support/until.ts'
import { TestHub } from './hub-harness.ts'

setDefaultTimeout(60_000)
const hub = await TestHub.start()
const own = await hub.tenant()
const { client: sql } = hub.hub.database
afterAll(() => hub.stop())

/** The task is due: its last run was long ago. */
const makeDue = (name: string) => sql`
  insert into system_settings (key, value, updated_at) values (${`schedule.${name}`}, 'true', now() - interval '2 days')
  on conflict (key) do update set updated_at = excluded.updated_at`

async function isBegun(name: string): Promise<boolean> {
  const [row] = await sql`
    select 1 from system_settings where key = ${`schedule.${name}`} and updated_at > now() - interval '1 day'`
  return row !== undefined
}

test('a task that has no rows to work on makes no job, and is begun when there are some', async () => {
  await makeDue('subnet_usage')
  await makeDue('clean_up')
  await until('a later look at what is due', () => isBegun('clean_up'))
  expect(await isBegun('subnet_usage')).toBe(false)
  const made = await own.call('POST', '/subnets', { name: 'office', cidr: '10.8.0.0/24' })
  expect(made.status).toBe(201)
  await until('the use of the new subnet', () => isBegun('subnet_usage'))
  await until('that it is worked out', async () => {
    const [row] = await sql`select 1 from subnets where id = ${made.body.data.id} and not usage_stale`
    return row !== undefined
  })
})
