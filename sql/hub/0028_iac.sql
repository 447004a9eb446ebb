-- Infrastructure as code: runs of manifests with their items, what manifests are bound to, what happened in a run.

create table iac_runs (
  id uuid primary key,
  -- The submitter's company; items may stand in companies below it.
  company_id uuid not null references companies (id) on delete cascade,
  submitter_id uuid references users (id) on delete set null,
  submitter_name text not null,
  -- Who planned it again: approves it no more than the submitter does.
  replanned_by uuid references users (id) on delete set null,
  title text not null,
  description text,
  status text not null check (status in ('planned', 'invalid', 'applied', 'partially-applied')),
  -- [{path, contents, sha256}]
  files jsonb not null,
  files_count integer not null,
  kinds jsonb not null default '{}',
  -- [{path, line, message}]
  errors jsonb not null default '[]',
  queued_at timestamptz(3),
  -- Who applies it, and in which language; the last sign of life of whoever works on it.
  applied_by uuid references users (id) on delete set null,
  apply_language text not null default 'en',
  -- Which of the permissions that its items require the one who applies it holds.
  applier_holds text[] not null default '{}',
  worked_at timestamptz(3),
  applied_at timestamptz(3),
  apply_error text,
  cancelled_at timestamptz(3),
  created_at timestamptz(3) not null default now()
);
create index iac_runs_list on iac_runs (company_id, created_at desc, id desc);
create index iac_runs_submitter on iac_runs (submitter_id, created_at desc) where submitter_id is not null;
create index iac_runs_queued on iac_runs (queued_at) where queued_at is not null;
create index iac_runs_age on iac_runs (created_at);

create table iac_items (
  id uuid primary key,
  run_id uuid not null references iac_runs (id) on delete cascade,
  -- The place in the order of applying, from 0.
  position integer not null,
  path text not null,
  company_id uuid not null references companies (id) on delete cascade,
  -- The slug of that company.
  company text not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  action text not null check (action in ('create', 'update', 'delete', 'none')),
  adopts boolean not null default false,
  -- [{field, old, new}]
  diff jsonb not null default '[]',
  diff_hash text collate "C" not null,
  -- The spec of the manifest; null for one that is to be absent.
  spec jsonb,
  resource_id uuid,
  base_version bigint,
  -- Paths of the items of the run that it refers to.
  refers_to jsonb not null default '[]',
  requires text not null,
  forbidden boolean not null default false,
  status text not null default 'planned' check (status in ('planned', 'applied', 'skipped', 'failed')),
  error text,
  applied_at timestamptz(3)
);
create unique index iac_items_run on iac_items (run_id, position);
create index iac_items_company on iac_items (company_id);

-- What a manifest's name is bound to, and the spec that was applied last.
create table iac_bindings (
  company_id uuid not null references companies (id) on delete cascade,
  kind text collate "C" not null,
  slug text collate "C" not null,
  -- The kind as the audit log and references call it.
  resource_kind text collate "C" not null,
  resource_id uuid not null,
  applied_spec jsonb not null,
  run_id uuid references iac_runs (id) on delete set null,
  -- [{field, intended, actual}]
  drift jsonb not null default '[]',
  drifted_since timestamptz(3),
  updated_at timestamptz(3) not null default now(),
  primary key (company_id, kind, slug)
);
-- Written by the trigger below: to be compared again.
alter table iac_bindings add column is_stale boolean not null default false;
create index iac_bindings_stale on iac_bindings (company_id) where is_stale;
create index iac_bindings_compared on iac_bindings (updated_at);

-- Whatever changes a resource writes the audit log in the same transaction; what is bound is then compared again.
create function iac_note_change() returns trigger language plpgsql as $$
begin
  update iac_bindings set is_stale = true
  where company_id = new.company_id and resource_kind = new.subject_type
    and resource_id = case when new.subject_id ~ '^[0-9a-f]{8}-' then new.subject_id::uuid end;
  return null;
end $$;
create trigger iac_note_change after insert on audit_log for each row
  when (new.company_id is not null and new.subject_id is not null) execute function iac_note_change();
create unique index iac_bindings_resource on iac_bindings (company_id, resource_kind, resource_id);
create index iac_bindings_run on iac_bindings (run_id) where run_id is not null;

create table iac_run_events (
  id bigint generated always as identity primary key,
  run_id uuid not null references iac_runs (id) on delete cascade,
  at timestamptz(3) not null default now(),
  type text not null,
  item_id uuid,
  actor_id uuid,
  actor_name text,
  message text not null default ''
);
create index iac_run_events_run on iac_run_events (run_id, at, id);

create table iac_attachments (
  id uuid primary key,
  run_id uuid not null references iac_runs (id) on delete cascade,
  -- A file of the company.
  file_id uuid not null,
  name text not null,
  size integer not null,
  sha256 text collate "C" not null,
  created_by uuid references users (id) on delete set null,
  created_at timestamptz(3) not null default now()
);
create index iac_attachments_run on iac_attachments (run_id);
create index iac_attachments_file on iac_attachments (file_id);
