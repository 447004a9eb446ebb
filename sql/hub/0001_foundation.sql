-- Companies, plans, people, tokens, audit, jobs. Times are timestamptz with milliseconds, as the API shows them.

create table plans (
  code text primary key,
  name text not null,
  agent_quota integer check (agent_quota >= 0),
  metrics_retention_days integer check (metrics_retention_days between 1 and 3650),
  scan_hosts integer,
  scan_history_days integer,
  scan_min_interval_hours integer not null default 24
);
insert into plans (code, name, agent_quota, metrics_retention_days, scan_hosts, scan_history_days, scan_min_interval_hours) values
  ('free', 'Free', 3, 7, 1, 30, 24),
  ('pro', 'Pro', 25, 30, 5, 90, 24),
  ('expert', 'Expert', 100, 90, 20, 180, 6),
  ('team', 'Team', 300, 180, 50, 180, 6),
  ('business', 'Business', 1000, 365, 200, 365, 1),
  ('dedicated', 'Dedicated', null, null, null, null, 1);

create table companies (
  id uuid primary key,
  name text not null,
  slug text not null unique,
  parent_id uuid references companies (id),
  -- Null: the parent's plan, else free.
  plan_code text references plans (code),
  plan_expires_at timestamptz(3),
  -- {agent_quota, metrics_retention_days}: a member that is present replaces the plan's value; null means no limit.
  plan_overrides jsonb not null default '{}',
  personal boolean not null default false,
  suspended_at timestamptz(3),
  deleted_at timestamptz(3),
  created_at timestamptz(3) not null default now()
);
create index companies_parent on companies (parent_id);

create table users (
  id uuid primary key,
  company_id uuid references companies (id) on delete cascade,
  kind text not null default 'person' check (kind in ('person', 'collector', 'matcher')),
  email text not null,
  name text not null,
  password_hash text,
  permissions text[] not null default '{}',
  super_admin boolean not null default false,
  language text not null default 'en',
  time_zone text not null default 'UTC',
  disabled_at timestamptz(3),
  created_at timestamptz(3) not null default now()
);
create unique index users_email on users (lower(email));
create index users_company on users (company_id);

create table roles (
  id uuid primary key,
  company_id uuid references companies (id) on delete cascade,
  name text not null,
  permissions text[] not null,
  built_in boolean not null default false,
  created_at timestamptz(3) not null default now()
);
create unique index roles_name on roles (company_id, lower(name)) nulls not distinct;

create table user_roles (
  user_id uuid not null references users (id) on delete cascade,
  role_id uuid not null references roles (id) on delete cascade,
  primary key (user_id, role_id)
);

create table user_company_grants (
  user_id uuid not null references users (id) on delete cascade,
  company_id uuid not null references companies (id) on delete cascade,
  created_at timestamptz(3) not null default now(),
  primary key (user_id, company_id)
);

create table api_tokens (
  id uuid primary key,
  user_id uuid not null references users (id) on delete cascade,
  name text not null,
  token_hash text not null unique,
  token_hint text not null,
  permissions text[],
  ip_ranges text[],
  -- Null: the hub's default.
  rate_per_minute integer check (rate_per_minute >= 1),
  expires_at timestamptz(3),
  last_used_at timestamptz(3),
  revoked_at timestamptz(3),
  created_at timestamptz(3) not null default now()
);
create index api_tokens_user on api_tokens (user_id);

create table sessions (
  id uuid primary key,
  token_hash text not null unique,
  csrf_token text not null,
  user_id uuid not null references users (id) on delete cascade,
  ip text,
  user_agent text,
  created_at timestamptz(3) not null default now(),
  last_seen_at timestamptz(3) not null default now()
);
create index sessions_user on sessions (user_id);

-- Append-only. No foreign keys: an entry outlives what it names.
create table audit_log (
  id uuid primary key,
  company_id uuid,
  actor_type text not null,
  actor_id uuid,
  actor_name text,
  action text not null,
  subject_type text not null,
  subject_id text,
  subject_name text,
  changes jsonb not null default '{}',
  ip text,
  user_agent text,
  token_id uuid,
  created_at timestamptz(3) not null default now()
);
create index audit_log_company on audit_log (company_id, created_at desc, id desc);
create index audit_log_subject on audit_log (company_id, subject_type, subject_id, created_at desc);

create table jobs (
  id uuid primary key,
  queue text not null,
  payload jsonb not null,
  -- While a job with the same key waits, another is not added: the one that waits does the work of both.
  dedupe_key text,
  state text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed')),
  run_at timestamptz(3) not null default now(),
  tries integer not null default 0,
  locked_until timestamptz(3),
  last_error text,
  created_at timestamptz(3) not null default now(),
  finished_at timestamptz(3)
);
create unique index jobs_dedupe on jobs (dedupe_key) where state = 'waiting' and dedupe_key is not null;
create index jobs_due on jobs (run_at) where state = 'waiting';
create index jobs_running on jobs (locked_until) where state = 'running';
create index jobs_finished on jobs (finished_at) where state in ('done', 'failed');

create table system_settings (
  key text primary key,
  value jsonb not null,
  updated_at timestamptz(3) not null default now()
);
