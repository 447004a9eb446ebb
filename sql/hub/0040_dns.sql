-- Name servers, zones and their records: what a company intends, and what servers answered last.
create table dns_servers (
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
  host text not null,
  port integer not null default 53,
  "role" text not null default 'authoritative',
  integration text not null default 'none',
  api_url text,
  api_key_sealed text,
  server_id text not null default 'localhost',
  server_ref_id uuid references servers (id) on delete set null
);
create unique index dns_servers_name on dns_servers (company_id, lower(name)) where deleted_at is null;
create index dns_servers_by_update on dns_servers (company_id, updated_at, id) where deleted_at is null;
create index dns_servers_owner on dns_servers (owner_team_id) where owner_team_id is not null;
create index dns_servers_deleted on dns_servers (deleted_at) where deleted_at is not null;
create trigger dns_servers_search_text before insert or update on dns_servers
  for each row execute function keep_search_text('name,description,tags,host');
create trigger dns_servers_search after insert or update or delete on dns_servers
  for each row execute function keep_search_document('dns_server', 'name', 'tags,host,description', 'host');

create table dns_zones (
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
  "view" text not null default 'default',
  server_ids uuid[] not null default '{}',
  default_ttl integer not null default 3600,
  soa jsonb not null default '{}',
  serial_policy text not null default 'date',
  verify_interval_minutes integer not null default 60,
  strict boolean not null default false,
  serial bigint not null default 0,
  "reverse" boolean not null default false,
  records_count integer not null default 0,
  sync_state text not null default 'never',
  verified_at timestamptz(3)
);
create unique index dns_zones_name on dns_zones (company_id, name, "view") where deleted_at is null;
create index dns_zones_servers on dns_zones using gin (server_ids) where deleted_at is null;
create index dns_zones_due on dns_zones (verified_at nulls first) where deleted_at is null and verify_interval_minutes > 0;
create index dns_zones_by_update on dns_zones (company_id, updated_at, id) where deleted_at is null;
create index dns_zones_owner on dns_zones (owner_team_id) where owner_team_id is not null;
create index dns_zones_deleted on dns_zones (deleted_at) where deleted_at is not null;
create trigger dns_zones_search_text before insert or update on dns_zones
  for each row execute function keep_search_text('name,description,tags');
create trigger dns_zones_search after insert or update or delete on dns_zones
  for each row execute function keep_search_document('dns_zone', 'name', 'tags,view,description', 'name');

-- What the hub keeps of a zone beside its fields.
create table dns_zone_states (
  zone_id uuid primary key references dns_zones (id) on delete cascade,
  -- The transaction that raised the serial last: each raises it once.
  serial_xact text,
  serials_differ_since timestamptz(3)
);

create table dns_records (
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
  zone_id uuid not null references dns_zones (id) on delete cascade,
  type text not null,
  value text not null,
  ttl integer,
  enabled boolean not null default true,
  ptr boolean not null default false,
  comment text,
  fqdn text not null default '',
  priority integer,
  weight integer,
  port integer,
  target text,
  state text not null default 'unknown',
  seen jsonb not null default '[]',
  managed_by uuid
);
create unique index dns_records_value on dns_records (zone_id, name, type, md5(value)) where deleted_at is null;
create index dns_records_fqdn on dns_records (company_id, fqdn) where deleted_at is null;
create index dns_records_managed on dns_records (managed_by) where managed_by is not null and deleted_at is null;
create index dns_records_addresses on dns_records (company_id, value) where deleted_at is null and type in ('A', 'AAAA');
create index dns_records_by_update on dns_records (company_id, updated_at, id) where deleted_at is null;
create index dns_records_owner on dns_records (owner_team_id) where owner_team_id is not null;
create index dns_records_deleted on dns_records (deleted_at) where deleted_at is not null;
create trigger dns_records_search_text before insert or update on dns_records
  for each row execute function keep_search_text('name,description,tags,value,comment');
create trigger dns_records_search after insert or update or delete on dns_records
  for each row execute function keep_search_document('dns_record', 'name', 'fqdn,value,comment,type', 'fqdn');
