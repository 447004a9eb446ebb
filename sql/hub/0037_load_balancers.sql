-- Load balancers: devices, their pools of members, and the virtual servers that clients reach.
create table load_balancers (
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
  vendor text not null,
  server_ids uuid[] not null default '{}',
  datacenter text,
  integration text not null default 'none',
  management_url text,
  username text,
  password_sealed text,
  verify_tls boolean not null default true,
  writes boolean not null default false,
  sync_interval_seconds integer not null default 0,
  synced_at timestamptz(3),
  -- The newest attempt to read the device, and whether it failed.
  sync_tried_at timestamptz(3),
  sync_failed boolean not null default false
);
create unique index load_balancers_name on load_balancers (company_id, lower(name)) where deleted_at is null;
create index load_balancers_servers on load_balancers using gin (server_ids) where deleted_at is null;
create index load_balancers_due on load_balancers (sync_tried_at nulls first)
  where deleted_at is null and sync_interval_seconds > 0;
create index load_balancers_by_update on load_balancers (company_id, updated_at, id) where deleted_at is null;
create index load_balancers_owner on load_balancers (owner_team_id) where owner_team_id is not null;
create index load_balancers_deleted on load_balancers (deleted_at) where deleted_at is not null;
create trigger load_balancers_search_text before insert or update on load_balancers
  for each row execute function keep_search_text('name,description,tags,management_url');
create trigger load_balancers_search after insert or update or delete on load_balancers
  for each row execute function keep_search_document('load_balancer', 'name', 'tags,vendor,datacenter,management_url,description', 'name');

create table lb_pools (
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
  device_id uuid not null references load_balancers (id) on delete cascade,
  protocol text not null default 'tcp',
  algorithm text not null default 'round_robin',
  health_check jsonb not null,
  persistence text not null default 'none',
  min_up integer not null default 1,
  warn_below_percent integer not null default 50,
  -- The state that its conditions were decided by.
  judged_state text
);
create unique index lb_pools_name on lb_pools (device_id, lower(name)) where deleted_at is null;
create index lb_pools_by_update on lb_pools (company_id, device_id, updated_at, id) where deleted_at is null;
create index lb_pools_owner on lb_pools (owner_team_id) where owner_team_id is not null;
create index lb_pools_deleted on lb_pools (deleted_at) where deleted_at is not null;
create trigger lb_pools_search_text before insert or update on lb_pools
  for each row execute function keep_search_text('name,description,tags');
create trigger lb_pools_search after insert or update or delete on lb_pools
  for each row execute function keep_search_document('lb_pool', 'name', 'tags,protocol,description', 'name');

create table lb_members (
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
  pool_id uuid not null references lb_pools (id) on delete cascade,
  server_id uuid references servers (id) on delete cascade,
  -- Null for a member that is a server: its address is the server's.
  address text,
  port integer not null,
  weight integer not null default 1,
  backup boolean not null default false,
  max_connections integer,
  admin_state text not null default 'enabled',
  drain_until timestamptz(3),
  drain_then text,
  drain_started_at timestamptz(3),
  -- What the device said last.
  observed_state text,
  active_connections integer,
  observed_at timestamptz(3),
  -- What the device does not know yet, and how often it was told in vain.
  pending_state text,
  write_failures integer not null default 0,
  written_at timestamptz(3)
);
create unique index lb_members_name on lb_members (pool_id, lower(name)) where deleted_at is null;
create index lb_members_server on lb_members (server_id) where server_id is not null;
create index lb_members_draining on lb_members (drain_until) where admin_state = 'draining' and deleted_at is null;
create index lb_members_pending on lb_members (written_at nulls first) where pending_state is not null and deleted_at is null;
create index lb_members_by_update on lb_members (company_id, pool_id, updated_at, id) where deleted_at is null;
create index lb_members_owner on lb_members (owner_team_id) where owner_team_id is not null;
create index lb_members_deleted on lb_members (deleted_at) where deleted_at is not null;
create trigger lb_members_search_text before insert or update on lb_members
  for each row execute function keep_search_text('name,description,tags,address');
create trigger lb_members_search after insert or update or delete on lb_members
  for each row execute function keep_search_document('lb_member', 'name', 'tags,address,description', 'name,address');

create table virtual_servers (
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
  device_id uuid not null references load_balancers (id) on delete cascade,
  address text not null,
  port integer not null,
  protocol text not null default 'http',
  pool_id uuid references lb_pools (id) on delete set null,
  rules jsonb not null default '[]',
  -- The pools that rules name.
  rule_pool_ids uuid[] not null default '{}',
  certificate_ids uuid[] not null default '{}',
  enabled boolean not null default true
);
create unique index virtual_servers_name on virtual_servers (device_id, lower(name)) where deleted_at is null;
create unique index virtual_servers_port on virtual_servers (device_id, address, port, (protocol = 'udp'))
  where deleted_at is null;
create index virtual_servers_pool on virtual_servers (pool_id) where pool_id is not null and deleted_at is null;
create index virtual_servers_rule_pools on virtual_servers using gin (rule_pool_ids) where deleted_at is null;
create index virtual_servers_certificates on virtual_servers using gin (certificate_ids) where deleted_at is null;
create index virtual_servers_by_update on virtual_servers (company_id, device_id, updated_at, id) where deleted_at is null;
create index virtual_servers_owner on virtual_servers (owner_team_id) where owner_team_id is not null;
create index virtual_servers_deleted on virtual_servers (deleted_at) where deleted_at is not null;
create trigger virtual_servers_search_text before insert or update on virtual_servers
  for each row execute function keep_search_text('name,description,tags,address');
create trigger virtual_servers_search after insert or update or delete on virtual_servers
  for each row execute function keep_search_document('virtual_server', 'name', 'tags,address,protocol,description', 'name,address');
