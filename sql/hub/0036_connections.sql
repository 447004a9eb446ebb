-- Connections: a source that needs a target. Both are kept as a kind with an id or a name, and as a key by which the
-- graph finds its edges.
create table connections (
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
  source_kind text not null,
  source_id uuid,
  source_name text,
  source_key text not null,
  target_kind text not null,
  target_id uuid,
  target_name text,
  target_key text not null,
  type text not null default 'custom',
  protocol text not null default 'tcp',
  port integer,
  path text,
  criticality text not null default 'hard',
  probe_by text not null default 'none',
  probe_interval_seconds integer not null default 300,
  probe_timeout_seconds integer not null default 5,
  probe_expect_status integer not null default 200,
  state text not null default 'unknown',
  state_since timestamptz(3),
  check_id uuid,
  -- What the newest tests said: when the last one was, how many failed in a row, until when its success counts.
  tested_at timestamptz(3),
  failed_tests integer not null default 0,
  up_until timestamptz(3)
);
create unique index connections_name on connections (company_id, lower(name)) where deleted_at is null;
create unique index connections_ends on connections (company_id, source_key, target_key, protocol, coalesce(port, 0),
  coalesce(path, '')) where deleted_at is null;
create index connections_target on connections (company_id, target_key) where deleted_at is null;
create index connections_source_id on connections (source_id) where source_id is not null;
create index connections_target_id on connections (target_id) where target_id is not null;
create index connections_by_update on connections (company_id, updated_at, id) where deleted_at is null;
create index connections_by_creation on connections (company_id, created_at, id) where deleted_at is null;
create index connections_by_state on connections (company_id, state_since, id) where deleted_at is null;
create index connections_check on connections (check_id) where check_id is not null;
create index connections_probed on connections (tested_at nulls first) where deleted_at is null and probe_by <> 'none';
create index connections_aging on connections (up_until) where deleted_at is null and state = 'up';
create index connections_owner on connections (owner_team_id) where owner_team_id is not null;
create index connections_deleted on connections (deleted_at) where deleted_at is not null;
create trigger connections_search_text before insert or update on connections
  for each row execute function keep_search_text('name,description,tags,source_name,target_name,port');
create trigger connections_search after insert or update or delete on connections
  for each row execute function keep_search_document('connection', 'name',
    'tags,source_name,target_name,type,port,description', 'target_name');

-- Each change of a connection's state.
create table connection_states (
  connection_id uuid not null references connections (id) on delete cascade,
  at timestamptz(3) not null default now(),
  state text not null
);
create index connection_states_newest on connection_states (connection_id, at desc);

-- A check that belongs to a resource is changed through that alone. Many servers may need one target: theirs are told
-- apart by the server, so that only the checks that people made have a target each.
alter table monitoring_checks add column managed_by_kind text, add column managed_by_id uuid;
drop index monitoring_checks_target;
create unique index monitoring_checks_target on monitoring_checks (company_id, type, target)
  where deleted_at is null and enabled and managed_by_kind is null;

create index monitoring_checks_managed on monitoring_checks (managed_by_kind, managed_by_id)
  where deleted_at is null and managed_by_kind is not null;

-- Every company begins with the usual types of connections.
create function add_usual_options(company uuid) returns void language sql as $$
  insert into option_items (id, company_id, list, value, label, position)
  select gen_random_uuid(), company, 'connection_types', value, value, position
  from unnest(array['http', 'database', 'cache', 'queue', 'storage', 'dns', 'ldap', 'mail', 'api', 'custom'])
    with ordinality as v (value, position)
  on conflict do nothing
$$;
create function keep_usual_options() returns trigger language plpgsql as $$
begin
  perform add_usual_options(new.id);
  return null;
end $$;
create trigger companies_usual_options after insert on companies
  for each row execute function keep_usual_options();
select add_usual_options(id) from companies;
