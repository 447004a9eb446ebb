// The rows of the lists that `resources.ts` measures: as many as a company may have, up to 100,000. A test counts what
// the same lists read of fewer.
import type postgres from 'postgres'
import { seededId } from './hub-seed.ts'

const ROWS = 100_000
const ZONES = 10
/** The id of a row of a kind, as `seededId` has it. */
const seeded = (kind: string, of = 'i'): string =>
  `overlay(overlay(md5('${kind}' || ${of}) placing '4' from 13) placing '8' from 17)::uuid`

/** Makes the rows, without the triggers that keep search and counts, which are not what is asked here. */
export async function seedLists(sql: postgres.Sql, companyId: string, userId: string, rows = ROWS): Promise<void> {
  await sql`set session_replication_role = replica`
  const values = { company: `'${companyId}'::uuid`, user: `'${userId}'::uuid`, rows }
  for (const statement of statements(values)) await sql.unsafe(statement)
  await sql`set session_replication_role = origin`
  await sql.unsafe('vacuum analyze')
}

type Seeding = { readonly company: string; readonly user: string; readonly rows: number }

const statements = ({ company, user, rows }: Seeding): readonly string[] => [
  `insert into servers (id, company_id, name, sync_version) select ${seeded('server')}, ${company}, 'server ' || i, i
    from generate_series(1, 100) i`,
  `insert into subnets (id, company_id, name, cidr, vlan_id, used_percent, search_text, updated_at)
    select ${seeded('subnet')}, ${company}, '10.' || i / 256 || '.' || i % 256 || '.0/24',
      ('10.' || i / 256 || '.' || i % 256 || '.0/24')::cidr, 1 + i % 4000, i % 100,
      '10.' || i / 256 || '.' || i % 256 || '.0/24', now() - make_interval(secs => i) from generate_series(0, ${Math.min(rows, 10_000) - 1}) i`,
  `insert into ip_addresses (id, company_id, name, address, status, tags, search_text, dns_name, subnet_id, server_id,
      updated_at, created_at, health, last_seen_at)
    select ${seeded('ip')}, ${company}, host(a), a, (array['active', 'reserved', 'dhcp'])[1 + i % 3],
      array['team-' || i % 100], host(a) || ' team-' || i % 100 || ' host-' || i || '.example.net',
      'host-' || i || '.example.net', ${seeded('subnet', 'i / 256')},
      case when i % 2 = 0 then ${seeded('server', '1 + i % 100')} end,
      now() - make_interval(secs => i), now() - make_interval(secs => i), 'ok',
      case when i % 10 > 0 then now() - make_interval(secs => i) end
    from generate_series(1, ${rows}) i, lateral (select '10.0.0.0'::inet + i as a) x`,
  `insert into ip_addresses (id, company_id, name, address, search_text, deleted_at)
    select ${seeded('gone ip')}, ${company}, host(a), a, host(a), now() - make_interval(secs => i)
    from generate_series(1, ${rows}) i, lateral (select '11.0.0.0'::inet + i as a) x`,
  `insert into ip_observations (company_id, server_id, address, interface, first_seen_at, last_seen_at)
    select ${company}, ${seeded('server', '1 + i % 100')}, '10.0.0.0'::inet + i, 'eth0', now() - interval '2 days',
      now() - make_interval(secs => i) from generate_series(1, ${rows}) i where i % 10 > 0`,
  `insert into resource_conditions (id, company_id, kind, resource_id, code, severity, since)
    select ${seeded('condition')}, ${company}, 'ip_address', ${seeded('ip')}, 'stale_address', 'info', now()
    from generate_series(1, ${rows}) i where i % 10 = 0`,
  `insert into connections (id, company_id, name, source_kind, source_name, source_key, target_kind, target_name,
      target_key, port, type, criticality, state, state_since, search_text, updated_at)
    select ${seeded('connection')}, ${company}, 'shop ' || i, 'service', 'shop-' || s, 'service:shop-' || s, 'service',
      'shop-' || t, 'service:shop-' || t, 1 + i, (array['http', 'database'])[1 + i % 2],
      (array['hard', 'soft'])[1 + i % 2], (array['up', 'down', 'unknown'])[1 + i % 3], now() - make_interval(secs => i),
      'shop ' || i || ' shop-' || s || ' shop-' || t, now() - make_interval(secs => i)
    from generate_series(1, ${Math.min(rows, 20_000)}) i,
      lateral (select i % 5000 as s, (i % 5000 + 1 + (i * 7919) % 4999) % 5000 as t) x`,
  `insert into connection_states (connection_id, at, state)
    select ${seeded('connection', '1')}, now() - make_interval(secs => i), 'up' from generate_series(1, ${rows}) i`,
  `insert into dns_zones (id, company_id, name) select ${seeded('zone')}, ${company}, 'zone-' || i || '.example'
    from generate_series(1, ${ZONES}) i`,
  `insert into dns_records (id, company_id, zone_id, name, type, value, fqdn, search_text)
    select ${seeded('record')}, ${company}, ${seeded('zone', `1 + i % ${ZONES}`)}, 'h' || i, 'A', host('10.0.0.0'::inet + i),
      'h' || i || '.zone-' || 1 + i % ${ZONES} || '.example', 'h' || i || ' ' || host('10.0.0.0'::inet + i)
    from generate_series(1, ${rows}) i`,
  `insert into certificates (id, company_id, name, subject, common_name, sans, not_before, not_after, search_text, updated_at,
      key_type, issuer)
    select ${seeded('certificate')}, ${company}, 'certificate ' || i, 'CN=www-' || i || '.example.net',
      'www-' || i || '.example.net', array['www-' || i || '.example.net'], now() - interval '30 days',
      now() + make_interval(hours => i), 'certificate ' || i || ' www-' || i || '.example.net',
      now() - make_interval(secs => i), 'ec', 'CN=CA' from generate_series(1, ${Math.min(rows, 10_000)}) i`,
  `insert into files (id, company_id, name, type, bytes, sha256, object_id, uploaded_by, created_at)
    select ${seeded('file')}, ${company}, 'file-' || i || '.txt', (array['text/plain', 'image/png'])[1 + i % 2], i,
      md5(i::text), gen_random_uuid(), ${user}, now() - make_interval(secs => i) from generate_series(1, ${rows}) i`,
  `insert into exports (id, company_id, resource, format, state, requested_by, permissions, created_at)
    select ${seeded('export')}, ${company}, (array['servers', 'ips'])[1 + i % 2], 'csv', 'expired', ${user}, '{}',
      now() - make_interval(secs => i) from generate_series(1, ${rows}) i`,
  `insert into iac_runs (id, company_id, submitter_id, submitter_name, title, status, files, files_count, created_at)
    select ${seeded('run')}, ${company}, ${user}, 'Bench', 'Run ' || i, (array['planned', 'applied', 'invalid'])[1 + i % 3],
      '[]', 1, now() - make_interval(secs => i) from generate_series(1, ${rows}) i`,
  `insert into approval_tickets (id, company_id, workflow_id, workflow, run_id, item_id, kind, name, action, diff,
      diff_hash, state, step_started_at, sla_due_at, due_soon_at, requested_by, requester_ids, expires_at, created_at)
    select ${seeded('ticket')}, ${company}, gen_random_uuid(),
      '{"name": "w", "version": 1, "allowSelf": false, "distinctApprovers": false, "steps": [{"name": "s", "approvers": {"role": null, "team": null, "users": []}, "required": 1, "slaHours": 1, "onOverdue": "notify", "escalateTo": null}]}',
      ${seeded('run')}, gen_random_uuid(), 'server', 'server-' || i, 'create', '[]', 'x',
      (array['approved', 'rejected', 'cancelled'])[1 + i % 3], now(), now(), now(), ${user}, array[${user}],
      now() + interval '1 day', now() - make_interval(secs => i) from generate_series(1, ${rows}) i`,
  `insert into audit_log (id, company_id, actor_type, actor_id, actor_name, action, subject_type, subject_id, created_at)
    select ${seeded('audit')}, ${company}, 'user', ${user}, 'Bench', 'ip_address.update', 'ip_address',
      case when i % 2 = 0 then ${seeded('ip', '1')} else ${seeded('ip')} end::text, now() - make_interval(secs => i)
    from generate_series(1, ${rows}) i`,
  `insert into audit_log_counts (company_id, day, action, actor_id, subject_type, count)
    select company_id, (created_at at time zone 'UTC')::date, action, actor_id, subject_type, count(*) from audit_log
    where company_id is not null group by 1, 2, 3, 4, 5 on conflict do nothing`,
]

const usual = ['', 'sort=name', 'sort=-updated_at', 'sort=created_at']
const queries: Readonly<Record<string, readonly string[]>> = {
  '/ips': [
    ...usual,
    ...[
      'sort=last_seen',
      'tag=team-7',
      'search=10.1.2',
      'search=host-77',
      'status=dhcp',
      'conflict=1',
      'stale=1',
      'stale=0',
    ],
    ...['seen=1', 'seen=0', 'unassigned=1', 'contained_in=10.0.7.0/24', 'health=critical', 'page=6000', 'trashed=1'],
    ...[
      `subnet_id=${seededId('subnet', 7)}`,
      `server_id=${seededId('server', 7)}`,
      'trashed=1&page=6000',
      'origin=manual',
    ],
  ],
  '/subnets': [
    ...usual,
    ...['sort=-used_percent', 'contains=10.1.2.3', 'within=10.1.0.0/16', 'search=10.3', 'used_over=90', 'page=600'],
    ...['family=4', 'parent_id=none', 'vlan_id=7'],
  ],
  '/connections': [
    ...usual,
    ...['node=service:shop-7', 'state=up', 'search=shop-77', 'sort=-state_since', 'type=http', 'page=1300'],
  ],
  [`/connections/${seededId('connection', 1)}/history`]: ['', 'page=6000'],
  [`/dns/zones/${seededId('zone', 7)}/records`]: [...usual, 'search=h77', 'type=A', 'page=600'],
  '/certificates': [...usual, 'search=www-77', 'page=600'],
  '/files': ['', 'sort=-size', 'search=file-77', 'type=image/png', 'attached=0', 'attached=1', 'page=6000'],
  '/exports': ['', 'state=expired', 'resource=ips', 'page=6000'],
  '/iac/runs': ['', 'status=applied', 'search=Run 77', 'page=6000'],
  '/approvals/tickets': ['', 'state=approved', 'page=6000'],
  '/audit-log': [
    '',
    'action=ip_address.update',
    'subject_type=ip_address',
    `subject=${seededId('ip', 1)}`,
    'page=6000',
  ],
  [`/ips/${seededId('ip', 1)}/history`]: ['', 'page=3000'],
}

/** The lists with their filters, orders and last pages. */
export const listPaths = Object.entries(queries).flatMap(([path, some]) => some.map(query => `${path}?${query}`))
