// Commands of the hub: run as jobs, one at a time, cancelled at a safe point.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createSealer } from '../../apps/hub/identity/sealer.ts'
import { CommandTask, RunEnded } from '../../apps/hub/system/commands/command-task.ts'
import { failLostRuns } from '../../apps/hub/system/commands/lost-runs.ts'
import { until } from '../support/until.ts'
import { type Call, type Json, type Tenant, TestHub } from './hub-harness.ts'

let hub: TestHub
let own: Tenant
let root: Call

beforeAll(async () => {
  hub = await TestHub.start({ 'webhooks.allow_private': true })
  own = await hub.tenant()
  root = (await hub.user(own.companyId, ['*'], { superAdmin: true })).call
})
afterAll(() => hub.stop())

const sql = (strings: TemplateStringsArray, ...values: string[]) => hub.hub.database.client(strings, ...values)
const run = (command: string, by: Call, body: Json = {}) => by('POST', `/system/commands/${command}/run`, body)
const ended = (id: string, by: Call): Promise<Json> =>
  until('the run has ended', async () => {
    const { data } = (await by('GET', `/system/command-runs/${id}`)).body
    return ['queued', 'running'].includes(data.state) ? null : data
  })
/** Jobs of commands wait until the pause ends. */
const pause = () => root('POST', '/queues/system.commands/pause', {})
const resume = () => root('POST', '/queues/system.commands/resume')

describe('commands', () => {
  test('[RES-258] [RES-259] who may run what, with which parameters', async () => {
    const names = async (by: Call) => (await by('GET', '/system/commands')).body.data.map((each: Json) => each.name)
    expect(await names(own.call)).toContain('resolve-scopes')
    expect(await names(own.call)).not.toContain('clean-up')
    expect(await names(root)).toContain('clean-up')
    const systemWide = await run('clean-up', own.call, { confirm: true })
    expect([systemWide.status, systemWide.body.reason]).toEqual([403, 'permission_denied'])
    expect((await run('nonsense', root)).status).toBe(404)
    const wrong = await run('reload-collectors', own.call, { parameters: { kind: 'rules; rm -rf /', more: 1 } })
    expect([wrong.status, Object.keys(wrong.body.errors).sort()]).toEqual([422, ['parameters.kind', 'parameters.more']])
    const unconfirmed = await run('clean-up', root)
    expect([unconfirmed.status, Object.keys(unconfirmed.body.errors)]).toEqual([422, ['confirm']])
    const { data } = (
      await own.call('GET', '/system/commands/reload-collectors', undefined, { 'Accept-Language': 'vi' })
    ).body
    expect(data.title).toMatch(/collector/)
    expect(data.parameters.properties.kind.enum).toContain('silences')
  })

  test('[RES-261] every run and cancel is audited with its parameters, and no other company sees it', async () => {
    await pause()
    const { status, body } = await run('reload-collectors', own.call, { parameters: { kind: 'rules' } })
    expect([status, body.data.state]).toEqual([202, 'queued'])
    const { id } = body.data
    const cancelled = await own.call('POST', `/system/command-runs/${id}/cancel`)
    expect(cancelled.body.data).toMatchObject({ state: 'cancelled', parameters: { kind: 'rules' } })
    expect(Object.keys((await own.call('POST', `/system/command-runs/${id}/cancel`)).body.errors)).toEqual(['state'])
    await resume()
    const { data } = (await own.call('GET', `/audit-log?subject=${id}`)).body
    expect(data.map((entry: Json) => [entry.action, entry.changes.parameters.new])).toEqual([
      ['command.cancel', { kind: 'rules' }],
      ['command.run', { kind: 'rules' }],
    ])
    const stranger = await hub.tenant()
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/cancel'],
    ] as const)
      expect((await stranger.call(method, `/system/command-runs/${id}${path}`)).status).toBe(404)
    expect((await stranger.call('GET', '/system/command-runs')).body.data).toEqual([])
  })

  test('[RES-260] one run of a command at a time, in a company or for all', async () => {
    await pause()
    const first = await run('resolve-scopes', own.call)
    const second = await run('resolve-scopes', own.call)
    expect([second.status, second.body.run_id]).toEqual([409, first.body.data.id])
    const other = await hub.tenant()
    expect((await run('resolve-scopes', other.call)).status).toBe(202)
    const all = await run('analyze-database', root)
    expect((await run('analyze-database', root)).body.run_id).toBe(all.body.data.id)
    // A company's administrator knows nothing of what runs for all.
    expect((await own.call('GET', `/system/command-runs/${all.body.data.id}`)).status).toBe(404)
    await resume()
    expect((await ended(first.body.data.id, own.call)).state).toBe('done')
    const analyzed = await ended(all.body.data.id, root)
    expect([analyzed.state, analyzed.output]).toEqual(['done', expect.stringMatching(/^\d+ tables\n$/)])
    expect((await run('resolve-scopes', own.call)).status).toBe(202)
  })

  test('[R-065] scopes are worked out anew', async () => {
    const tenant = await hub.tenant()
    const { body } = await tenant.call('POST', '/servers', { name: 'web-1', tags: ['web'] })
    const rule = await tenant.call('POST', '/monitoring/rules', {
      name: 'cpu',
      scope: { tags: ['web'] },
      severity: 'warning',
      metric: 'cpu_usage_percent',
      operator: '>',
      threshold: 90,
    })
    await sql`update monitoring_rules set resolved_server_ids = '{}' where id = ${rule.body.data.id}`
    const started = await run('resolve-scopes', tenant.call)
    expect(await ended(started.body.data.id, tenant.call)).toMatchObject({ state: 'done', output: '1 servers\n' })
    const [row] = await sql`select resolved_server_ids as ids from monitoring_rules where id = ${rule.body.data.id}`
    expect(row?.ids).toEqual([body.data.id])
  })

  test('[R-065] the report for support is a file without secrets and names', async () => {
    await root('PUT', '/system/settings/smtp.url', { value: 'smtp://u:s3cretive@127.0.0.1:9' })
    const started = await run('support-report', root)
    const { state, output } = await ended(started.body.data.id, root)
    expect(state).toBe('done')
    const id = output.replace(/^file /, '').trim()
    expect((await own.call('GET', `/files/${id}`)).body.data).toMatchObject({
      type: 'application/json',
      uploaded_by: null,
    })
    const { token } = await hub.token(own.userId)
    const response = await fetch(`${hub.url}/api/v1/files/${id}/download`, {
      headers: { Authorization: `Bearer ${token}` },
    })
    const text = await response.text()
    expect(text).not.toMatch(/s3cretive|127\.0\.0\.1|example\.test/)
    expect(JSON.parse(text).counts.companies).toBeGreaterThan(0)
    await root('DELETE', '/system/settings/smtp.url')
  })

  test('[R-065] what an earlier key sealed is sealed with the key of today', async () => {
    const hook = await own.call('POST', '/webhooks', { name: 'hook', url: 'http://127.0.0.1:9/' })
    const { id } = hook.body.data
    const [key] = await sql`select value #>> '{}' as text from system_settings where key = 'hub.secret_key'`
    // The hub opens with this key, and seals with another where it has one.
    const sealed = createSealer([String(key?.text)]).seal('whs_before')
    await sql`update webhooks set secret_sealed = ${sealed} where id = ${id}`
    const started = await run('reseal-secrets', root, { confirm: true })
    expect((await ended(started.body.data.id, root)).state).toBe('done')
    const [row] = await sql`select secret_sealed as sealed from webhooks where id = ${id}`
    expect(hub.hub.sealer.open(String(row?.sealed))).toBe('whs_before')
    expect(String(row?.sealed).split('.')[1]).toBe(hub.hub.sealer.keyId)
  })
})

describe('a run under way', () => {
  async function running(): Promise<{ id: string; task: CommandTask }> {
    await pause()
    const { id } = (await run('resolve-scopes', own.call)).body.data
    await sql`update system_command_runs set state = 'running', hub_id = ${hub.hub.processId} where id = ${id}`
    await resume()
    return { id, task: new CommandTask(hub.hub, id, own.companyId, {}, hub.hub.now() + 60_000) }
  }

  test('[RES-262] ends at its next safe point when it is cancelled', async () => {
    const { id, task } = await running()
    await task.reached(1, 10)
    expect((await own.call('GET', `/system/command-runs/${id}`)).body.data.progress).toEqual({ done: 1, total: 10 })
    expect((await own.call('POST', `/system/command-runs/${id}/cancel`)).body.data.state).toBe('running')
    const refused = await task.reached(2, 10).catch(error => error)
    expect(refused).toBeInstanceOf(RunEnded)
    expect(refused.state).toBe('cancelled')
    await sql`update system_command_runs set state = 'cancelled' where id = ${id}`
  })

  test('[R-065] one whose hub is gone fails, and its output is bounded', async () => {
    const { id, task } = await running()
    for (let line = 0; line < 2000; line++) task.say('x'.repeat(100))
    expect(Buffer.byteLength(task.said)).toBeLessThanOrEqual(64 * 1024)
    expect(task.said).toEndWith('…\n')
    await failLostRuns(hub.hub)
    expect((await own.call('GET', `/system/command-runs/${id}`)).body.data.state).toBe('running')
    await sql`update system_command_runs set hub_id = gen_random_uuid() where id = ${id}`
    await failLostRuns(hub.hub)
    const { data } = (await own.call('GET', `/system/command-runs/${id}`)).body
    expect([data.state, data.error]).toEqual(['failed', 'the hub that ran it is gone'])
    expect(await task.reached(1, 1).catch(error => error)).toBeInstanceOf(RunEnded)
  })

  test('[RES-281] rebuild-search writes what search lost, and takes away what is gone', async () => {
    const [subnet, server] = await Promise.all([
      own.call('POST', '/subnets', { cidr: '10.77.0.0/24', name: 'rebuilt' }),
      own.call('POST', '/servers', { name: 'server-1', tags: ['rebuilt'] }),
    ])
    const found = async () => (await own.call('GET', '/search?q=rebuilt')).body.data.map((hit: Json) => hit.id).sort()
    const both = [subnet.body.data.id, server.body.data.id].sort()
    expect(await found()).toEqual(both)
    await sql`delete from search_documents where company_id = ${own.companyId}`
    await sql`delete from search_tags where company_id = ${own.companyId}`
    await sql`insert into search_tags (company_id, tag, kind, resource_id)
      select company_id, 'rebuilt', 'server', id from servers where company_id = ${own.companyId} and name <> 'server-1'`
    await sql`
      insert into search_documents (company_id, kind, resource_id, name, text)
      values (${own.companyId}, 'subnet', gen_random_uuid(), 'rebuilt ghost', 'rebuilt ghost')`
    for (const [command, by] of [
      ['rebuild-search', own.call],
      ['rebuild-search-all', root],
    ] as const) {
      expect(await ended((await run(command, by)).body.data.id, by)).toMatchObject({ state: 'done', error: null })
      expect(await found()).toEqual(both)
    }
  })

  test('[RES-224] recount-subnets corrects counts', async () => {
    const { data } = (await own.call('POST', '/subnets', { cidr: '10.78.0.0/24' })).body
    await own.call('POST', '/ips', { address: '10.78.0.7' })
    await sql`update subnets set direct_used = 99, usage_stale = false where id = ${data.id}`
    const { state, output } = await ended((await run('recount-subnets', own.call)).body.data.id, own.call)
    expect([state, output]).toEqual(['done', expect.stringContaining('1 corrected')])
    expect((await own.call('GET', `/subnets/${data.id}`)).body.data.usage.used).toBe(1)
  })

  test('[RES-014] purge-trash deletes for good what lies there long enough, of this company', async () => {
    const other = await hub.tenant()
    const made = async (by: Call, cidr: string): Promise<string> => {
      const { data } = (await by('POST', '/subnets', { cidr })).body
      await by('DELETE', `/subnets/${data.id}`)
      return data.id
    }
    const [old, fresh] = [await made(own.call, '10.79.0.0/24'), await made(own.call, '10.79.1.0/24')]
    const foreign = await made(other.call, '10.79.0.0/24')
    await sql`update subnets set deleted_at = now() - interval '10 days' where id in (${old}, ${foreign})`
    const back = async (by: Call, id: string) => (await by('PATCH', `/subnets/${id}`, { deleted_at: null })).status
    const purge = (parameters: Json) => run('purge-trash', own.call, { parameters, confirm: true })
    expect((await ended((await purge({ older_than_days: 5 })).body.data.id, own.call)).state).toBe('done')
    expect([await back(own.call, old), await back(own.call, fresh), await back(other.call, foreign)]).toEqual([
      404, 200, 200,
    ])
  })

  test('[RES-208] verify-dns starts a verification of every zone with a name server', async () => {
    const server = (await own.call('POST', '/dns/servers', { name: 'nowhere', host: '127.0.0.1', port: 9 })).body.data
    const zone = { name: 'verified.example', verify_interval_minutes: 0, server_ids: [server.id] }
    const { data } = (await own.call('POST', '/dns/zones', zone)).body
    await own.call('POST', '/dns/zones', { name: 'alone.example', verify_interval_minutes: 0 })
    expect((await ended((await run('verify-dns', own.call)).body.data.id, own.call)).output).toContain('1 zones')
    const shown = (await own.call('GET', `/dns/zones/${data.id}`)).body.data
    expect(shown.last_run).toMatchObject({ action: 'sync', requested_by: null })
  })
})
