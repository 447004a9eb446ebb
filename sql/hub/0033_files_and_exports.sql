-- Files of companies, exports, and the content of both: sealed blocks of 1 MiB.

create table stored_objects (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  -- Whether each block was compressed before it was sealed.
  is_packed boolean not null,
  created_at timestamptz(3) not null default now()
);
create index stored_objects_company on stored_objects (company_id);
create table stored_blocks (
  object_id uuid not null references stored_objects (id) on delete cascade,
  block integer not null,
  content bytea not null,
  primary key (object_id, block)
);
-- What is sealed cannot be compressed.
alter table stored_blocks alter column content set storage external;

create table files (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  name text not null,
  description text,
  type text not null,
  bytes bigint not null,
  sha256 text collate "C" not null,
  object_id uuid not null unique references stored_objects (id),
  uploaded_by uuid references users (id) on delete set null,
  version integer not null default 1,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create index files_company on files (company_id, created_at desc, id desc);
create index files_uploaded_by on files (uploaded_by);

-- What refers to files: whoever keeps a file_id in a table of its own adds it here.
create view file_referrers as
  select null::uuid as file_id, null::text as kind, null::uuid as id, null::text as name, null::text as field where false;

create table export_schedules (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  name text not null,
  resource text not null,
  format text not null check (format in ('csv', 'json', 'jsonl')),
  filters jsonb not null default '{}',
  columns text[],
  every text not null check (every in ('day', 'week', 'month')),
  at_time time not null,
  -- 1 is Monday.
  weekday integer check (weekday between 1 and 7),
  day integer check (day between 1 and 28),
  time_zone text not null,
  recipients uuid[] not null default '{}',
  enabled boolean not null default true,
  disabled_reason text,
  failures_in_a_row integer not null default 0,
  owner_id uuid references users (id) on delete set null,
  next_run_at timestamptz(3),
  last_run_at timestamptz(3),
  created_at timestamptz(3) not null default now()
);
create index export_schedules_company on export_schedules (company_id, created_at desc, id desc);
create index export_schedules_due on export_schedules (next_run_at) where enabled;

create table exports (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  resource text not null,
  format text not null check (format in ('csv', 'json', 'jsonl')),
  filters jsonb not null default '{}',
  columns text[],
  options jsonb not null default '{}',
  state text not null default 'queued' check (state in ('queued', 'running', 'ready', 'failed', 'expired')),
  schedule_id uuid references export_schedules (id) on delete set null,
  -- Whose rights it has, and by which keys at most.
  requested_by uuid references users (id) on delete set null,
  permissions text[] not null,
  recipients uuid[] not null default '{}',
  object_id uuid references stored_objects (id),
  -- One try at writing it: a later one takes it over.
  attempt uuid,
  tries integer not null default 0,
  hub_id uuid,
  row_count integer not null default 0,
  bytes bigint,
  sha256 text collate "C",
  error text,
  created_at timestamptz(3) not null default now(),
  finished_at timestamptz(3),
  expires_at timestamptz(3)
);
create index exports_company on exports (company_id, created_at desc, id desc);
create index exports_requested_by on exports (requested_by);
create index exports_expiry on exports (expires_at) where state = 'ready';
create index exports_running on exports (hub_id) where state = 'running';
create index exports_schedule on exports (schedule_id);
