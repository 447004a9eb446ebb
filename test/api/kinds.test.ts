// The rules that hold for every kind of resource, kind by kind as the registry has them (resources.md 1).
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { getTableColumns, sql } from 'drizzle-orm'
import { getTableConfig } from 'drizzle-orm/pg-core'
import { manifestKinds } from '../../apps/hub/iac/kinds/all-manifest-kinds.ts'
import { kinds } from '../../apps/hub/kinds.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { setConditions } from '../../apps/hub/resources/conditions.ts'
import type { Kind } from '../../apps/hub/resources/kind.ts'
import { onePath } from '../../apps/hub/resources/kind-routes.ts'
import { tellConditions } from '../../apps/hub/resources/tell-conditions.ts'
import { manifestKindNames } from '../../core/iac/kind-names.ts'
import { type Answer, type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'
import { kindSamples } from './kind-samples.ts'

let hub: TestHub
let tenant: Tenant
let foreign: Tenant
let viewer: Call

beforeAll(async () => {
  hub = await TestHub.start({ 'webhooks.allow_private': true })
  await hub.holdTask('conditions')
  tenant = await hub.tenant()
  foreign = await hub.tenant()
  viewer = (await hub.user(tenant.companyId, [...new Set(kinds.map(kind => kind.info.permissions.view))])).call
})
afterAll(() => hub.stop())

let sampleCount = 0
const sampleOf = (kind: Kind) => {
  const sample = kindSamples[kind.info.kind]
  if (!sample) throw new Error(`test/api/kind-samples.ts has no sample of ${kind.info.kind}`)
  return sample
}

type Made = { readonly data: Json; readonly list: string; readonly one: string; readonly body: Json }

/** The path of the collection; for a part, of a parent that is made for it. */
async function listPath(kind: Kind, by: Call): Promise<string> {
  if (!kind.parent) return kind.info.path
  const { of } = kind.parent
  return (await make(of, by)).one + kind.info.path.slice(onePath(of).length)
}

async function make(kind: Kind, by: Call = tenant.call, more: Json = {}, list?: string): Promise<Made> {
  const path = list ?? (await listPath(kind, by))
  const body = { ...(await sampleOf(kind).body(sampleCount++, by)), ...more }
  const answer = await by('POST', path, body)
  if (answer.status !== 201) throw new Error(`${kind.info.kind}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return { data: answer.body.data, list: path, one: `${path}/${answer.body.data.id}`, body }
}

const has = (kind: Kind, ...routes: Kind['without'][number][]) => routes.every(name => !kind.without.includes(name))
const statusOf = async (answer: Promise<Answer>) => (await answer).status
const auditOf = async (id: string): Promise<Json[]> =>
  (await tenant.call('GET', `/audit-log?subject=${id}`)).body.data.map((entry: Json) => entry)

/** What a restored resource has as before: all but its version and times. */
const lasting = ({ version, updated_at, updated_by, ...rest }: Json): Json => rest

const COMMON = [
  'id',
  'company_id',
  'name',
  'description',
  'tags',
  'owner_team',
  'status',
  'version',
  'origin',
  'health',
]
const STAMPS = ['drifted', 'created_by', 'updated_by', 'created_at', 'updated_at', 'deleted_at']
const SHOWN_ONLY = ['conditions', 'drift', 'last_run', 'last_runs']

test('workflows, tickets and runs know every kind of manifests: core/iac/kind-names.ts names them all', () => {
  expect<string[]>([...manifestKindNames].sort()).toEqual(manifestKinds.map(({ kind }) => kind).sort())
})

for (const kind of kinds.filter(each => has(each, 'list', 'create', 'change', 'delete'))) {
  const { info } = kind
  describe(info.kind, () => {
    test('[RES-001] answers have the common fields, and lists all but those of one resource', async () => {
      const { data, list, one } = await make(kind)
      expect(Object.keys(data)).toEqual(expect.arrayContaining([...COMMON, ...STAMPS, ...SHOWN_ONLY]))
      expect(data).toMatchObject({ company_id: tenant.companyId, version: 1, origin: 'manual', deleted_at: null })
      const [row] = (await tenant.call('GET', list)).body.data
      expect(Object.keys(row)).toEqual(expect.arrayContaining([...COMMON, ...STAMPS]))
      for (const name of SHOWN_ONLY) expect(Object.keys(row)).not.toContain(name)
      if (has(kind, 'show')) expect((await tenant.call('GET', one)).body.data).toEqual(data)
    })

    test('the table in the database is that of the definition, and its triggers keep search', async () => {
      const columns = await hub.hub.database.db.execute<{ name: string; nullable: string }>(sql`
        select column_name as name, is_nullable as nullable from information_schema.columns where table_name = ${info.table}`)
      const config = getTableConfig(kind.table)
      expect(columns.map(column => column.name).sort()).toEqual(config.columns.map(column => column.name).sort())
      const mayBeNull = columns.filter(column => column.nullable === 'YES').map(column => column.name)
      const expected = Object.values(getTableColumns(kind.table)).flatMap(each => (each.notNull ? [] : [each.name]))
      expect(mayBeNull.sort()).toEqual(expected.sort())
      const triggers = await hub.hub.database.db.execute<{ text: string }>(sql`
        select pg_get_triggerdef(oid) as text from pg_trigger where tgrelid = ${info.table}::regclass and not tgisinternal`)
      const text = triggers.map(trigger => trigger.text).join('\n')
      expect(text).toContain(`keep_search_document('${info.kind}'`)
      // Addresses have one of their own, which does not turn the row into JSON.
      expect(text).toContain(info.kind === 'ip_address' ? 'keep_ip_address_text()' : 'keep_search_text(')
      const [, nameColumn = '', words = '', exact = ''] =
        /keep_search_document\('\w+', '(\w+)', '([\w,]*)', '([\w,]*)'\)/.exec(text) ?? []
      const found = { text: [nameColumn, 'tags', ...words.split(',')], exact: exact.split(',') }
      const forgotten = Object.entries(kind.fields).flatMap(([name, { search }]) =>
        search === undefined || found[search].includes(name) ? [] : [`${name} is not searched by ${search}`],
      )
      expect(forgotten).toEqual([])
    })

    test("[RES-002] [RES-003] [RES-007] what is another company's is not listed, and its id is unknown", async () => {
      const { data, list, one } = await make(kind)
      expect((await tenant.call('GET', list)).body.data.map((row: Json) => row.company_id)).toContain(tenant.companyId)
      const unknown = await foreign.call('PATCH', one.replace(data.id, crypto.randomUUID()), {})
      expect(unknown.status).toBe(404)
      for (const [method, body] of [
        ['PATCH', { status: 'retired' }],
        ['DELETE', undefined],
      ] as const) {
        const answer = await foreign.call(method, one, body)
        expect([answer.status, answer.body]).toEqual([404, unknown.body])
      }
      if (has(kind, 'show')) expect((await foreign.call('GET', one)).body).toEqual(unknown.body)
      if (!kind.parent) expect((await foreign.call('GET', list)).body.data).toEqual([])
    })

    test('[RES-004] a reference to what another company has is an unknown one', async () => {
      const { one } = await make(kind)
      for (const [name, { to, readOnly, immutable, value }] of Object.entries(kind.fields)) {
        if (to === undefined || readOnly || immutable) continue
        const wrong = crypto.randomUUID()
        const answer = await tenant.call('PATCH', one, { [name]: value.type === 'array' ? [wrong] : wrong })
        expect([name, answer.status]).toEqual([name, 422])
        expect(Object.keys(answer.body.errors)).toEqual([value.type === 'array' ? `${name}.0` : name])
      }
      if (kind.parent) return
      const team = (await foreign.call('POST', '/teams', { name: crypto.randomUUID() })).body.data.id
      const answer = await tenant.call('PATCH', one, { owner_team_id: team })
      expect(answer.body.errors).toEqual({ owner_team_id: ['does not exist in this company'] })
    })

    test('[RES-005] without the manage permission nothing is written, without the view permission nothing read', async () => {
      const { data, list, one, body } = await make(kind)
      expect(await statusOf(viewer('GET', list))).toBe(200)
      for (const call of [
        viewer('POST', list, body),
        viewer('PATCH', one, sampleOf(kind).change),
        viewer('DELETE', one),
      ])
        expect(await statusOf(call)).toBe(403)
      const nobody = (await hub.user(tenant.companyId, ['servers.view'])).call
      expect(await statusOf(nobody('GET', list))).toBe(403)
      const [row] = (await tenant.call('GET', `${list}?sort=-created_at`)).body.data
      expect([row.id, row.version]).toEqual([data.id, 1])
    })

    test('[RES-006] [RES-007] [RES-014] a name is taken without regard to case until its resource is deleted', async () => {
      if (!kind.fields.name || kind.fields.name.readOnly || !(await isNameUnique(kind))) return
      const name = sampleOf(kind).name?.() ?? `Name ${crypto.randomUUID()}`
      const { list, one, data } = await make(kind, tenant.call, { name })
      const sample = await sampleOf(kind).body(sampleCount++, tenant.call)
      const taken = await tenant.call('POST', list, { ...sample, name: name.toUpperCase() })
      expect([taken.status, Object.keys(taken.body.errors ?? {})]).toEqual([422, ['name']])
      if (!kind.parent) await make(kind, foreign.call, { name })
      expect(await statusOf(tenant.call('DELETE', one))).toBe(204)
      const again = await make(kind, tenant.call, { name }, list)
      const refused = await tenant.call('PATCH', one, { deleted_at: null })
      expect([refused.status, Object.keys(refused.body.errors ?? {})]).toEqual([422, ['name']])
      await tenant.call('DELETE', again.one)
      const restored = await tenant.call('PATCH', one, { deleted_at: null })
      expect(restored.status).toBe(200)
      const { version, updated_at, updated_by, ...rest } = restored.body.data
      expect(rest).toMatchObject({ id: data.id, name, deleted_at: null, created_at: data.created_at })
    })

    test('[RES-008] [RES-017] a change raises the version and is in the audit log, one that changes nothing is not', async () => {
      const { data, one } = await make(kind)
      const { change } = sampleOf(kind)
      // An answer can be sent back as it is (R-076).
      const back = await tenant.call('PATCH', one, data)
      expect([back.status, back.body.data?.version, back.body.errors]).toEqual([200, 1, undefined])
      const changed = (await tenant.call('PATCH', one, change)).body.data
      expect(changed).toMatchObject({ ...change, version: 2, updated_by: { id: tenant.userId } })
      const same = await tenant.call('PATCH', one, { ...change, made_up: 1, version: 2 })
      expect([same.body.data.version, same.body.data.updated_at]).toEqual([2, changed.updated_at])
      await tenant.call('DELETE', one)
      await tenant.call('PATCH', one, { deleted_at: null })
      const entries = await auditOf(data.id)
      expect(entries.map(entry => entry.action).reverse()).toEqual(
        ['create', 'update', 'delete', 'restore'].map(verb => `${info.kind}.${verb}`),
      )
      const [field = ''] = Object.keys(change)
      expect(entries[2].changes[field]).toEqual({ old: data[field] ?? null, new: changed[field] })
    })

    test('[check 16.4] [RES-009] [RES-011] an old version is refused with the current one, a known one is not sent again', async () => {
      const { one } = await make(kind)
      const { change } = sampleOf(kind)
      await tenant.call('PATCH', one, change, { 'If-Match': '"1"' })
      const old = await tenant.call('PATCH', one, { description: 'late' }, { 'If-Match': '"1"' })
      expect([old.status, old.body.reason, old.body.current_version]).toEqual([412, 'version_conflict', 2])
      const body = await tenant.call('PATCH', one, { description: 'late', version: 1 })
      expect([body.status, body.body.reason, body.body.current_version]).toEqual([409, 'version_conflict', 2])
      const weak = await tenant.call('PATCH', one, { description: 'late' }, { 'If-Match': 'W/"2"' })
      expect(weak.status).toBe(412)
      const listed = await tenant.call('PATCH', one, { description: 'in time' }, { 'If-Match': '"1", "2"' })
      expect([listed.status, listed.headers.get('etag')]).toEqual([200, '"3"'])
      const current = await tenant.call('PATCH', one, { description: 'by version', version: 3 })
      expect([current.status, current.body.data.version, current.body.data.description]).toEqual([200, 4, 'by version'])
      const matched = await tenant.call('PATCH', one, { description: 'by header' }, { 'If-Match': '"4"' })
      expect([matched.status, matched.body.data.version, matched.body.data.description]).toEqual([200, 5, 'by header'])
      if (!has(kind, 'show')) return
      const known = await tenant.call('GET', one, undefined, { 'If-None-Match': '"5"' })
      expect([known.status, known.body]).toEqual([304, null])
      expect(await statusOf(tenant.call('GET', one, undefined, { 'If-None-Match': '"4"' }))).toBe(200)
    })

    test('[check 16.5] [RES-010] of changes side by side with one If-Match exactly one succeeds', async () => {
      const { one } = await make(kind)
      const calls = Array.from({ length: 20 }, (_, index) =>
        statusOf(tenant.call('PATCH', one, { description: `by ${index}` }, { 'If-Match': '"1"' })),
      )
      expect((await Promise.all(calls)).sort()).toEqual([200, ...Array(19).fill(412)])
      expect((await tenant.call('PATCH', one, {})).body.data.version).toBe(2)
    })

    test('[RES-012] [RES-013] a deleted one is unknown, and in the trash for those who manage', async () => {
      const { data, list, one } = await make(kind)
      expect(await statusOf(tenant.call('DELETE', one))).toBe(204)
      expect(await statusOf(tenant.call('DELETE', one))).toBe(404)
      expect(await statusOf(tenant.call('PATCH', one, sampleOf(kind).change))).toBe(404)
      if (has(kind, 'show')) expect(await statusOf(tenant.call('GET', one))).toBe(404)
      const trash = await tenant.call('GET', `${list}?trashed=1&sort=-updated_at`)
      expect(trash.body.data.map((row: Json) => row.id)).toContain(data.id)
      expect(await statusOf(viewer('GET', `${list}?trashed=1`))).toBe(403)
      expect((await tenant.call('GET', list)).body.data.map((row: Json) => row.id)).not.toContain(data.id)
    })

    test('[check 16.6] [RES-013] [RES-014] what is restored is what was deleted, but for its version and times', async () => {
      const { data, list, one } = await make(kind)
      const shown = async () =>
        has(kind, 'show') ? (await tenant.call('GET', one)).body.data : (await tenant.call('PATCH', one, {})).body.data
      await tenant.call('PATCH', one, { ...sampleOf(kind).change, description: 'kept' })
      const before = await shown()
      expect(await statusOf(tenant.call('DELETE', one))).toBe(204)
      const trash: Json[] = (await tenant.call('GET', `${list}?trashed=1&sort=-updated_at`)).body.data
      expect(trash.find(row => row.id === data.id)).toMatchObject({
        description: 'kept',
        deleted_at: expect.any(String),
      })
      expect(await statusOf(tenant.call('PATCH', one, { deleted_at: null }))).toBe(200)
      const after = await shown()
      expect(after.version).toBeGreaterThan(before.version)
      expect(lasting(after)).toEqual(lasting(before))
      expect((await tenant.call('GET', `${list}?trashed=1`)).body.data.map((row: Json) => row.id)).not.toContain(
        data.id,
      )
    })

    test('[RES-018] [RES-019] a secret is written and never read', async () => {
      for (const [name, { isSecret }] of Object.entries(kind.fields)) {
        if (!isSecret) continue
        const secret = `secret-${crypto.randomUUID()}`
        const { data, one } = await make(kind, tenant.call, { ...sampleOf(kind).withSecret, [name]: secret })
        const kept = (await tenant.call('PATCH', one, { ...sampleOf(kind).change, description: 'x' })).body
        expect([data[`${name}_set`], kept.data[`${name}_set`]]).toEqual([true, true])
        const removed = (await tenant.call('PATCH', one, { [name]: null })).body
        expect(removed.data[`${name}_set`]).toBe(false)
        const log = (await tenant.call('GET', '/audit-log')).body
        expect(JSON.stringify([data, kept, removed, log])).not.toContain(secret)
      }
    })

    test('[RES-020] [RES-023] tags are sorted and each once, and a list of them asks for all', async () => {
      if (!kind.fields.tags) return
      const { data, list, one } = await make(kind, tenant.call, { tags: ['b', 'a', 'b'] })
      expect(data.tags).toEqual(['a', 'b'])
      const of = async (query: string) =>
        (await tenant.call('GET', `${list}?${query}&sort=-created_at`)).body.data.map((row: Json) => row.id)
      expect(await of('tag=a&tag=b')).toContain(data.id)
      expect(await of('tag=a&tag=c')).not.toContain(data.id)
      const many = await tenant.call('PATCH', one, { tags: Array.from({ length: 51 }, (_, index) => `t${index}`) })
      expect([many.status, Object.keys(many.body.errors)]).toEqual([422, ['tags']])
    })

    test('[RES-021] [RES-022] every order is total and turns round, an unknown one is refused', async () => {
      const list = await listPath(kind, tenant.call)
      for (let index = 0; index < 17; index++) await make(kind, tenant.call, {}, list)
      expect((await tenant.call('GET', `${list}?sort=made_up`)).body.errors).toHaveProperty('sort')
      for (const sort of Object.keys(kind.sorts)) {
        const pages = await Promise.all(
          [1, 2].map(async page => (await tenant.call('GET', `${list}?sort=${sort}&page=${page}`)).body),
        )
        const ids = pages.flatMap(page => page.data.map((row: Json) => row.id))
        expect([sort, ids.length]).toEqual([sort, Math.min(30, pages[0].meta.total)])
        expect([sort, new Set(ids).size]).toEqual([sort, ids.length])
      }
      const newest = (await tenant.call('GET', `${list}?sort=-updated_at`)).body.data.map((row: Json) => row.updated_at)
      expect(newest).toEqual([...newest].sort().reverse())
    })

    test('[RES-006] [RES-023] what a common field cannot be is named at it, and nothing is made', async () => {
      const { list } = await make(kind)
      const before = (await tenant.call('GET', list)).body.meta.total
      const { name } = kind.fields
      const wrong: [Json, string][] = [
        [{ description: 'x'.repeat(2001) }, 'description'],
        [{ tags: Array.from({ length: 51 }, (_, index) => `t${index}`) }, 'tags'],
        [{ tags: ['x'.repeat(129)] }, 'tags.0'],
        [{ status: 'broken' }, 'status'],
        [{ status: 7 }, 'status'],
        ...(name?.readOnly ? [] : [[{ name: 'x'.repeat(256) }, 'name'] as [Json, string]]),
        ...(name?.required
          ? [[{ name: ' ' }, 'name'] as [Json, string], [{ name: null }, 'name'] as [Json, string]]
          : []),
      ]
      for (const [more, field] of wrong) {
        const body = await sampleOf(kind).body(sampleCount++, tenant.call)
        const answer = await tenant.call('POST', list, { ...body, ...more })
        expect([JSON.stringify(more).slice(0, 40), answer.status, Object.keys(answer.body.errors ?? {})]).toEqual([
          expect.anything(),
          422,
          [field],
        ])
      }
      expect((await tenant.call('GET', list)).body.meta.total).toBe(before)
    })

    test('[RES-024] an owner is a team of the company, and none when the team is gone', async () => {
      if (kind.parent) return
      const team = (await tenant.call('POST', '/teams', { name: crypto.randomUUID() })).body.data
      const { one, list, data } = await make(kind, tenant.call, { owner_team_id: team.id })
      expect(data.owner_team).toEqual({ id: team.id, name: team.name })
      const owned = (await tenant.call('GET', `${list}?owner_team_id=${team.id}`)).body.data
      expect(owned.map((row: Json) => row.id)).toEqual([data.id])
      expect(await statusOf(tenant.call('DELETE', `/teams/${team.id}`))).toBe(204)
      expect((await tenant.call('PATCH', one, {})).body.data).toMatchObject({ owner_team: null, version: 2 })
      expect((await auditOf(data.id))[0]).toMatchObject({ action: `${info.kind}.update` })
    })

    test('[RES-025] health is the worst open condition, and unknown while planned', async () => {
      const { data, one, list } = await make(kind)
      const found = new Map([
        [
          data.id,
          [
            { code: 'a', severity: 'warning' as const },
            { code: 'b', severity: 'critical' as const },
          ],
        ],
      ])
      const set = (given: typeof found) =>
        inTransaction(hub.hub.database.db, tx =>
          setConditions(tx, info, tenant.companyId, [data.id], ['a', 'b'], given),
        )
      const seen = async () => (await tenant.call('PATCH', one, {})).body.data
      await set(found)
      expect((await seen()).conditions.map((each: Json) => each.code)).toEqual(['b', 'a'])
      expect((await seen()).health).toBe(data.health === 'unknown' ? 'unknown' : 'critical')
      expect(await statusOf(tenant.call('GET', `${list}?health=critical`))).toBe(200)
      await set(new Map())
      expect(await seen()).toMatchObject({ health: data.health, conditions: [] })
      if (kind.fields.status?.value.enum?.includes('planned') !== true) return
      await set(found)
      expect((await tenant.call('PATCH', one, { status: 'planned' })).body.data.health).toBe('unknown')
    })

    test('[RES-026] [RES-027] [RES-028] what opens and ends is told once, and what opens in maintenance afterwards', async () => {
      const { data, one } = await make(kind)
      const mark = crypto.randomUUID()
      const told = async () => {
        await tellConditions(hub.hub)
        const bell: Json[] = (await tenant.call('GET', '/notifications')).body.data
        return bell.filter(each => each.body.includes(mark)).map(each => each.type)
      }
      const set = (isFound: boolean, isProbed = false) =>
        inTransaction(hub.hub.database.db, tx => {
          const found = isFound ? [{ code: 'drift', detail: { manifest: mark }, isProbed }] : []
          return setConditions(tx, info, tenant.companyId, [data.id], ['drift'], new Map([[data.id, found]]))
        })
      await set(true, true)
      expect(await told()).toEqual([])
      for (let probe = 0; probe < 3; probe++) await set(true, true)
      expect(await told()).toEqual(['resource.problem'])
      await set(false)
      expect(await told()).toEqual(['resource.recovered', 'resource.problem'])
      if (kind.fields.status?.value.enum?.includes('maintenance') !== true) return
      await tenant.call('PATCH', one, { status: 'maintenance' })
      await set(true)
      expect(await told()).toHaveLength(2)
      await tenant.call('PATCH', one, { status: 'active' })
      expect(await told()).toHaveLength(3)
      expect(await told()).toHaveLength(3)
    })
  })
}

async function isNameUnique({ info }: Kind): Promise<boolean> {
  const rows = await hub.hub.database.db.execute(sql`select 1 from pg_class where relname = ${`${info.table}_name`}`)
  return rows.length > 0
}
