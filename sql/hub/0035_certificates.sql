-- Certificates: one row a purpose ("the shop's certificate"), the leaves that were uploaded or seen for it as versions,
-- and where it is served.
create table certificates (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  name text not null,
  description text,
  tags text[] not null default '{}',
  owner_team_id uuid references teams (id) on delete set null,
  status text not null default 'active',
  version bigint not null default 1,
  origin text not null default 'manual',
  health text not null default 'unknown',
  probe_until timestamptz(3),
  drifted boolean not null default false,
  drift jsonb not null default '[]',
  created_by uuid,
  updated_by uuid,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  deleted_at timestamptz(3),
  search_text text not null default '',
  source text not null default 'observed',
  -- The chain of the current version. Never a key.
  pem text,
  endpoint jsonb,
  hostnames text[] not null default '{}',
  renew_before_days integer not null default 30,
  -- Null: what the setting certificates.warn_days says.
  warn_days integer[],
  auto_renewed boolean not null default false,
  monitor jsonb not null default '{}',
  subject text,
  issuer text,
  serial text,
  fingerprint_sha256 text,
  common_name text,
  sans text[] not null default '{}',
  key_type text,
  signature_algorithm text,
  not_before timestamptz(3),
  not_after timestamptz(3),
  self_signed boolean,
  chain jsonb,
  revoked_at timestamptz(3),
  renewal jsonb,
  -- When the clock alone changes what is said of it: a stage of warning, its end, the end of a renewal.
  judge_at timestamptz(3)
);
create unique index certificates_name on certificates (company_id, lower(name)) where deleted_at is null;
create index certificates_by_update on certificates (company_id, updated_at, id) where deleted_at is null;
create index certificates_by_end on certificates (company_id, not_after, id) where deleted_at is null;
create index certificates_sans on certificates using gin (sans) where deleted_at is null;
create index certificates_owner on certificates (owner_team_id) where owner_team_id is not null;
create index certificates_deleted on certificates (deleted_at) where deleted_at is not null;
create index certificates_judge on certificates (judge_at) where deleted_at is null and judge_at is not null;
create trigger certificates_search_text before insert or update on certificates
  for each row execute function keep_search_text('name,description,tags,subject,sans,serial,fingerprint_sha256');
create trigger certificates_search after insert or update or delete on certificates
  for each row execute function keep_search_document('certificate', 'name', 'tags,subject,sans,hostnames,description',
    'subject,fingerprint_sha256,serial');

create table certificate_versions (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  certificate_id uuid not null references certificates (id) on delete cascade,
  number integer not null,
  source text not null check (source in ('uploaded', 'observed')),
  fingerprint_sha256 text not null,
  serial text not null,
  issuer text not null,
  not_before timestamptz(3) not null,
  not_after timestamptz(3) not null,
  pem text not null,
  added_by uuid,
  added_at timestamptz(3) not null default now(),
  revoked_at timestamptz(3),
  revoke_reason text,
  revoke_note text
);
create unique index certificate_versions_leaf on certificate_versions (certificate_id, fingerprint_sha256);
create unique index certificate_versions_number on certificate_versions (certificate_id, number);

create table certificate_deployments (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  certificate_id uuid not null references certificates (id) on delete cascade,
  kind text not null check (kind in ('endpoint', 'server', 'virtual_server', 'proxy_site')),
  -- The server, virtual server or site; null for an endpoint.
  target_id uuid,
  -- Null for a server: its address of today counts.
  host text,
  port integer not null,
  sni text,
  made_by text not null check (made_by in ('hand', 'link')),
  state text not null default 'unknown' check (state in ('ok', 'other', 'expired', 'unreachable', 'unknown')),
  error text,
  fingerprint_sha256 text,
  not_after timestamptz(3),
  chain_complete boolean,
  tls_version text,
  -- What is wrong there: its state, or `chain` for an incomplete one; and how often in a row it was.
  problem text,
  failures integer not null default 0,
  checked_at timestamptz(3),
  next_check_at timestamptz(3) not null default now(),
  created_by uuid,
  created_at timestamptz(3) not null default now()
);
create unique index certificate_deployments_place on certificate_deployments
  (certificate_id, kind, target_id, host, port, sni) nulls not distinct;
create index certificate_deployments_company on certificate_deployments (company_id, certificate_id);
create index certificate_deployments_target on certificate_deployments (target_id) where target_id is not null;
create index certificate_deployments_due on certificate_deployments (next_check_at);
