// Companies below one another: they share an agent quota, and however they are moved at once they stay a tree.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { changeParent, changePlan } from '../../apps/hub/companies/companies.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { type Answer, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let collector: Awaited<ReturnType<TestHub['collector']>>
beforeAll(async () => {
  hub = await TestHub.start({ 'database.connections': 20, 'limits.companies_per_company': 4 })
  collector = await hub.collector()
})
afterAll(() => hub.stop())

/** A company of the account that works by itself, without a plan of its own. */
const childOf = (parent: Tenant): Promise<Tenant> => hub.tenant({}, { parentId: parent.companyId })
const license = (by: Tenant, max_uses: number): Promise<Answer> =>
  by.call('POST', '/monitoring/licenses', { name: 'l', max_uses })
const quotaOf = async (by: Tenant): Promise<Json> => (await by.call('GET', '/monitoring/licenses/quota')).body.data

type Enroll = (name: string) => Promise<Answer>

/**
 * Ways to enroll servers of these companies, with licences of more uses than the quota has: what is looked at is the
 * quota.
 */
async function enrollments(members: readonly Tenant[]): Promise<Enroll[]> {
  const tokens: string[] = []
  for (const member of members) {
    await member.call('PATCH', '/monitoring/settings', { auto_create_server: true })
    tokens.push((await license(member, 1)).body.token)
  }
  for (const { companyId } of members)
    await hub.hub.database.client`update monitoring_licenses set max_uses = 100 where company_id = ${companyId}`
  return tokens.map(
    token => name => collector.call('POST', '/enroll', { license: token, hostname: name, machine_id: randomUUID() }),
  )
}

describe('the agent quota', () => {
  test('[LIC-016] [LIC-034] licences of a company and of all companies below it stay within its quota together', async () => {
    const parent = await hub.tenant({ agent_quota: 10, metrics_retention_days: null })
    const [child, other] = [await childOf(parent), await childOf(parent)]
    const grandchild = await childOf(child)
    expect((await license(parent, 4)).status).toBe(201)
    const made = await license(grandchild, 5)
    expect(made.status).toBe(201)
    const over = await license(other, 2)
    expect([over.status, over.body.errors.max_uses]).toEqual([
      422,
      ['the sum of all licenses would be 11, over the agent quota of 10'],
    ])
    expect((await license(other, 1)).status).toBe(201)
    expect((await license(parent, 1)).status).toBe(422)
    const path = `/monitoring/licenses/${made.body.data.id}`
    expect((await grandchild.call('PATCH', path, { max_uses: 6 })).status).toBe(422)
    expect((await grandchild.call('PATCH', path, { max_uses: 4 })).status).toBe(200)
    for (const member of [parent, child, other, grandchild])
      expect(await quotaOf(member)).toMatchObject({ agent_quota: 10, licensed_uses: 9, remaining: 1 })
  })

  test('a company with a plan or a quota of its own has that for itself and for those below it', async () => {
    const parent = await hub.tenant({ agent_quota: 2, metrics_retention_days: null })
    const own = await hub.tenant({ agent_quota: 5 }, { parentId: parent.companyId })
    const below = await childOf(own)
    expect((await license(parent, 2)).status).toBe(201)
    expect((await license(below, 3)).status).toBe(201)
    expect((await license(own, 3)).status).toBe(422)
    expect((await license(own, 2)).status).toBe(201)
    expect(await quotaOf(parent)).toMatchObject({ agent_quota: 2, licensed_uses: 2 })
    // When it ends, the parent's counts again, for all of them; nothing that is there goes.
    const ended = { expiresAt: new Date(Date.now() - 1000) }
    await inTransaction(hub.hub.database.db, tx => changePlan(hub.hub, tx, own.companyId, ended))
    expect(await quotaOf(below)).toMatchObject({ agent_quota: 2, licensed_uses: 7, remaining: 0 })
  })

  test('[ENR-015] [ENR-016] [ENR-018] agents of all companies that share a quota count, also of those that enroll at the same moment', async () => {
    const parent = await hub.tenant({ agent_quota: 6, metrics_retention_days: null })
    const members = [parent, await childOf(parent), await childOf(parent)]
    const enrolls = await enrollments(members)
    const answers = await Promise.all(
      Array.from({ length: 18 }, (_, n) => enrolls[n % 3]!(`host-${n}-${randomUUID().slice(0, 8)}`)),
    )
    expect(answers.filter(answer => answer.status === 201)).toHaveLength(6)
    expect(new Set(answers.filter(answer => answer.status !== 201).map(answer => answer.body.error.code))).toEqual(
      new Set(['quota_exceeded']),
    )
    expect(await quotaOf(members[2]!)).toMatchObject({ agent_quota: 6, agents: 6 })
  })

  test('[LIC-016] licences made at once in companies that share a quota keep their sum within it', async () => {
    const parent = await hub.tenant({ agent_quota: 20, metrics_retention_days: null })
    const members = [parent, await childOf(parent), await childOf(parent)]
    const answers = await Promise.all(Array.from({ length: 24 }, (_, n) => license(members[n % 3]!, 3)))
    expect(answers.filter(answer => answer.status === 201)).toHaveLength(6)
    expect(answers.filter(answer => answer.status >= 500)).toEqual([])
  })
})

describe('moves', () => {
  test('two moves at the same moment never make a circle: one of them is refused', async () => {
    const parent = await hub.tenant()
    const made = async (name: string): Promise<string> =>
      (await parent.call('POST', '/companies', { name })).body.data.id
    const [a, b] = [await made('a'), await made('b')]
    const move = (id: string, parent_id: string) => parent.call('PATCH', `/companies/${id}`, { parent_id })
    for (let round = 0; round < 15; round++) {
      for (const id of [a, b]) expect((await move(id, parent.companyId)).status).toBe(200)
      const answers = await Promise.all([move(a, b), move(b, a)])
      expect(answers.map(answer => answer.status).sort()).toEqual([200, 422])
      const refused = answers.find(answer => answer.status === 422)
      expect(Object.keys(refused?.body.errors)).toEqual(['parent_id'])
      const tree = await parent.call('GET', '/companies')
      expect(tree.body.meta.total).toBe(3)
    }
  }, 120_000)

  test('moves between trees do not either', async () => {
    const { db, client } = hub.hub.database
    const move = (id: string, to: string): Promise<string> =>
      inTransaction(db, tx => changeParent(hub.hub, tx, id, to)).then(
        () => 'moved',
        () => 'refused',
      )
    for (let round = 0; round < 10; round++) {
      const tops = [await hub.tenant(), await hub.tenant(), await hub.tenant()].map(each => each.companyId)
      const outcomes = await Promise.all(tops.map((id, n) => move(id, tops[(n + 1) % 3]!)))
      expect(outcomes.sort()).toEqual(['moved', 'moved', 'refused'])
      const [row] =
        await client`select count(*)::int as tops from companies where id = any(${tops}) and parent_id is null`
      expect(row?.tops).toBe(1)
    }
  }, 120_000)

  test('a company has so many companies below it, at every depth', async () => {
    const parent = await hub.tenant()
    const make = (parent_id?: string) =>
      parent.call('POST', '/companies', { name: 'c', ...(parent_id && { parent_id }) })
    const first = (await make()).body.data.id
    for (const at of [first, first, undefined]) expect((await make(at)).status).toBe(201)
    const over = await make(first)
    expect([over.status, over.body.reason, over.body.errors.limit]).toEqual([
      422,
      'company_quota',
      ['a company has at most 4 companies below it; this one would have 5'],
    ])
    expect((await parent.call('DELETE', `/companies/${first}`)).status).toBe(204)
    expect((await make()).status).toBe(201)
  })

  test('a company below has no such number of its own: all of the tree count', async () => {
    const parent = await hub.tenant()
    const child = await childOf(parent)
    const make = (by: Tenant) => by.call('POST', '/companies', { name: 'c' })
    for (const by of [child, child, parent]) expect((await make(by)).status).toBe(201)
    const answers = await Promise.all([make(child), make(parent), make(child)])
    expect(answers.map(answer => answer.body.reason)).toEqual(Array(3).fill('company_quota'))
  })

  test('a tree has 32 levels, by making companies and by moving them: no company is beyond the reach of those above', async () => {
    const root = await hub.user((await hub.tenant()).companyId, ['*'], { superAdmin: true })
    const top = await hub.tenant()
    const make = async (parent_id: string): Promise<Answer> => root.call('POST', '/companies', { name: 'c', parent_id })
    const levels = [top.companyId]
    while (levels.length < 32) levels.push((await make(levels.at(-1)!)).body.data.id)
    const text = ['companies stand below one another on at most 32 levels']
    const deeper = await make(levels.at(-1)!)
    expect([deeper.status, deeper.body.errors?.parent_id]).toEqual([422, text])
    const second = (await make(top.companyId)).body.data.id
    await make(second)
    const moved = await root.call('PATCH', `/companies/${second}`, { parent_id: levels.at(-2) })
    expect([moved.status, moved.body.errors?.parent_id]).toEqual([422, text])
    expect((await root.call('PATCH', `/companies/${second}`, { parent_id: levels.at(-3) })).status).toBe(200)
  })
})
