// The database that the hub's benchmark runs on: one large company and ninety small ones beside it, made by the
// database itself.
import postgres from 'postgres'
import { createCompany } from '../apps/hub/companies/companies.ts'
import { loadHubConfig } from '../apps/hub/config.ts'
import { createHub, openHubDatabase } from '../apps/hub/hub.ts'
import { createToken, createUser } from '../apps/hub/identity/accounts.ts'
import { createCollector } from '../apps/hub/identity/service-accounts.ts'
import { inTransaction } from '../apps/hub/platform/db/transaction.ts'
import { createLogger } from '../apps/hub/platform/telemetry.ts'

export const sizes = {
  servers: 10_000,
  rules: 1_000,
  /** Of the rules: those whose scope is the tag that the benchmark gives to every server. */
  taggedRules: 100,
  alerts: 100_000,
  /** Of a hundred alerts: half of them acknowledged, the others open. */
  activePercent: 2,
  events: 1_000_000,
  /** All events of one alert, so that its list has a page 1,000. */
  eventsOfOne: 20_000,
  others: 90,
  serversOfOther: 1_000,
  audits: 100_000,
  notes: 50_000,
  people: 1_000,
} as const

type Sizes = { readonly [Kind in keyof typeof sizes]: number }

export const benchTag = 'bench'

/** What the benchmark calls with; ids of seeded rows are `seededId` of their kind and number. */
export type Seeded = {
  readonly companyId: string
  readonly userId: string
  readonly token: string
  readonly collectorToken: string
}

/** The id of the n-th row of a kind: random to look at, as real ids are. */
export function seededId(kind: string, n: number): string {
  const hex = new Bun.CryptoHasher('md5').update(`${kind}${n}`).digest('hex')
  const of = `${hex.slice(0, 12)}4${hex.slice(13, 16)}8${hex.slice(17)}`
  return `${of.slice(0, 8)}-${of.slice(8, 12)}-${of.slice(12, 16)}-${of.slice(16, 20)}-${of.slice(20)}`
}

const SEEDED_ID = `create function pg_temp.id(kind text, n bigint) returns uuid language sql immutable as
  $$ select overlay(overlay(md5(kind || n) placing '4' from 13) placing '8' from 17)::uuid $$`

/** The servers, agents and rules of the company, and the servers of its neighbours. */
async function seedServers(sql: postgres.Sql, company: string, of: Sizes): Promise<void> {
  const { servers, rules, taggedRules, others, serversOfOther } = of
  await sql`insert into companies (id, name, slug) select pg_temp.id('company', i), 'Other ' || i, 'other-' || i
    from generate_series(1, ${others}::int) i`
  await sql`insert into monitoring_settings (company_id) select id from companies on conflict do nothing`
  await sql`
    insert into servers (id, company_id, name, hostname, ip_address, environment, role, datacenter, tags, sync_version)
    select pg_temp.id('server', i), ${company}, 'server ' || lpad(i::text, 6, '0'), 'host-' || i || '.example.net',
      '10.' || i / 65536 || '.' || i / 256 % 256 || '.' || i % 256, (array['production', 'staging', 'test'])[1 + i % 3],
      (array['web', 'db', 'cache', 'batch'])[1 + i % 4], 'dc-' || i % 5, array['team-' || i % 100], i
    from generate_series(1, ${servers}::int) i`
  await sql`
    insert into servers (id, company_id, name, hostname, sync_version)
    select pg_temp.id('server', i), pg_temp.id('company', 1 + i % ${others}), 'server ' || i, 'host-' || i, i
    from generate_series(${servers + 1}::int, ${servers + others * serversOfOther}::int) i`
  await sql`
    insert into monitoring_agents (id, company_id, server_id, token_hash, machine_id, hostname, os_family, os_version, arch,
      agent_version, proto_version, state, last_seen_at, enrolled_at, sync_version)
    select pg_temp.id('agent', s.sync_version), s.company_id, s.id, encode(sha256(s.id::text::bytea), 'hex'), md5(s.id::text),
      s.hostname, 'linux', '12', 'amd64', '1.0.0', 1, 'active', now() - make_interval(secs => s.sync_version % 400),
      now() - make_interval(secs => 86400 + s.sync_version), s.sync_version
    from servers s`
  await sql`
    insert into monitoring_rules (id, company_id, name, kind, scope, resolved_server_ids, metric, matchers, operator,
      threshold, for_seconds, severity, no_data, renotify_seconds, sync_version, created_at)
    select pg_temp.id('rule', i), ${company}, 'rule ' || i, 'threshold',
      jsonb_build_object('all', t.tag is null, 'server_ids', '[]'::jsonb, 'environments', '[]'::jsonb, 'roles', '[]'::jsonb,
        'datacenters', '[]'::jsonb, 'tags', case when t.tag is null then '[]'::jsonb else jsonb_build_array(t.tag) end),
      array(select s.id from servers s where s.company_id = ${company} and t.tag = any(s.tags) order by s.id),
      'cpu_usage_percent', '{}', '>', 90, 60, 'warning', 'ignore', 0, i, now() - make_interval(mins => i)
    from generate_series(1, ${rules}::int) i,
      lateral (select case when i <= ${taggedRules} then ${benchTag} when i % 2 = 0 then 'team-' || i % 100 end as tag) t`
  await sql`update monitoring_feed_counters set value = case feed when 'rules' then ${rules}::int
    else ${servers + others * serversOfOther}::int end where feed in ('rules', 'agents', 'servers')`
}

/** Alerts, of which some are open, and the log of their events. */
async function seedAlerts(sql: postgres.Sql, company: string, of: Sizes): Promise<void> {
  const { servers, rules, alerts, activePercent, events, eventsOfOne } = of
  await sql`
    insert into monitoring_alerts (id, company_id, type, server_id, agent_id, rule_id, rule_key, series_key, severity, state,
      opened_at, resolved_at, last_value, peak_value, threshold, event_count, last_event_seq, notified_at)
    select pg_temp.id('alert', i), ${company}, 'threshold', pg_temp.id('server', 1 + i % ${servers}),
      pg_temp.id('agent', 1 + i % ${servers}), pg_temp.id('rule', 1 + i % ${rules}), pg_temp.id('rule', 1 + i % ${rules})::text,
      'disk_used_percent{mount="/data' || i / ${servers} || '"}', (array['info', 'warning', 'critical'])[1 + i % 3],
      case when i % 100 < ${activePercent / 2}::int then 'open' when i % 100 < ${activePercent}::int then 'acknowledged' when i % 10 = 2 then 'closed' else 'resolved' end,
      now() - make_interval(secs => 60 + 60 * i), case when i % 100 >= ${activePercent}::int then now() - make_interval(secs => 60 * i) end,
      95, 97, 90, 10, 10, now()
    from generate_series(1, ${alerts}::int) i`
  await sql`
    insert into monitoring_event_seqs (server_id, rule_key, series_key, seq, alert_id)
    select server_id, rule_key, series_key, 10, id from monitoring_alerts`
  await sql`
    insert into monitoring_alert_events (id, company_id, server_id, alert_id, event_id, seq, type, occurred_at, payload)
    select pg_temp.id('event', i), ${company}, pg_temp.id('server', 1 + a.n % ${servers}), pg_temp.id('alert', a.n),
      pg_temp.id('event id', i)::text, i, 'alert.reminder', now() - make_interval(secs => a.n * 60 + (${events} - i) * 0.001),
      jsonb_build_object('event_id', pg_temp.id('event id', i), 'type', 'alert.reminder', 'seq', i, 'company_id', ${company}::text,
        'server_id', pg_temp.id('server', 1 + a.n % ${servers}), 'severity', 'warning', 'value', 95, 'threshold', 90,
        'series_key', 'disk_used_percent{mount="/data"}', 'labels', '{"mount": "/data"}'::jsonb, 'suppressed', false)
    from generate_series(1, ${events}::int) i,
      lateral (select case when i <= ${eventsOfOne} then 1 else 1 + i % ${alerts} end as n) a`
}

/** Everything else that has a list. */
async function seedRecords(
  sql: postgres.Sql,
  { companyId, userId }: Pick<Seeded, 'companyId' | 'userId'>,
  { audits, notes, people, servers }: Sizes,
): Promise<void> {
  await sql`
    insert into audit_log (id, company_id, actor_type, actor_id, actor_name, action, subject_type, subject_id, created_at)
    select pg_temp.id('audit', i), ${companyId}, 'user', ${userId}, 'Bench', 'server.update', 'server',
      pg_temp.id('server', 1 + i % ${servers})::text, now() - make_interval(secs => i) from generate_series(1, ${audits}::int) i`
  await sql`
    insert into notifications (id, user_id, company_id, type, title, body, read_at, created_at)
    select pg_temp.id('note', i), ${userId}, ${companyId}, 'alert.opened', 'Title', 'Body', case when i > 100 then now() end,
      now() - make_interval(secs => i) from generate_series(1, ${notes}::int) i`
  await sql`
    insert into notification_deliveries (id, company_id, channel, target, type, payload, state, created_at)
    select pg_temp.id('delivery', i), ${companyId}, 'email', 'ops@example.net', 'alert.opened', '{}', 'delivered',
      now() - make_interval(secs => i) from generate_series(1, ${notes}::int) i`
  await sql`
    insert into users (id, company_id, email, name, created_at) select pg_temp.id('user', i), ${companyId},
      'person-' || i || '@example.net', 'Person ' || i, now() - make_interval(secs => i) from generate_series(1, ${people}::int) i`
  await sql`
    insert into monitoring_licenses (id, company_id, name, token_hash, token_hint, created_at)
    select pg_temp.id('license', i), ${companyId}, 'license ' || i, md5('license' || i), 'lic_', now() - make_interval(secs => i)
    from generate_series(1, ${people}::int) i`
  await sql`
    insert into monitoring_silences (id, company_id, scope, resolved_server_ids, starts_at, ends_at, reason, sync_version)
    select pg_temp.id('silence', i), ${companyId}, r.scope, r.resolved_server_ids, now() - interval '2 days',
      now() - interval '1 day', 'bench', i
    from generate_series(1, ${people}::int) i join monitoring_rules r on r.id = pg_temp.id('rule', ${people}::int / 2 + i / 2)`
  await sql`
    insert into monitoring_checks (id, company_id, name, scope, resolved_server_ids, type, target, sync_version)
    select pg_temp.id('check', i), ${companyId}, 'check ' || i,
      jsonb_build_object('all', false, 'server_ids', jsonb_build_array(pg_temp.id('server', i)), 'tags', '[]'::jsonb,
        'environments', '[]'::jsonb, 'roles', '[]'::jsonb, 'datacenters', '[]'::jsonb),
      array[pg_temp.id('server', i)], 'tcp', jsonb_build_object('target', 'host-' || i || ':443'), i
    from generate_series(1, ${people}::int) i`
  await sql`update monitoring_feed_counters set value = ${people}::int where feed in ('silences', 'checks')`
}

/** Makes the tables in an empty database, and the company that the benchmark calls for. */
export async function seedCompany(databaseUrl: string): Promise<Seeded> {
  const { config } = loadHubConfig(undefined, { 'database.url': databaseUrl })
  const database = await openHubDatabase(config)
  try {
    const hub = await createHub(config, createLogger('silent'), database)
    return await inTransaction(database.db, async tx => {
      const overrides = { agent_quota: null, metrics_retention_days: null }
      const { id: companyId } = await createCompany(hub, tx, { name: 'Bench', overrides })
      const user = { companyId, email: 'bench@example.net', name: 'Bench', permissions: ['*'], superAdmin: true }
      const { id: userId } = await createUser(tx, user)
      const { token } = await createToken(tx, { userId, name: 'bench', ratePerMinute: 1_000_000, expiresAt: null })
      const { token: collectorToken } = await createCollector(hub, tx, { name: 'Bench' })
      return { companyId, userId, token, collectorToken }
    })
  } finally {
    await database.close()
  }
}

/** Makes tables and rows in an empty database. */
export async function seedHub(databaseUrl: string, of: Sizes = sizes): Promise<Seeded> {
  const seeded = await seedCompany(databaseUrl)
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  try {
    await sql.unsafe(SEEDED_ID)
    // Without the checks of references, which take most of the time. The counts that triggers keep are made once.
    await sql`set session_replication_role = replica`
    await seedServers(sql, seeded.companyId, of)
    await seedAlerts(sql, seeded.companyId, of)
    await seedRecords(sql, seeded, of)
    await sql`insert into monitoring_alert_counts select company_id, state, severity, count(*) from monitoring_alerts group by 1, 2, 3`
    await sql`truncate audit_log_count_changes`
    await sql`
      insert into audit_log_counts select company_id, (created_at at time zone 'UTC')::date, action, actor_id, subject_type, count(*)
      from audit_log where company_id is not null group by 1, 2, 3, 4, 5`
    await sql.unsafe('vacuum analyze')
  } finally {
    await sql.end()
  }
  return seeded
}
