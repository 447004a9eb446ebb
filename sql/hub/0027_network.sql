-- Subnets: blocks of addresses. The parent of one is the narrowest block around it.
create table subnets (
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
  cidr cidr not null,
  vrf text not null default 'default',
  kind text not null default 'network',
  gateway inet,
  vlan_id integer,
  datacenter text,
  environment text,
  discovery text not null default 'observe',
  reserved jsonb not null default '[]',
  quarantine_hours integer not null default 0,
  warn_percent integer not null default 80,
  critical_percent integer not null default 95,
  "full" boolean not null default false,
  assign_servers boolean not null default false,
  parent_id uuid,
  depth integer not null default 0
);
create unique index subnets_name on subnets (company_id, lower(name)) where deleted_at is null;
create unique index subnets_cidr on subnets (company_id, vrf, cidr) where deleted_at is null;
create index subnets_by_cidr on subnets (company_id, cidr, id) where deleted_at is null;
create index subnets_by_update on subnets (company_id, updated_at, id) where deleted_at is null;
create index subnets_around on subnets using gist (company_id, cidr inet_ops) where deleted_at is null;
create index subnets_children on subnets (parent_id) where deleted_at is null;
create index subnets_owner on subnets (owner_team_id) where owner_team_id is not null;
create index subnets_deleted on subnets (deleted_at) where deleted_at is not null;
create trigger subnets_search_text before insert or update on subnets
  for each row execute function keep_search_text('name,description,tags,cidr');
create trigger subnets_search after insert or update or delete on subnets
  for each row execute function keep_search_document('subnet', 'name', 'tags,cidr,vrf,description', 'cidr');
