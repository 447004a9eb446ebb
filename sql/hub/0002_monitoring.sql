-- The monitoring family: collectors, servers, licences, agents, rules, silences, checks, alerts, inventory, settings.

-- One row a feed, raised under its row lock as the last act of a transaction: commit order is number order.
create table monitoring_feed_counters (
  feed text primary key,
  value bigint not null default 0
);
insert into monitoring_feed_counters (feed) values ('agents'), ('checks'), ('rules'), ('servers'), ('silences');

create table monitoring_collectors (
  internal_id bigint generated always as identity,
  id uuid primary key,
  name text not null,
  base_url text,
  admin_url text,
  admin_token_sealed text,
  service_user_id uuid references users (id) on delete set null,
  version text,
  last_heartbeat_at timestamptz(3),
  agent_count integer,
  ingest_rps double precision,
  outbox_depth integer,
  settings jsonb not null default '{}',
  created_at timestamptz(3) not null default now()
);

create table servers (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  name text not null,
  hostname text,
  ip_address text,
  environment text,
  role text,
  datacenter text,
  subnet_id text,
  tags text[] not null default '{}',
  operating_system text,
  cpu_cores integer,
  memory_mb integer,
  disk_gb integer,
  status text not null default 'active' check (status in ('active', 'maintenance', 'decommissioned', 'draft')),
  origin text not null default 'manual' check (origin in ('manual', 'iac', 'agent')),
  notes text,
  sync_version bigint not null default 0,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  deleted_at timestamptz(3)
);
create unique index servers_name on servers (company_id, lower(name)) where deleted_at is null;
create index servers_ip on servers (company_id, ip_address) where deleted_at is null;
create index servers_hostname on servers (company_id, lower(hostname)) where deleted_at is null;
create index servers_sync on servers (sync_version);

-- What is deleted for good stays in its feed as a tombstone until it is swept.
create table monitoring_feed_tombstones (
  feed text not null references monitoring_feed_counters (feed),
  id uuid not null,
  company_id uuid not null,
  sync_version bigint not null,
  deleted_at timestamptz(3) not null default now(),
  primary key (feed, id)
);
create index monitoring_feed_tombstones_sync on monitoring_feed_tombstones (feed, sync_version);

create table monitoring_licenses (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  name text not null,
  token_hash text not null unique,
  token_hint text not null,
  server_id uuid references servers (id) on delete set null,
  collector_id uuid references monitoring_collectors (id) on delete set null,
  expires_at timestamptz(3),
  max_uses integer not null default 1 check (max_uses between 1 and 1000),
  used_count integer not null default 0,
  last_used_at timestamptz(3),
  revoked_at timestamptz(3),
  superseded_at timestamptz(3),
  superseded_by uuid references monitoring_licenses (id) on delete set null,
  supersedes uuid references monitoring_licenses (id) on delete set null,
  migrate_until timestamptz(3),
  created_by uuid references users (id) on delete set null,
  created_at timestamptz(3) not null default now(),
  check (used_count <= max_uses)
);
create index monitoring_licenses_company on monitoring_licenses (company_id, created_at desc, id desc);
create index monitoring_licenses_migrating on monitoring_licenses (migrate_until) where superseded_at is not null;

create table monitoring_agents (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  server_id uuid references servers (id) on delete set null,
  collector_id uuid references monitoring_collectors (id) on delete set null,
  license_id uuid references monitoring_licenses (id) on delete set null,
  token_hash text not null unique,
  prev_token_hash text,
  prev_token_expires_at timestamptz(3),
  machine_id text,
  hostname text,
  os_family text,
  os_version text,
  arch text,
  agent_version text,
  proto_version integer,
  state text not null check (state in ('pending', 'active', 'revoked')),
  last_seen_at timestamptz(3),
  enrolled_at timestamptz(3) not null default now(),
  revoked_at timestamptz(3),
  revoked_reason text,
  rotated_at timestamptz(3)[] not null default '{}',
  rotation_failed_at timestamptz(3),
  version bigint not null default 1,
  sync_version bigint not null default 0
);
create index monitoring_agents_company on monitoring_agents (company_id, enrolled_at desc, id desc);
create index monitoring_agents_server on monitoring_agents (server_id);
create index monitoring_agents_prev on monitoring_agents (prev_token_hash) where prev_token_hash is not null;
create index monitoring_agents_machine on monitoring_agents (company_id, machine_id) where state <> 'revoked';
create index monitoring_agents_license on monitoring_agents (license_id);
create index monitoring_agents_collector on monitoring_agents (collector_id);
create index monitoring_agents_sync on monitoring_agents (sync_version);

create table monitoring_checks (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  name text not null,
  scope jsonb not null,
  resolved_server_ids uuid[] not null default '{}',
  type text not null check (type in ('service', 'port', 'tcp', 'http', 'cert')),
  target jsonb not null,
  interval_seconds integer not null default 60,
  timeout_seconds integer not null default 5,
  enabled boolean not null default true,
  sync_version bigint not null default 0,
  created_by uuid references users (id) on delete set null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  deleted_at timestamptz(3)
);
create index monitoring_checks_company on monitoring_checks (company_id, created_at desc, id desc);
create index monitoring_checks_sync on monitoring_checks (sync_version);
create unique index monitoring_checks_target on monitoring_checks (company_id, type, target) where deleted_at is null;

create table monitoring_rules (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  version integer not null default 1,
  name text not null,
  kind text not null check (kind in ('threshold', 'check', 'agent_down')),
  scope jsonb not null,
  resolved_server_ids uuid[] not null default '{}',
  metric text,
  matchers jsonb,
  operator text,
  threshold double precision,
  for_seconds integer,
  recover_threshold double precision,
  recover_for_seconds integer,
  severity text not null check (severity in ('info', 'warning', 'critical')),
  no_data text,
  renotify_seconds integer,
  enabled boolean not null default true,
  is_default boolean not null default false,
  default_key text,
  check_id uuid references monitoring_checks (id) on delete set null,
  created_by uuid references users (id) on delete set null,
  sync_version bigint not null default 0,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  deleted_at timestamptz(3)
);
create index monitoring_rules_company on monitoring_rules (company_id, created_at desc, id desc);
create index monitoring_rules_sync on monitoring_rules (sync_version);
create index monitoring_rules_check on monitoring_rules (check_id) where check_id is not null;
create unique index monitoring_rules_agent_down on monitoring_rules (company_id) where kind = 'agent_down' and deleted_at is null;

create table monitoring_silences (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  scope jsonb not null,
  resolved_server_ids uuid[] not null default '{}',
  starts_at timestamptz(3) not null,
  ends_at timestamptz(3) not null,
  reason text not null,
  cancelled_at timestamptz(3),
  deleted_at timestamptz(3),
  created_by uuid references users (id) on delete set null,
  sync_version bigint not null default 0,
  created_at timestamptz(3) not null default now()
);
create index monitoring_silences_company on monitoring_silences (company_id, created_at desc, id desc);
create index monitoring_silences_sync on monitoring_silences (sync_version);

create table monitoring_alerts (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  type text not null check (type in ('threshold', 'check', 'no_data', 'agent_down', 'group_down')),
  server_id uuid not null references servers (id) on delete cascade,
  agent_id uuid references monitoring_agents (id) on delete set null,
  rule_id uuid references monitoring_rules (id) on delete set null,
  -- The rule_id of the events: a uuid, agent_down or group_down.
  rule_key text not null,
  series_key text not null,
  labels jsonb not null default '{}',
  severity text not null,
  state text not null check (state in ('open', 'acknowledged', 'resolved', 'closed', 'grouped')),
  opened_at timestamptz(3) not null,
  resolved_at timestamptz(3),
  resolved_reason text,
  last_value double precision,
  peak_value double precision,
  threshold double precision,
  suppressed boolean not null default false,
  suppress_reason text,
  flapping boolean not null default false,
  group_id uuid references monitoring_alerts (id) on delete set null deferrable initially deferred,
  group_total integer,
  group_member_ids uuid[],
  acknowledged_by uuid references users (id) on delete set null,
  acknowledged_at timestamptz(3),
  closed_by uuid references users (id) on delete set null,
  closed_at timestamptz(3),
  event_count integer not null default 0,
  last_event_seq bigint not null default 0,
  -- Whether people were told of its opening: an alert that opened suppressed is told when the suppression ends.
  notified_at timestamptz(3),
  recovery_untold boolean not null default false,
  created_at timestamptz(3) not null default now()
);
create index monitoring_alerts_list on monitoring_alerts (company_id, opened_at desc, id desc);
create index monitoring_alerts_state on monitoring_alerts (company_id, state, opened_at desc, id desc);
create index monitoring_alerts_severity on monitoring_alerts (company_id, severity, opened_at desc, id desc);
create index monitoring_alerts_server on monitoring_alerts (company_id, server_id, opened_at desc, id desc);
create index monitoring_alerts_agent on monitoring_alerts (company_id, agent_id, opened_at desc, id desc);
create index monitoring_alerts_rule on monitoring_alerts (rule_id) where state in ('open', 'acknowledged', 'grouped');
create index monitoring_alerts_group on monitoring_alerts (group_id) where group_id is not null;
create index monitoring_alerts_key on monitoring_alerts (server_id, rule_key, series_key, opened_at desc);
create unique index monitoring_alerts_active on monitoring_alerts (server_id, rule_key, series_key)
  where state in ('open', 'acknowledged', 'grouped');
create index monitoring_alerts_suppressed on monitoring_alerts (company_id)
  where suppressed and state in ('open', 'acknowledged');

create table monitoring_alert_events (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  server_id uuid not null references servers (id) on delete cascade,
  alert_id uuid references monitoring_alerts (id) on delete cascade,
  event_id text not null unique,
  seq bigint not null,
  type text not null,
  occurred_at timestamptz(3) not null,
  payload jsonb not null,
  received_at timestamptz(3) not null default now()
);
create index monitoring_alert_events_alert on monitoring_alert_events (alert_id, occurred_at desc, seq desc);
create index monitoring_alert_events_age on monitoring_alert_events (company_id, occurred_at);

-- The newest processed seq of each (server, rule, series), kept apart so that clean-up of events does not reset it.
create table monitoring_event_seqs (
  server_id uuid not null references servers (id) on delete cascade,
  rule_key text not null,
  series_key text not null,
  seq bigint not null,
  primary key (server_id, rule_key, series_key)
);

create table monitoring_alert_comments (
  id uuid primary key,
  alert_id uuid not null references monitoring_alerts (id) on delete cascade,
  user_id uuid references users (id) on delete set null,
  action text not null,
  comment text not null,
  created_at timestamptz(3) not null default now()
);
create index monitoring_alert_comments_alert on monitoring_alert_comments (alert_id, created_at);

create table monitoring_inventory_facts (
  id uuid primary key,
  server_id uuid not null unique references servers (id) on delete cascade,
  company_id uuid not null references companies (id) on delete cascade,
  agent_id uuid,
  facts jsonb not null,
  facts_hash text not null,
  reported_at timestamptz(3) not null
);

create table monitoring_settings (
  company_id uuid primary key references companies (id) on delete cascade,
  default_interval integer not null default 30 check (default_interval between 10 and 300),
  auto_create_server boolean not null default false,
  group_down_min integer check (group_down_min >= 1),
  group_down_ratio double precision check (group_down_ratio > 0 and group_down_ratio <= 1),
  group_down_window_seconds integer check (group_down_window_seconds >= 1),
  retention_note text,
  alert_event_retention_days integer check (alert_event_retention_days between 1 and 3650),
  metrics_retention_effective_days integer check (metrics_retention_effective_days between 1 and 3650),
  metrics_retention_previous_days integer check (metrics_retention_previous_days between 1 and 3650),
  metrics_retention_grace_until timestamptz(3),
  metrics_retention_changed_at timestamptz(3)
);
