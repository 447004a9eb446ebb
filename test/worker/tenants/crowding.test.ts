// One company with far more in its scopes than any page may carry, beside a company with one rule: a real hub, and the
// worker as the executables wire it.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { defaultRules } from '../../../apps/hub/rules/default-rules.ts'
import { type Tenant, TestHub } from '../../api/hub-harness.ts'
import { until } from '../../support/until.ts'
import { serverOf, WorkerRig } from '../rig.ts'

setDefaultTimeout(120_000)

const RULES = 90
const SILENCES = 5
const SERVERS = 10_000
/** The default rules of a company but agent_down, which the evaluator does not run. */
const STARTS_WITH = defaultRules.length - 1
/** From the answer to the change until the worker runs the rule; the worker is told by nobody but the test. */
const PROMPT_MS = 20_000

let hub: TestHub
let crowd: Tenant
let quiet: Tenant
let collector: Awaited<ReturnType<TestHub['collector']>>
const rig = new WorkerRig({ hubAt: () => ({ url: hub.url, token: collector.token }), hubTimeoutMs: 10_000 })

const sql = (strings: TemplateStringsArray, ...values: (string | number)[]) =>
  hub.hub.database.client(strings, ...values)

/** As a database of before the limits may have it: every rule, silence and check names every server. */
async function fillCrowd(): Promise<void> {
  const { companyId } = crowd
  await sql`insert into servers (id, company_id, name)
    select gen_random_uuid(), ${companyId}, 's' || n from generate_series(1, ${SERVERS}::int) n`
  const scope = `select jsonb_build_object('all', false, 'server_ids', jsonb_agg(id order by id), 'tags', '[]'::jsonb,
      'environments', '[]'::jsonb, 'roles', '[]'::jsonb, 'datacenters', '[]'::jsonb) as scope, array_agg(id order by id) as ids
    from servers where company_id = '${companyId}'`
  await hub.hub.database.client.unsafe(`with x as materialized (${scope})
    insert into monitoring_rules (id, company_id, name, kind, scope, resolved_server_ids, metric, matchers, operator,
      threshold, for_seconds, severity, no_data, renotify_seconds, sync_version)
    select gen_random_uuid(), '${companyId}', 'r' || n, 'threshold', x.scope, x.ids, 'cpu_load1', '{}', '>', 1, 0, 'info',
      'ignore', 0, 1000 + n from x, generate_series(1, ${RULES}) n`)
  await hub.hub.database.client.unsafe(`with x as materialized (${scope})
    insert into monitoring_silences (id, company_id, scope, resolved_server_ids, starts_at, ends_at, reason, sync_version)
    select gen_random_uuid(), '${companyId}', x.scope, x.ids, now(), now() + interval '1 hour', 'x', 1000 + n
    from x, generate_series(1, ${SILENCES}) n`)
  await sql`update monitoring_feed_counters set value = 2000 where feed in ('rules', 'silences')`
}

beforeAll(async () => {
  hub = await TestHub.start()
  crowd = await hub.tenant()
  quiet = await hub.tenant()
  collector = await hub.collector()
  await fillCrowd()
})
afterAll(async () => {
  await rig.close()
  await hub.stop()
})

const quietRule = async (): Promise<string> =>
  (
    await quiet.call('POST', '/monitoring/rules', {
      name: 'swap',
      severity: 'warning',
      metric: 'swap_used_percent',
      operator: '>',
      threshold: 50,
      scope: { all: true },
    })
  ).body.data.id
/** A worker that needs longer than an answer may take says so, and is asked again. */
const reloadRules = () =>
  until('the reload', async () => (await rig.admin('POST', '/reload/rules')).status === 202, PROMPT_MS)
const feeds = async () => (await rig.status()) as { rules: Record<string, unknown>; silences: Record<string, unknown> }

test('[SYNC-001] [SYNC-016] a worker that starts from nothing takes rules and silences of all companies, however much one of them names', async () => {
  const ruleId = await quietRule()
  await rig.start()
  const { rules, silences } = await until('the feeds', async () => {
    const status = await feeds()
    return status.rules.last_sync_at !== null && status.silences.last_sync_at !== null && status
  })
  expect([rules.last_sync_error, silences.last_sync_error]).toEqual([null, null])
  // What each company starts with, and what was made.
  expect([rules.loaded, rules.invalid, silences.loaded]).toEqual([RULES + 2 * STARTS_WITH + 1, 0, SILENCES])
  const server = serverOf(quiet.companyId, 'a')
  rig.addServer(server)
  await rig.swap(server, 90)
  await until('the alert', async () => (await rig.status()).rules.firing === 1)
  expect((await quiet.call('GET', `/monitoring/rules/${ruleId}`)).status).toBe(200)
})

test('[SYNC-003] a server that all of one company names is deleted: the rule that another company makes then is in force promptly', async () => {
  const before = (await feeds()).rules
  const [victim] = await sql`select id from servers where company_id = ${crowd.companyId} limit 1`
  expect((await crowd.call('DELETE', `/servers/${victim?.id}`)).status).toBe(204)
  await quietRule()
  await reloadRules()
  const after = (await feeds()).rules
  expect([after.last_sync_error, after.loaded]).toEqual([null, Number(before.loaded) + 1])
  expect(Number(after.since)).toBe(Number(before.since) + RULES + 1)
})

test('[SYNC-011] [SYNC-020] deleting it all leaves tombstones that cost nothing', async () => {
  await sql`update monitoring_rules set deleted_at = now(), enabled = false, sync_version = sync_version + 1000
    where company_id = ${crowd.companyId} and metric = 'cpu_load1'`
  await sql`update monitoring_feed_counters set value = 9000 where feed = 'rules'`
  const since = Number((await feeds()).rules.since)
  const response = await fetch(`${hub.url}/api/v1/monitoring/collector/rules?since=${since}&limit=500`, {
    headers: { authorization: `Bearer ${collector.token}` },
  })
  expect((await response.text()).length).toBeLessThan(RULES * 300)
  await reloadRules()
  expect((await feeds()).rules.loaded).toBe(2 * STARTS_WITH + 2)
})
