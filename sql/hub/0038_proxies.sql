-- Proxies: reverse ones with their sites and the revisions of their configuration, forward ones as a way out for the hub.
create table proxies (
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
  mode text not null default 'reverse' check (mode in ('reverse', 'forward')),
  software text not null default 'other',
  enabled boolean not null default true,
  server_ids uuid[] not null default '{}',
  addresses text[] not null default '{}',
  listen jsonb not null default '[]',
  url text,
  username text,
  password_sealed text,
  use_for text[] not null default '{}',
  no_proxy text[] not null default '{}',
  check_interval_seconds integer not null default 300,
  checked_at timestamptz(3),
  -- When the clock checks it next; a first failure is looked at again earlier.
  next_check_at timestamptz(3)
);
create unique index proxies_name on proxies (company_id, lower(name)) where deleted_at is null;
-- Each use has one enabled forward proxy in a company.
create unique index proxies_use_webhooks on proxies (company_id)
  where deleted_at is null and enabled and 'webhooks' = any (use_for);
create unique index proxies_use_probes on proxies (company_id)
  where deleted_at is null and enabled and 'probes' = any (use_for);
create index proxies_servers on proxies using gin (server_ids) where deleted_at is null;
create index proxies_due on proxies (next_check_at) where deleted_at is null and enabled and check_interval_seconds > 0;
create index proxies_by_update on proxies (company_id, updated_at, id) where deleted_at is null;
create index proxies_owner on proxies (owner_team_id) where owner_team_id is not null;
create index proxies_deleted on proxies (deleted_at) where deleted_at is not null;
create trigger proxies_search_text before insert or update on proxies
  for each row execute function keep_search_text('name,description,tags,url');
create trigger proxies_search after insert or update or delete on proxies
  for each row execute function keep_search_document('proxy', 'name', 'tags,mode,software,url,addresses,description', 'name,url');

create table proxy_sites (
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
  proxy_id uuid not null references proxies (id) on delete cascade,
  hostnames text[] not null,
  path text not null default '/',
  -- The upstream: a resource with a port, or an address.
  upstream_kind text,
  upstream_id uuid,
  upstream_port integer,
  upstream_url text,
  certificate_id uuid,
  redirect_https boolean not null default false,
  enabled boolean not null default true,
  "check" jsonb not null,
  state text not null default 'unknown',
  result jsonb
);
create unique index proxy_sites_name on proxy_sites (proxy_id, lower(name)) where deleted_at is null;
create index proxy_sites_hostnames on proxy_sites using gin (hostnames) where deleted_at is null;
create index proxy_sites_upstream on proxy_sites (upstream_id) where upstream_id is not null and deleted_at is null;
create index proxy_sites_certificate on proxy_sites (certificate_id) where certificate_id is not null and deleted_at is null;
create index proxy_sites_by_update on proxy_sites (company_id, proxy_id, updated_at, id) where deleted_at is null;
create index proxy_sites_owner on proxy_sites (owner_team_id) where owner_team_id is not null;
create index proxy_sites_deleted on proxy_sites (deleted_at) where deleted_at is not null;
create trigger proxy_sites_search_text before insert or update on proxy_sites
  for each row execute function keep_search_text('name,description,tags,hostnames,path,upstream_url');
create trigger proxy_sites_search after insert or update or delete on proxy_sites
  for each row execute function keep_search_document('proxy_site', 'name', 'tags,hostnames,path,description', 'name');

-- Configurations as they were when they were frozen: servers pull the newest one. `texts` has one for each format.
create table proxy_revisions (
  company_id uuid not null references companies (id) on delete cascade,
  proxy_id uuid not null references proxies (id) on delete cascade,
  revision integer not null,
  texts jsonb not null,
  created_at timestamptz(3) not null default now(),
  primary key (proxy_id, revision)
);
