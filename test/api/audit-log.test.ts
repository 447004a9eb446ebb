// The totals of the audit log, which are kept and not counted: whatever is written, deleted and added up at the same
// moment, and whatever is asked for, they are what is there.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { writeAudit } from '../../apps/hub/audit/audit.ts'
import { type AuditFilter, addUpAuditCounts, countAudit } from '../../apps/hub/audit/audit-count.ts'
import { cleanUp } from '../../apps/hub/clean-up.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { Random, seedOf } from '../fuzz/seeded.ts'
import { type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
const random = new Random(seedOf('audit-log'))
const DAY_MS = 86_400_000
const ACTIONS = ['server.update', 'rule.create', 'agent.enroll']
const TYPES = ['server', 'rule', 'agent']
/** One of them reads like a kind of subject. */
const SUBJECT_IDS = [randomUUID(), randomUUID(), 'rule', null]
const ACTORS = [randomUUID(), randomUUID(), null]

beforeAll(async () => {
  hub = await TestHub.start({ 'database.connections': 30 })
})
afterAll(() => hub.stop())

type Entry = {
  id: string
  action: string
  actor_id: string | null
  subject_type: string
  subject_id: string | null
  created_at: string
}

/** An entry of the last days; many lie at the edge of one. */
function someEntry(): Entry {
  const todayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const dayMs = todayMs - random.pick([1, 2, 3, 5]) * DAY_MS
  const atMs = dayMs + random.pick([-1, 0, 1, Math.floor(random.float() * DAY_MS)])
  return {
    id: randomUUID(),
    action: random.pick(ACTIONS),
    actor_id: random.pick(ACTORS),
    subject_type: random.pick(TYPES),
    subject_id: random.pick(SUBJECT_IDS),
    created_at: new Date(atMs).toISOString(),
  }
}

const insert = (companyId: string, entries: readonly Entry[]) => sql`
  insert into audit_log (id, company_id, actor_type, actor_id, action, subject_type, subject_id, created_at)
  select id, ${companyId}::uuid, 'user', actor_id, action, subject_type, subject_id, created_at
  from jsonb_to_recordset(${JSON.stringify(entries)}::jsonb) as x (id uuid, actor_id uuid, action text, subject_type text,
    subject_id text, created_at timestamptz)`

/** What the API says of a filter: the total, and the ids of all pages. */
async function listed(
  tenant: Tenant,
  query: Readonly<Record<string, string>>,
): Promise<{ total: number; ids: string[] }> {
  const ids: string[] = []
  for (let page = 1; ; page++) {
    const search = new URLSearchParams({ ...query, page: String(page) })
    const { status, body } = await tenant.call('GET', `/audit-log?${search}`)
    expect(status).toBe(200)
    ids.push(...body.data.map((entry: Json) => entry.id))
    if (page >= body.meta.last_page) return { total: body.meta.total, ids }
  }
}

const someInstant = (entries: readonly Entry[]): string =>
  new Date(Date.parse(random.pick(entries).created_at) + random.pick([-1, 0, 1])).toISOString()

test('every filter of the audit log, alone and with others, lists what matches, newest first, with its exact total', async () => {
  const tenant = await hub.tenant()
  const other = await hub.tenant()
  const entries = Array.from({ length: 300 }, someEntry)
  const { db } = hub.hub.database
  // The company's own beginning.
  await db.execute(sql`delete from audit_log where company_id = ${tenant.companyId}`)
  await db.execute(insert(tenant.companyId, entries.slice(0, 200)))
  await addUpAuditCounts(db)
  await db.execute(insert(tenant.companyId, entries.slice(200)))
  await db.execute(insert(other.companyId, Array.from({ length: 50 }, someEntry)))
  // Of those of one time the last written is the newest.
  entries.reverse()
  entries.sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at))
  for (let round = 0; round < 60; round++) {
    const query: Record<string, string> = {}
    if (random.chance(0.4)) query.action = random.pick([...ACTIONS, 'nothing.done'])
    if (random.chance(0.4)) query.actor = random.pick(ACTORS) ?? randomUUID()
    if (random.chance(0.4)) query.subject = random.pick([...TYPES, ...SUBJECT_IDS]) ?? 'nothing'
    if (random.chance(0.5)) query.from = someInstant(entries)
    if (random.chance(0.5)) query.to = someInstant(entries)
    const wanted = entries.filter(
      entry =>
        (query.action === undefined || entry.action === query.action) &&
        (query.actor === undefined || entry.actor_id === query.actor) &&
        (query.subject === undefined || [entry.subject_type, entry.subject_id].includes(query.subject)) &&
        (query.from === undefined || Date.parse(entry.created_at) >= Date.parse(query.from)) &&
        (query.to === undefined || Date.parse(entry.created_at) <= Date.parse(query.to)),
    )
    expect({ query, ...(await listed(tenant, query)) }).toEqual({
      query,
      total: wanted.length,
      ids: wanted.map(entry => entry.id),
    })
  }
})

test('[AUD-007] entries of one transaction are listed in the order of writing, newest first, on every page', async () => {
  const tenant = await hub.tenant()
  const id = randomUUID()
  const count = 40
  await inTransaction(hub.hub.database.db, async tx => {
    for (let at = 0; at < count; at++)
      await writeAudit(tx, {
        companyId: tenant.companyId,
        actor: { type: 'system', id: null, name: 'hub' },
        action: 'server.update',
        subject: { type: 'server', id, name: String(at) },
      })
  })
  for (const query of ['action=server.update', `subject=${id}`]) {
    const names: string[] = []
    for (let page = 1; names.length < count; page++)
      for (const { subject } of (await tenant.call('GET', `/audit-log?${query}&page=${page}`)).body.data)
        names.push(subject.name)
    expect(names).toEqual(Array.from({ length: count }, (_, at) => String(count - 1 - at)))
  }
})

test('totals of the audit log are exact at every moment, while entries are written, taken back, deleted and counts added up', async () => {
  const { db } = hub.hub.database
  const { companyId } = await hub.tenant()
  const filters: AuditFilter[] = [
    {},
    { action: ACTIONS[0] },
    { actorId: ACTORS[0] ?? '' },
    { subject: 'rule' },
    { action: ACTIONS[1], subject: 'server' },
    { from: new Date(Date.now() - 2.5 * DAY_MS) },
  ]
  const counted = async () =>
    db.transaction(
      async tx => {
        const kept = []
        for (const filter of filters) kept.push(await countAudit(tx, companyId, filter))
        const [row] = await tx.execute<Record<string, number>>(sql`
          select count(*)::int as c0, count(*) filter (where action = ${ACTIONS[0]})::int as c1,
            count(*) filter (where actor_id = ${ACTORS[0]})::int as c2,
            count(*) filter (where subject_type = 'rule' or subject_id = 'rule')::int as c3,
            count(*) filter (where action = ${ACTIONS[1]} and (subject_type = 'server' or subject_id = 'server'))::int as c4,
            count(*) filter (where created_at >= ${filters[5]?.from?.toISOString()})::int as c5
          from audit_log where company_id = ${companyId}`)
        return { kept, there: Object.values(row ?? {}) }
      },
      { isolationLevel: 'repeatable read' },
    )
  let isWriting = true
  const taken = new Error('taken back')
  const write = (round: number) =>
    inTransaction(db, async tx => {
      if (random.chance(0.3)) await tx.db.execute(insert(companyId, Array.from({ length: 20 }, someEntry)))
      const subject = { type: random.pick(TYPES), id: random.pick(SUBJECT_IDS), name: null }
      const actor = { type: 'user', id: random.pick(ACTORS), name: null } as const
      await writeAudit(tx, { companyId, actor, action: random.pick(ACTIONS), subject })
      if (random.chance(0.1))
        // Writers that delete the same entries in another order would wait for each other.
        await tx.db.execute(sql`delete from audit_log where id in (
          select id from audit_log where company_id = ${companyId} and created_at < now() - interval '4 days' limit 10
          for update skip locked)`)
      if (round % 7 === 6) throw taken
    }).catch(error => {
      if (error !== taken) throw error
    })
  const writers = Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let round = 0; round < 40; round++) await write(round)
    }),
  ).finally(() => {
    isWriting = false
  })
  const adders = [0, 1].map(async () => {
    while (isWriting) await addUpAuditCounts(db)
  })
  let looks = 0
  for (; isWriting; looks++) {
    const { kept, there } = await counted()
    expect(kept).toEqual(there)
  }
  await Promise.all([writers, ...adders])
  expect(looks).toBeGreaterThan(0)
  const last = await counted()
  expect(last.kept).toEqual(last.there)
  expect(last.there[0]).toBeGreaterThan(250)
})

test('old entries leave the totals with the clean-up, and leave no counts behind', async () => {
  const { db } = hub.hub.database
  await hub.holdTask('clean_up')
  const tenant = await hub.tenant()
  const old = (days: number): Entry => ({
    ...someEntry(),
    created_at: new Date(Date.now() - days * DAY_MS).toISOString(),
  })
  await db.execute(insert(tenant.companyId, [old(399), ...Array.from({ length: 30 }, () => old(402))]))
  const to = new Date(Date.now() - DAY_MS).toISOString()
  expect((await listed(tenant, { to })).total).toBe(31)
  await cleanUp(hub.hub)
  expect((await listed(tenant, { to })).total).toBe(1)
  const left = await db.execute(sql`
    select count from audit_log_counts where company_id = ${tenant.companyId} and day < (now() - interval '1 day')::date`)
  expect([...left]).toEqual([{ count: '1' }])
})
