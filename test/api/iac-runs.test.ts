// Runs of manifests: submitted, planned, applied (document 1 "IaC requests"; decisions G-125 to G-130, G-183).
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { forgetOldManifestRuns } from '../../apps/hub/iac/run-retention.ts'
import { inTransaction, lockCompany } from '../../apps/hub/platform/db/transaction.ts'
import { type Json, TestHub, until } from './hub-harness.ts'
import { type Acme, absent, acme, applied, manifest, submit } from './iac-rig.ts'

let hub: TestHub
let own: Acme

beforeAll(async () => {
  hub = await TestHub.start()
  own = await acme(hub)
})
afterAll(() => hub.stop())

const server = (name: string, spec: Json = {}, more: Json = {}) => manifest(own.slug, 'server', name, spec, more)
const check = (name: string, servers: string[], port: number) =>
  manifest(own.slug, 'check', name, { type: 'port', target: { port, proto: 'tcp' }, scope: { servers } })
const serversNamed = async (search: string): Promise<Json[]> =>
  (await own.call('GET', `/servers?search=${search}`)).body.data

describe('runs', () => {
  test('[R-043] however many runs are older than 400 days, all of them go, and no younger one', async () => {
    const { client, db } = hub.hub.database
    const later = await submit(hub, own, [server('kept-1')])
    await client`
      insert into iac_runs (id, company_id, submitter_name, title, status, files, files_count, created_at)
      select gen_random_uuid(), ${own.companyId}, 'x', 'old', 'planned', '[]', 0, now() - interval '401 days'
      from generate_series(1, 2100)`
    await forgetOldManifestRuns(hub.hub)
    const left = await db.execute<{ id: string }>(sql`select id from iac_runs where company_id = ${own.companyId}`)
    expect(left.map(run => run.id)).toEqual([later.id])
  })

  test('[IAC-009] [IAC-025] [IAC-026] valid manifests are planned, with files, items and differences', async () => {
    const run = await submit(hub, own, [server('plan-1', { hostname: 'a', tags: ['b', 'a'] })], {
      description: '<p>x</p>',
    })
    expect(run).toMatchObject({
      status: 'planned',
      title: 'Create server plan-1',
      description: '<p>x</p>',
      submitter: { id: own.userId },
      company_id: own.companyId,
      files_count: 1,
      kinds: { server: 1 },
      queued_at: null,
      applied_at: null,
      apply_error: null,
      cancelled_at: null,
      plan_stale: false,
      errors: [],
      attachments: [],
      approval_timeline: [],
    })
    expect(run.files[0].sha256).toMatch(/^[0-9a-f]{64}$/)
    expect(run.items).toMatchObject([
      {
        kind: 'server',
        company: own.slug,
        name: 'plan-1',
        action: 'create',
        approvals: { required: 0, given: 0 },
        status: 'planned',
        error: null,
        requires: 'servers.manage',
        forbidden: false,
        adopts: false,
      },
    ])
    expect(run.items[0].diff).toContainEqual({ field: 'tags', old: null, new: ['a', 'b'] })
    expect(await serversNamed('plan-1')).toEqual([])
  })

  test('[IAC-014] [IAC-015] [IAC-017] [RES-141] applying makes the resource, as whoever applied, with the run in the audit log', async () => {
    const run = await submit(hub, own, [server('made-1', { hostname: 'made', cpu_cores: 4 })])
    const after = await applied(own, run.id)
    expect(after).toMatchObject({ status: 'applied', apply_error: null, items: [{ status: 'applied', error: null }] })
    expect(after.applied_at).not.toBeNull()
    const [made] = await serversNamed('made-1')
    expect(made).toMatchObject({ name: 'made-1', hostname: 'made', cpu_cores: 4, origin: 'iac' })
    const log = (await own.call('GET', `/audit-log?action=server.create&subject=${made.id}`)).body.data
    expect(log).toMatchObject([{ actor: { id: own.userId }, changes: { iac_run: { new: run.id } } }])
    const again = await own.call('POST', `/iac/runs/${run.id}/apply`)
    expect([again.status, Object.keys(again.body.errors)]).toEqual([422, ['status']])
  })

  test('[IAC-001] [IAC-008] a submission needs iac.submit, and apply is a boolean or absent', async () => {
    const post = async (by: Pick<Acme, 'call'>, more: Json) => {
      const { status, body } = await by.call('POST', '/iac/runs', { manifests: [server('asked')], ...more })
      return [status, Object.keys(body.errors ?? {})]
    }
    expect(await post(await hub.user(own.companyId, ['iac.view', 'iac.apply']), {})).toEqual([403, []])
    const submitter = await hub.user(own.companyId, ['iac.submit'])
    for (const apply of ['yes', 1, []]) expect(await post(submitter, { apply })).toEqual([422, ['apply']])
    for (const more of [{}, { apply: null }, { apply: false }]) expect(await post(submitter, more)).toEqual([201, []])
  })

  test('[IAC-011] planning is validation, differences and approvals, and then the run is stored', async () => {
    const company = await acme(hub)
    const approver = await hub.user(company.companyId, ['approvals.decide'])
    const workflow = { name: 'all', steps: [{ name: 'one', user_ids: [approver.userId] }] }
    expect((await company.call('POST', '/approvals/workflows', workflow)).status).toBe(201)
    const file = manifest(company.slug, 'server', 'planned', { hostname: 'planned' })
    const run = await submit(hub, company, [file])
    const stored = (await company.call('GET', `/iac/runs/${run.id}`)).body.data
    expect(stored).toMatchObject({ status: 'planned', items: [{ action: 'create', name: 'planned' }] })
    const tickets = (await company.call('GET', `/approvals/tickets?run_id=${run.id}`)).body.data
    expect(tickets).toMatchObject([{ state: 'pending', subject: { name: 'planned' } }])
    const wrong = await submit(hub, company, [{ ...file, contents: file.contents.replace('hostname', 'colour') }])
    expect((await company.call('GET', `/iac/runs/${wrong.id}`)).body.data).toMatchObject({
      status: 'invalid',
      items: [],
    })
    expect((await company.call('GET', `/approvals/tickets?run_id=${wrong.id}`)).body.data).toEqual([])
  })

  test('[IAC-012] [IAC-013] [RES-122] apply=true applies at once with iac.apply, and is ignored without', async () => {
    const now = await submit(hub, own, [server('now-1')], { apply: true })
    expect(now).toMatchObject({ status: 'applied', queued_at: null })
    const log = (await own.call('GET', `/audit-log?subject=${now.id}`)).body.data
    expect(log.map((entry: Json) => entry.action).sort()).toEqual(['iac.apply', 'iac.submit'])
    const submitter = await hub.user(own.companyId, ['iac.submit'])
    const run = await submit(hub, submitter, [server('later-1')], { apply: true })
    expect([run.status, run.queued_at]).toEqual(['planned', null])
    expect((await submitter.call('POST', `/iac/runs/${run.id}/apply`)).status).toBe(403)
  })

  test('[RES-126] what exists already is action none, and applying it ends applied and writes nothing', async () => {
    const file = server('same-1', { hostname: 'same', tags: ['x'] })
    await submit(hub, own, [file], { apply: true })
    const [before] = await serversNamed('same-1')
    const run = await submit(hub, own, [file])
    expect([run.items[0].action, run.items[0].diff, run.title]).toEqual(['none', [], 'No changes'])
    expect((await applied(own, run.id)).status).toBe('applied')
    expect((await serversNamed('same-1'))[0]).toEqual(before)
  })

  test('a manifest adopts what has its name, changes what differs, and takes back what it no longer names', async () => {
    const { body } = await own.call('POST', '/servers', { name: 'Adopted', role: 'web', hostname: 'old' })
    const file = (spec: Json) => server('adopted', { name: 'Adopted', ...spec })
    const run = await submit(hub, own, [file({ hostname: 'new', role: 'db' })], { apply: true })
    expect(run.items[0]).toMatchObject({ action: 'update', adopts: true, resource_id: body.data.id, status: 'applied' })
    expect(run.items[0].diff).toEqual([
      { field: 'hostname', old: 'old', new: 'new' },
      { field: 'role', old: 'web', new: 'db' },
    ])
    const less = await submit(hub, own, [file({ hostname: 'new' })], { apply: true })
    expect(less.items[0].diff).toEqual([{ field: 'role', old: 'db', new: null }])
    const renamed = await submit(hub, own, [server('adopted', { name: 'Renamed', hostname: 'new' })], { apply: true })
    expect(renamed.items[0].diff).toEqual([{ field: 'name', old: 'Adopted', new: 'Renamed' }])
    expect((await own.call('GET', `/servers/${body.data.id}`)).body.data).toMatchObject({ name: 'Renamed', role: null })
  })

  test('[R-035] what is called as the slug is adopted and renamed, unless something has the name that the manifest gives', async () => {
    const { body } = await own.call('POST', '/servers', { name: 'slug-1' })
    const file = server('slug-1', { name: 'Slug one', role: 'web' })
    const run = await submit(hub, own, [file])
    expect(run.items[0]).toMatchObject({ action: 'update', adopts: true, resource_id: body.data.id })
    const { id } = (await own.call('POST', '/servers', { name: 'slug ONE' })).body.data
    expect((await submit(hub, own, [file])).items[0]).toMatchObject({ action: 'update', adopts: true, resource_id: id })
    await own.call('DELETE', `/servers/${id}`)
    expect((await applied(own, run.id)).status).toBe('applied')
    expect((await own.call('GET', `/servers/${body.data.id}`)).body.data).toMatchObject({
      name: 'Slug one',
      role: 'web',
    })
    // One that another manifest is bound to is left to that one, and a name alone deletes nothing of another name.
    await submit(hub, own, [server('slug-two', { name: 'slug-2' })], { apply: true })
    const other = await submit(hub, own, [server('slug-2', { name: 'Slug two' })])
    expect(other.items[0]).toMatchObject({ action: 'create', adopts: false })
    await own.call('POST', '/servers', { name: 'slug-3' })
    const gone = await submit(hub, own, [server('slug-3', { name: 'Slug three' }, { ensure: 'absent' })])
    expect(gone.items[0].action).toBe('none')
  })

  test('[RES-132] [RES-133] what is referred to comes first, and what refers to a failed item is skipped', async () => {
    const run = await submit(hub, own, [check('of-db', ['db-1'], 5432), server('db-1', { hostname: 'db' })], {
      apply: true,
    })
    expect(run.items.map((item: Json) => [item.kind, item.status])).toEqual([
      ['server', 'applied'],
      ['check', 'applied'],
    ])
    const next = await submit(hub, own, [check('of-db-2', ['db-2'], 5433), server('db-2', { hostname: 'x' })])
    await own.call('POST', '/servers', { name: 'db-2' })
    const failed = await applied(own, next.id)
    expect(failed.items.map((item: Json) => [item.status, item.error])).toEqual([
      ['failed', 'stale: it exists since it was planned'],
      ['skipped', `depends on check/${own.slug}/of-db-2.yml`.replace('check', 'server').replace('of-db-2', 'db-2')],
    ])
    expect([failed.status, failed.apply_error]).toEqual(['planned', expect.stringContaining('stale')])
    expect((await own.call('GET', '/monitoring/checks?search=of-db-2')).body.data).toEqual([])
  })

  test('[check 16.29] [RES-136] [RES-139] [G-183] a change since the plan fails its item alone, is kept, and is tried again', async () => {
    await submit(hub, own, [server('stale-1', { hostname: 'a' })], { apply: true })
    const run = await submit(hub, own, [server('stale-1', { hostname: 'b' }), server('fresh-1')])
    const [before] = await serversNamed('stale-1')
    await own.call('PATCH', `/servers/${before.id}`, { hostname: 'mine' })
    expect((await own.call('GET', `/iac/runs/${run.id}`)).body.data.plan_stale).toBe(true)
    const after = await applied(own, run.id)
    expect(after.status).toBe('partially-applied')
    expect(after.items.find((item: Json) => item.name === 'stale-1')).toMatchObject({
      status: 'failed',
      error: expect.stringMatching(/^stale: planned at version \d+, now \d+$/),
    })
    expect(after.apply_error).toMatch(/^server\/.*stale-1.yml: stale: /)
    expect((await serversNamed('stale-1'))[0].hostname).toBe('mine')
    const [fresh] = await serversNamed('fresh-1')
    await own.call('PATCH', `/servers/${before.id}`, { hostname: 'a' })
    const second = await applied(own, run.id)
    expect([second.status, second.apply_error]).toEqual(['applied', null])
    expect((await serversNamed('stale-1'))[0].hostname).toBe('b')
    expect((await serversNamed('fresh-1'))[0]).toEqual(fresh)
  })

  test('[R-038] plan_stale: a base changed since, of a kind without versions too; the same difference is applied all the same', async () => {
    const shown = async (run: Json) => (await own.call('GET', `/iac/runs/${run.id}`)).body.data.plan_stale
    const list = (value: string) => manifest(own.slug, 'option-list', 'environments', { items: [{ value }] })
    await submit(hub, own, [server('stale-2', { hostname: 'a' }), list('one')], { apply: true })
    const [before] = await serversNamed('stale-2')
    const ofServer = await submit(hub, own, [server('stale-2', { hostname: 'b' })])
    const ofList = await submit(hub, own, [list('two')])
    expect([await shown(ofServer), await shown(ofList)]).toEqual([false, false])
    await own.call('PATCH', `/servers/${before.id}`, { cpu_cores: 4 })
    expect((await own.call('POST', '/options/environments/items', { value: 'three' })).status).toBe(201)
    expect([await shown(ofServer), await shown(ofList)]).toEqual([true, true])
    expect((await applied(own, ofServer.id)).status).toBe('applied')
    const [item] = (await applied(own, ofList.id)).items
    expect([item.status, item.error]).toEqual(['failed', 'stale: it was changed since it was planned'])
    expect(await shown(ofServer)).toBe(false)
  })

  test('[RES-135] deletes come last, are soft, and name what refers to the resource', async () => {
    await submit(hub, own, [server('gone-1', { hostname: 'x' })], { apply: true })
    const run = await submit(hub, own, [
      absent(own.slug, 'server', 'gone-1'),
      absent(own.slug, 'server', 'never-was'),
      server('kept-1'),
    ])
    expect(run.items.map((item: Json) => [item.name, item.action])).toEqual([
      ['kept-1', 'create'],
      ['never-was', 'none'],
      ['gone-1', 'delete'],
    ])
    expect((await applied(own, run.id)).status).toBe('applied')
    expect(await serversNamed('gone-1')).toEqual([])
    expect((await own.call('GET', '/servers/trashed')).body.data.map((row: Json) => row.name)).toContain('gone-1')
  })

  test('[RES-140] a run whose hub is gone is taken up again, and no item is applied twice', async () => {
    const run = await submit(hub, own, [server('crash-1'), server('crash-2')])
    const { client } = hub.hub.database
    // As a hub leaves it that dies after the first item: queued, nobody at work.
    await applied(own, run.id)
    await client`update iac_items set status = 'planned', applied_at = null where run_id = ${run.id} and name = 'crash-2'`
    await client`update servers set deleted_at = now() where name = 'crash-2' and company_id = ${own.companyId}`
    await client`delete from iac_bindings where slug = 'crash-2' and company_id = ${own.companyId}`
    await client`update iac_runs set status = 'planned', queued_at = now() - interval '1 hour', worked_at = null where id = ${run.id}`
    const { resumeRuns } = await import('../../apps/hub/iac/apply.ts')
    await resumeRuns(hub.hub)
    await until('the run ends', async () => (await own.call('GET', `/iac/runs/${run.id}`)).body.data.queued_at === null)
    expect((await own.call('GET', `/iac/runs/${run.id}`)).body.data.status).toBe('applied')
    expect(await serversNamed('crash-1')).toHaveLength(1)
    expect(await serversNamed('crash-2')).toHaveLength(1)
    const log = (await own.call('GET', '/audit-log?action=server.create')).body.data
    expect(log.filter((entry: Json) => entry.subject.name === 'crash-1')).toHaveLength(1)
  })

  test('[RES-140] a job whose apply another one has ended meanwhile writes nothing more', async () => {
    const run = await submit(hub, own, [server('overtaken-1')])
    const { client, db } = hub.hub.database
    const jobState = async () => {
      const [job] = await client`
        select state from pgboss.job where name = 'iac.apply' and data->>'run_id' = ${run.id} order by created_on limit 1`
      return job?.state
    }
    await inTransaction(db, async tx => {
      await lockCompany(tx, own.companyId)
      expect((await own.call('POST', `/iac/runs/${run.id}/apply`, {})).status).toBe(202)
      await until('the job to wait for the company', async () => {
        const waiting = await client`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
        return waiting.length > 0 && (await jobState()) === 'active'
      })
      // As the other job ends it.
      await client`update iac_runs set queued_at = null where id = ${run.id}`
    })
    await until('the job to end', async () => (await jobState()) === 'completed')
    expect(await serversNamed('overtaken-1')).toEqual([])
    const after = (await own.call('GET', `/iac/runs/${run.id}`)).body.data
    expect([after.status, after.items[0].status]).toEqual(['planned', 'planned'])
  })
})
