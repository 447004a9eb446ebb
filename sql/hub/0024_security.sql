-- Security: scan hosts, findings and their events, scans, exceptions, settings, exports, reference data.

insert into monitoring_feed_counters (feed) values ('scan_hosts');

create table scan_enrolment_codes (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  -- SHA-256 in hex.
  code_hash text collate "C" not null unique,
  -- A scan host that comes with the code is attached to this server at once.
  server_id uuid references servers (id) on delete cascade,
  -- A code that the collector hands to this agent with its configuration; sealed, since it is handed out more than once.
  agent_id uuid references monitoring_agents (id) on delete cascade,
  code_sealed text,
  max_uses integer not null default 1 check (max_uses between 1 and 10000),
  uses integer not null default 0,
  created_by uuid references users (id) on delete set null,
  created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null,
  last_used_at timestamptz(3),
  check (uses <= max_uses)
);
create index scan_enrolment_codes_company on scan_enrolment_codes (company_id);
create index scan_enrolment_codes_server on scan_enrolment_codes (server_id) where server_id is not null;
create unique index scan_enrolment_codes_agent on scan_enrolment_codes (agent_id) where agent_id is not null;
create index scan_enrolment_codes_expiry on scan_enrolment_codes (expires_at);

create table scan_hosts (
  host_id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  server_id uuid references servers (id) on delete cascade,
  -- Base64 of the 32 bytes of an Ed25519 key.
  public_key text collate "C" not null,
  state text not null default 'active' check (state in ('active', 'revoked')),
  -- Over the plan's number of scan hosts since then: events are taken, but it is not scanned.
  inactive_at timestamptz(3),
  machine_id_hash text collate "C" not null,
  hostname text not null,
  ip_addresses text[] not null default '{}',
  os jsonb not null default '{}',
  scanner_version text,
  code_id uuid references scan_enrolment_codes (id) on delete set null,
  enrolled_at timestamptz(3) not null default now(),
  rotated_at timestamptz(3),
  revoked_at timestamptz(3),
  revoked_reason text,
  last_seen_at timestamptz(3),
  -- The newest report that was told of; the last time people were told that none comes.
  last_report_at timestamptz(3),
  stale_told_at timestamptz(3),
  sync_version bigint not null default 0
) with (fillfactor = 80);
create index scan_hosts_company on scan_hosts (company_id, enrolled_at desc, host_id desc);
create index scan_hosts_server on scan_hosts (server_id) where server_id is not null;
create unique index scan_hosts_of_server on scan_hosts (server_id) where state = 'active' and server_id is not null;
create unique index scan_hosts_machine on scan_hosts (company_id, machine_id_hash) where state = 'active';
create index scan_hosts_code on scan_hosts (code_id) where code_id is not null;
create index scan_hosts_sync on scan_hosts (sync_version);

create table security_exceptions (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  type text not null check (type in ('accepted', 'false_positive')),
  status text not null default 'pending' check (status in ('pending', 'approved', 'rejected', 'expired', 'withdrawn')),
  reason text not null,
  expires_at timestamptz(3),
  finding_count integer not null default 0,
  requested_by uuid references users (id) on delete set null,
  requested_at timestamptz(3) not null default now(),
  decided_by uuid references users (id) on delete set null,
  decided_at timestamptz(3),
  ended_at timestamptz(3),
  expiring_told_at timestamptz(3)
);
create index security_exceptions_company on security_exceptions (company_id, requested_at desc, id desc);
create index security_exceptions_running on security_exceptions (company_id) include (id, type, expires_at) where status = 'approved';
create index security_exceptions_expiry on security_exceptions (expires_at) where status = 'approved' and expires_at is not null;

create table security_findings (
  id uuid primary key,
  company_id uuid not null,
  server_id uuid,
  host_id uuid not null references scan_hosts (host_id) on delete cascade,
  finding_key text collate "C" not null,
  kind text not null check (kind in ('vulnerability', 'check', 'secret', 'sensitive_data', 'release_eol')),
  vuln_id text collate "C" not null,
  aliases jsonb not null default '[]',
  advisory_ids jsonb not null default '[]',
  ecosystem text not null,
  package_key text collate "C" not null,
  packages jsonb not null default '[]',
  installed_version text not null,
  fixed_version text not null,
  fix_status text not null check (fix_status in ('fixed', 'no_fix', 'wont_fix', 'undetermined', 'upgrade_release')),
  fix_channel text not null check (fix_channel in ('standard', 'esm', 'elts')),
  no_distro_fix boolean not null default false,
  -- YYYY-MM-DD or empty, as the payload has it.
  eol_date text not null default '',
  upgrade_to jsonb not null default '[]',
  severity_label text collate "C" not null,
  minor boolean not null,
  kernel boolean not null,
  reboot_required boolean not null,
  cvss_score double precision,
  cvss_vector text,
  score_source text,
  -- Of the reference data; the values of the events are placeholders.
  kev boolean not null default false,
  kev_due_date date,
  epss double precision,
  risk smallint not null check (risk between 0 and 100),
  priority text collate "C" not null check (priority in ('p1', 'p2', 'p3', 'p4')),
  status text collate "C" not null check (status in ('open', 'resolved', 'accepted', 'false_positive')),
  -- The approved exception that gives it its status; kept while the finding is resolved.
  exception_id uuid references security_exceptions (id) on delete set null,
  first_seen_at timestamptz(3) not null,
  last_seen_at timestamptz(3) not null,
  reopened_at timestamptz(3),
  resolved_at timestamptz(3),
  resolved_reason text,
  sla_due_at timestamptz(3),
  -- What people were told of its term: due_soon, overdue.
  sla_told text,
  last_event_seq bigint not null,
  db_version bigint not null
) with (fillfactor = 80);
create unique index security_findings_key on security_findings (company_id, finding_key);
-- The order of the list. Findings that no filter but those on ids and texts can tell apart lie together, and how many they are is kept
-- below: where a page begins is known without reading what comes before it.
create index security_findings_list on security_findings
  (company_id, risk desc, priority, status, kind, severity_label, fix_status, kev, id);
create index security_findings_host on security_findings (host_id);
create index security_findings_server on security_findings (server_id, risk desc, id) where server_id is not null;
create index security_findings_vuln on security_findings (vuln_id, company_id, risk desc, id);
create index security_findings_sla on security_findings (sla_due_at) where status = 'open' and sla_due_at is not null;
create index security_findings_exception on security_findings (exception_id) where exception_id is not null;
create index security_findings_excepted on security_findings (server_id, vuln_id, package_key)
  where exception_id is not null and server_id is not null;

-- The findings that a request names.
create table security_exception_findings (
  exception_id uuid not null references security_exceptions (id) on delete cascade,
  finding_id uuid not null references security_findings (id) on delete cascade,
  primary key (exception_id, finding_id)
);
create index security_exception_findings_finding on security_exception_findings (finding_id);

-- Everything that was accepted, whether it changed a finding or not. Without references: it is deleted with its scan host.
create table security_finding_events (
  event_id text collate "C" primary key,
  company_id uuid not null,
  host_id uuid not null,
  server_id uuid,
  finding_id uuid,
  seq bigint not null,
  type text not null,
  occurred_at timestamptz(3) not null,
  payload jsonb not null,
  received_at timestamptz(3) not null default now()
);
create index security_finding_events_host on security_finding_events (host_id, received_at);
create index security_finding_events_finding on security_finding_events (finding_id, seq desc) where finding_id is not null;

create table security_server_scans (
  host_id uuid primary key references scan_hosts (host_id) on delete cascade,
  company_id uuid not null,
  server_id uuid,
  last_event_seq bigint not null,
  scanned_at timestamptz(3) not null,
  scanner_version text,
  db_version bigint not null,
  os jsonb not null,
  kernel_running text,
  reboot_required boolean,
  livepatch_active boolean,
  package_count integer,
  error_codes jsonb not null default '[]',
  match_status text not null,
  release_support text,
  open_findings integer
);
create index security_server_scans_company on security_server_scans (company_id);
create index security_server_scans_server on security_server_scans (server_id) where server_id is not null;

-- How many findings a company has of each risk, status and so on. Batches do not wait for each other: a statement adds a row of what it
-- changed, and the hub adds those up from time to time. A total is the sum of both tables.
create table security_finding_counts (
  company_id uuid not null,
  risk smallint not null,
  priority text collate "C" not null,
  status text collate "C" not null,
  kind text not null,
  severity_label text collate "C" not null,
  fix_status text not null,
  kev boolean not null,
  count bigint not null,
  primary key (company_id, risk, priority, status, kind, severity_label, fix_status, kev)
);
create table security_finding_count_changes (
  company_id uuid not null,
  risk smallint not null,
  priority text collate "C" not null,
  status text collate "C" not null,
  kind text not null,
  severity_label text collate "C" not null,
  fix_status text not null,
  kev boolean not null,
  count bigint not null
);
create index security_finding_count_changes_company on security_finding_count_changes (company_id);

-- The same of what was opened and resolved each day (UTC).
create table security_finding_days (
  company_id uuid not null,
  day date not null,
  opened bigint not null,
  resolved bigint not null,
  primary key (company_id, day)
);
create table security_finding_day_changes (
  company_id uuid not null,
  day date not null,
  opened bigint not null,
  resolved bigint not null
);
create index security_finding_day_changes_company on security_finding_day_changes (company_id);

create function security_findings_counted() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    insert into security_finding_count_changes (company_id, risk, priority, status, kind, severity_label, fix_status, kev, count)
      select company_id, risk, priority, status, kind, severity_label, fix_status, kev, sum(n) from (
        select company_id, risk, priority, status, kind, severity_label, fix_status, kev, 1 as n from fresh
        union all select company_id, risk, priority, status, kind, severity_label, fix_status, kev, -1 from gone) x
      group by 1, 2, 3, 4, 5, 6, 7, 8 having sum(n) <> 0;
  else
    insert into security_finding_count_changes (company_id, risk, priority, status, kind, severity_label, fix_status, kev, count)
      select company_id, risk, priority, status, kind, severity_label, fix_status, kev,
        case tg_op when 'INSERT' then count(*) else -count(*) end
      from changed group by 1, 2, 3, 4, 5, 6, 7, 8;
  end if;
  return null;
end $$;

create trigger security_findings_inserted after insert on security_findings
  referencing new table as changed for each statement execute function security_findings_counted();
create trigger security_findings_updated after update on security_findings
  referencing old table as gone new table as fresh for each statement execute function security_findings_counted();
create trigger security_findings_deleted after delete on security_findings
  referencing old table as changed for each statement execute function security_findings_counted();

create table security_settings (
  company_id uuid primary key references companies (id) on delete cascade,
  version integer not null default 1,
  enabled boolean not null default true,
  scan_interval_hours integer not null default 24 check (scan_interval_hours between 1 and 720),
  updated_at timestamptz(3) not null default now()
);

create table security_expected_ports (
  company_id uuid not null references companies (id) on delete cascade,
  port integer not null check (port between 1 and 65535),
  proto text not null check (proto in ('tcp', 'udp')),
  primary key (company_id, port, proto)
);

create table security_content_scan_settings (
  company_id uuid primary key references companies (id) on delete cascade,
  enabled boolean not null default false,
  kinds text[] not null default '{}',
  paths text[] not null default '{}',
  max_file_mb integer not null default 10 check (max_file_mb between 1 and 1024),
  updated_at timestamptz(3) not null default now()
);

create table security_exports (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  format text not null check (format in ('csv', 'jsonl')),
  filters jsonb not null default '{}',
  status text not null default 'queued' check (status in ('queued', 'running', 'ready', 'failed')),
  row_count integer,
  error text,
  requested_by uuid references users (id) on delete set null,
  created_at timestamptz(3) not null default now(),
  finished_at timestamptz(3),
  expires_at timestamptz(3) not null
);
create index security_exports_company on security_exports (company_id, created_at desc, id desc);
create index security_exports_expiry on security_exports (expires_at);
create table security_export_parts (
  export_id uuid not null references security_exports (id) on delete cascade,
  part integer not null,
  content bytea not null,
  primary key (export_id, part)
);

-- What is public of a vulnerability, whatever company has it. Null where the matcher did not say.
create table security_vulnerabilities (
  vuln_id text collate "C" primary key,
  title text,
  description text,
  cvss_score double precision,
  cvss_vector text,
  severity text,
  published_at timestamptz(3),
  modified_at timestamptz(3),
  reference_urls jsonb not null default '[]',
  aliases jsonb,
  kev boolean,
  kev_due_date date,
  epss double precision,
  updated_at timestamptz(3) not null default now()
);

-- What a matcher said of itself last, by its service user.
create table security_matchers (
  user_id uuid primary key references users (id) on delete cascade,
  version text not null,
  db_version bigint not null,
  queue_depth bigint not null,
  last_heartbeat_at timestamptz(3) not null,
  stale_told_at timestamptz(3)
);
