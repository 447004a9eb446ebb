-- What operators set while hubs run: settings, pauses of queues, maintenance; which hubs run; commands and their runs.

-- A value of a setting: of a company, or for all where there is no company. A secret one is sealed.
create table setting_values (
  key text collate "C" not null,
  company_id uuid references companies (id) on delete cascade,
  value jsonb,
  value_sealed text,
  updated_by uuid references users (id) on delete set null,
  updated_at timestamptz(3) not null default now(),
  check ((value is null) <> (value_sealed is null))
);
-- Of no company is the company of zeros here: PostgreSQL 14 cannot take nulls for equal.
create unique index setting_values_key on setting_values
  (key, coalesce(company_id, '00000000-0000-0000-0000-000000000000'));
create index setting_values_company on setting_values (company_id);

create table queue_pauses (
  queue text collate "C" primary key,
  paused_until timestamptz(3) not null,
  paused_by uuid references users (id) on delete set null
);

-- One row at most; none: off.
create table maintenance (
  id boolean primary key default true check (id),
  mode text not null check (mode in ('off', 'read_only')),
  message_en text,
  message_vi text,
  until timestamptz(3),
  updated_by uuid references users (id) on delete set null,
  updated_at timestamptz(3) not null default now()
);

-- A process of the hub: it says every few seconds that it lives.
create table hub_processes (
  id uuid primary key,
  host text not null,
  version text not null,
  started_at timestamptz(3) not null,
  last_seen_at timestamptz(3) not null,
  running jsonb not null default '[]'
);

create table system_command_runs (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  level text not null check (level in ('company', 'system')),
  command text not null,
  parameters jsonb not null default '{}',
  state text not null default 'queued' check (state in ('queued', 'running', 'done', 'failed', 'cancelled')),
  started_by uuid references users (id) on delete set null,
  created_at timestamptz(3) not null default now(),
  started_at timestamptz(3),
  finished_at timestamptz(3),
  cancel_asked boolean not null default false,
  -- The process that runs it.
  hub_id uuid,
  progress_done integer not null default 0,
  progress_total integer,
  output text not null default '',
  error text
);
create index system_command_runs_company on system_command_runs (company_id, created_at desc, id desc);
create index system_command_runs_system on system_command_runs (created_at desc, id desc) where level = 'system';
create index system_command_runs_ended on system_command_runs (finished_at);
-- One run of a command at a time, in a company or for all.
create unique index system_command_runs_once on system_command_runs
  (command, (case level when 'company' then company_id else '00000000-0000-0000-0000-000000000000' end))
  where state in ('queued', 'running');
