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
  depth integer not null default 0,
  -- How many registered addresses lie in it and in no subnet below, kept by triggers of the addresses.
  direct_used bigint not null default 0,
  -- What lists sort by; computed anew by the clock while usage_stale.
  used_percent real not null default 0,
  usage_stale boolean not null default true,
  -- No address below this one is free, as far as addresses were registered one after the other.
  free_from inet
);
create unique index subnets_name on subnets (company_id, lower(name)) where deleted_at is null;
create unique index subnets_cidr on subnets (company_id, vrf, cidr) where deleted_at is null;
create index subnets_by_cidr on subnets (company_id, cidr, id) where deleted_at is null;
create index subnets_by_update on subnets (company_id, updated_at, id) where deleted_at is null;
create index subnets_around on subnets using gist (company_id, cidr inet_ops) where deleted_at is null;
create index subnets_children on subnets (parent_id) where deleted_at is null;
create index subnets_owner on subnets (owner_team_id) where owner_team_id is not null;
create index subnets_deleted on subnets (deleted_at) where deleted_at is not null;
create index subnets_by_usage on subnets (company_id, used_percent, id) where deleted_at is null;
create index subnets_stale on subnets (company_id) where usage_stale and deleted_at is null;
-- Only columns that search shows: counts of addresses change with every address.
create trigger subnets_search_text
  before insert or update of name, description, tags, cidr on subnets
  for each row execute function keep_search_text('name,description,tags,cidr');
create trigger subnets_search
  after insert or delete or update of name, description, tags, cidr, vrf, health, status, deleted_at on subnets
  for each row execute function keep_search_document('subnet', 'name', 'tags,cidr,vrf,description', 'cidr');

-- Addresses. An address is registered once in a company and address space; its subnet is the narrowest one around it.
create table ip_addresses (
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
  address inet not null,
  vrf text not null default 'default',
  role text not null default 'host',
  server_id uuid references servers (id) on delete set null,
  interface text,
  mac text,
  dns_name text,
  reserved_until timestamptz(3),
  purpose text,
  subnet_id uuid references subnets (id) on delete set null,
  released_at timestamptz(3)
);
create unique index ip_addresses_address on ip_addresses (company_id, vrf, address) where deleted_at is null;
create index ip_addresses_by_address on ip_addresses (company_id, address, id) where deleted_at is null;
create index ip_addresses_by_update on ip_addresses (company_id, updated_at, id) where deleted_at is null;
create index ip_addresses_by_subnet on ip_addresses (subnet_id, address) where deleted_at is null;
create index ip_addresses_by_server on ip_addresses (server_id) where server_id is not null and deleted_at is null;
create index ip_addresses_by_status on ip_addresses (company_id, status) where deleted_at is null and status <> 'active';
create index ip_addresses_owner on ip_addresses (owner_team_id) where owner_team_id is not null;
create index ip_addresses_deleted on ip_addresses (deleted_at) where deleted_at is not null;
create index ip_addresses_text on ip_addresses using gin (company_id, search_text gin_trgm_ops);
create trigger ip_addresses_search_text
  before insert or update of name, description, tags, dns_name, mac on ip_addresses
  for each row execute function keep_search_text('name,description,tags,dns_name,mac');
create trigger ip_addresses_search
  after insert or delete or update of name, description, tags, dns_name, mac, health, status, deleted_at on ip_addresses
  for each row execute function keep_search_document('ip_address', 'name', 'dns_name,tags,mac,vrf,description', 'address,dns_name,mac');

-- Counts registered addresses of subnets. `old_rows` and `new_rows` are what one statement changed.
create function count_ip_addresses() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    update subnets s set direct_used = direct_used + d.delta, usage_stale = true
      from (select subnet_id, count(*) as delta from new_rows
        where deleted_at is null and status <> 'released' and subnet_id is not null group by subnet_id) d
      where s.id = d.subnet_id;
  elsif tg_op = 'DELETE' then
    update subnets s set direct_used = direct_used - d.delta, usage_stale = true
      from (select subnet_id, count(*) as delta from old_rows
        where deleted_at is null and status <> 'released' and subnet_id is not null group by subnet_id) d
      where s.id = d.subnet_id;
  else
    update subnets s set direct_used = direct_used + d.delta, usage_stale = true,
        -- What is free again may lie below the point from which the search for free addresses begins.
        free_from = case when d.freed is not null and d.freed < s.free_from then d.freed else s.free_from end
      from (select subnet_id, sum(delta) as delta, min(freed) as freed from (
          select subnet_id, 1 as delta, null::inet as freed from new_rows
            where deleted_at is null and status <> 'released' and subnet_id is not null
          union all select subnet_id, -1, address from old_rows
            where deleted_at is null and status <> 'released' and subnet_id is not null) x
        group by subnet_id having sum(delta) <> 0) d
      where s.id = d.subnet_id;
  end if;
  return null;
end $$;
create trigger ip_addresses_count_insert after insert on ip_addresses
  referencing new table as new_rows for each statement execute function count_ip_addresses();
create trigger ip_addresses_count_delete after delete on ip_addresses
  referencing old table as old_rows for each statement execute function count_ip_addresses();
create trigger ip_addresses_count_update after update on ip_addresses
  referencing old table as old_rows new table as new_rows for each statement execute function count_ip_addresses();

-- What agents report: which server has which address. What a report no longer holds stays with its last time.
create table ip_observations (
  company_id uuid not null references companies (id) on delete cascade,
  server_id uuid not null references servers (id) on delete cascade,
  address inet not null,
  interface text not null,
  first_seen_at timestamptz(3) not null,
  last_seen_at timestamptz(3) not null,
  primary key (company_id, address, server_id)
);
create index ip_observations_server on ip_observations (server_id);
create index ip_observations_seen on ip_observations (last_seen_at);

-- Answers of allocations that carried a request_id, for 24 hours.
create table ip_allocations (
  company_id uuid not null references companies (id) on delete cascade,
  request_id text not null,
  address_ids uuid[] not null,
  created_at timestamptz(3) not null default now(),
  primary key (company_id, request_id)
);

-- The items of option lists; the lists themselves are fixed.
create table option_items (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  list text not null,
  value text not null,
  label text not null,
  label_vi text,
  color text,
  position integer not null,
  enabled boolean not null default true,
  is_default boolean not null default false,
  created_at timestamptz(3) not null default now()
);
create unique index option_items_value on option_items (company_id, list, lower(value));
create table option_lists (
  company_id uuid not null references companies (id) on delete cascade,
  list text not null,
  strict boolean not null default false,
  primary key (company_id, list)
);

-- What the hub had before kinds, in search: servers, checks, rules, silences, webhooks, licences, agents, alerts, users
-- and teams. Triggers look at columns that search shows, so that heartbeats and values cost nothing.
create trigger servers_search
  after insert or delete or update of name, hostname, ip_address, tags, environment, role, datacenter, status, deleted_at
  on servers for each row
  execute function keep_search_document('server', 'name', 'hostname,ip_address,tags,environment,role,datacenter', 'hostname,ip_address');
create trigger checks_search after insert or delete or update of name, type, deleted_at on monitoring_checks
  for each row execute function keep_search_document('check', 'name', 'type', 'id');
create trigger rules_search after insert or delete or update of name, metric, kind, deleted_at on monitoring_rules
  for each row execute function keep_search_document('rule', 'name', 'metric,kind', 'id');
create trigger silences_search after insert or delete or update of reason, deleted_at on monitoring_silences
  for each row execute function keep_search_document('silence', 'reason', 'reason', 'id');
create trigger webhooks_search after insert or delete or update of name, enabled on webhooks
  for each row execute function keep_search_document('webhook', 'name', 'name', 'id');
create trigger licenses_search after insert or delete or update of name, revoked_at on monitoring_licenses
  for each row execute function keep_search_document('license', 'name', 'name', 'id');
create trigger agents_search after insert or delete or update of hostname, state, agent_version on monitoring_agents
  for each row execute function keep_search_document('agent', 'hostname', 'agent_version,os_family', 'hostname');
create trigger users_search after insert or delete or update of name, email on users
  for each row execute function keep_search_document('user', 'name', 'email', 'email');
create trigger teams_search after insert or delete or update of name on teams
  for each row execute function keep_search_document('team', 'name', 'name', 'id');
-- Rows of before are written once, by their own triggers.
update servers set name = name;
update monitoring_checks set name = name;
update monitoring_rules set name = name;
update monitoring_silences set reason = reason;
update webhooks set name = name;
update monitoring_licenses set name = name;
update monitoring_agents set hostname = hostname;
update users set name = name;
update teams set name = name;
