// Addresses that two hubs give out at once, while one of them is killed and while connections to the database are lost:
// no address twice, none skipped, nothing half, nothing stuck, and an ask that is repeated gets what it got.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { Executable } from '../support/executable.ts'
import { randomFrom } from '../support/random.ts'
import { type Call, caller, type Json, type Tenant, TestHub } from './hub-harness.ts'

setDefaultTimeout(120_000)
const CLIENTS = 16
const ASKS_EACH = 4
/** Moments at which all connections end that do something. */
const LOSSES = 8
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
console.log(`allocation-kills: SEED=${seed}`)
const random = randomFrom(seed)

let hub: TestHub
let tenant: Tenant
let killer: postgres.Sql
const folder = mkdtempSync(join(tmpdir(), 'hub-kills-'))

beforeAll(async () => {
  hub = await TestHub.start()
  tenant = await hub.tenant()
  killer = postgres(hub.databaseUrl, { max: 1, onnotice: () => {} })
})
afterAll(async () => {
  await killer.end()
  await hub.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Ask = { readonly subnet_id: string; readonly count: number; readonly request_id: string }
const addressesOf = (body: Json): string[] => body.data.map((row: Json) => row.address)
const number = (address: string) => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)

/** The addresses of an ask, which is made again, of hubs in turn, until one answers it. */
async function insist(ask: Ask, hubs: readonly Call[]): Promise<string[]> {
  for (let turn = 0; ; turn++) {
    const answer = await hubs[turn % hubs.length]!('POST', '/ips/allocate', ask).catch(() => null)
    if (answer?.status === 200 || answer?.status === 201) return addressesOf(answer.body)
    // A hub that is gone has no answer; one that lost its connection says 503.
    expect([undefined, 503]).toContain(answer?.status)
    if (turn > 200) throw new Error(`no hub answers: ${JSON.stringify(answer?.body)}`)
  }
}

/** All clients at once, each ask of another hub first. */
async function allocateAtOnce(cidr: string, subnet_id: string, hubs: readonly Call[], onGiven: () => void) {
  const given = new Map<Ask, string[]>()
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      for (let turn = 0; turn < ASKS_EACH; turn++) {
        const ask = { subnet_id, count: 1 + Math.floor(random() * 3), request_id: `${cidr} ${client}-${turn}` }
        const first = (client + turn) % hubs.length
        given.set(ask, await insist(ask, [...hubs.slice(first), ...hubs.slice(0, first)]))
        onGiven()
      }
    }),
  )
  return given
}

/** What was given is what stands: each address once, without a gap, with one entry in the log and one document. */
async function holdsTogether(cidr: string, subnet: string, given: ReadonlyMap<Ask, string[]>): Promise<void> {
  for (const [{ count }, addresses] of given) expect(addresses).toHaveLength(count)
  const all = [...given.values()].flat().sort((a, b) => number(a) - number(b))
  const first = number(cidr.split('/')[0]!) + 1
  expect(all.map(number)).toEqual(all.map((_, index) => first + index))
  const standing = await killer<{ address: string; entries: number; documents: number }[]>`
    select host(a.address) as address,
      (select count(*)::int from audit_log l where l.company_id = a.company_id and l.subject_id = a.id::text
        and l.action = 'ip_address.allocate') as entries,
      (select count(*)::int from search_documents d where d.kind = 'ip_address' and d.resource_id = a.id) as documents
    from ip_addresses a where a.subnet_id = ${subnet} and a.deleted_at is null order by a.address`
  expect([...standing]).toEqual(all.map(address => ({ address, entries: 1, documents: 1 })))
  const [counted] = await killer`select direct_used::int as used from subnets where id = ${subnet}`
  expect(counted?.used).toBe(all.length)
  const again = await Promise.all([...given.keys()].map(ask => tenant.call('POST', '/ips/allocate', ask)))
  expect(again.map(({ status, body }) => [status, addressesOf(body).sort()])).toEqual(
    [...given.values()].map(addresses => [200, [...addresses].sort()]),
  )
}

const subnetOf = async (cidr: string): Promise<string> => (await tenant.call('POST', '/subnets', { cidr })).body.data.id

test('[RES-227] [RES-229] two hubs give out one subnet while one of them is killed', async () => {
  const cidr = '10.70.0.0/22'
  const subnet = await subnetOf(cidr)
  const words = ['serve', '--database-url', hub.databaseUrl, '--listen', '127.0.0.1:0']
  const other = new Executable('hub', words, join(folder, 'ready.json'))
  const { hub_url } = await other.start()
  const killedAfter = Math.floor(random() * CLIENTS * ASKS_EACH * 0.8)
  let answers = 0
  let killed: Promise<void> | null = null
  try {
    const given = await allocateAtOnce(cidr, subnet, [tenant.call, caller(String(hub_url), tenant.token)], () => {
      answers++
      if (answers > killedAfter) killed ??= other.kill()
    })
    await killed
    await holdsTogether(cidr, subnet, given)
  } finally {
    await other.kill()
  }
})

test('[RES-227] [RES-229] connections that are lost at any moment of an allocation leave nothing half', async () => {
  const cidr = '10.80.0.0/22'
  const subnet = await subnetOf(cidr)
  const losses: Promise<number>[] = []
  let isOver = false
  /** Asked until some connection does something: what goes together has just ended when its answers come. */
  const lose = async (): Promise<number> => {
    for (;;) {
      const { count } = await killer`
        select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
          and application_name = 'hub' and state <> 'idle' and pid <> pg_backend_pid()`
      if (count > 0 || isOver) return count
    }
  }
  const given = await allocateAtOnce(cidr, subnet, [tenant.call], () => {
    if (losses.length < LOSSES && random() < 0.3) losses.push(lose())
  })
  isOver = true
  expect((await Promise.all(losses)).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0)
  await holdsTogether(cidr, subnet, given)
})
