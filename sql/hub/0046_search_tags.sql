-- The tags of everything that search can find. They stood in the text of each document, and a tag that was given or
-- taken wrote the document and all of its indexes anew. There is no reference to the company: what has tags has one.
create table search_tags (
  company_id uuid not null,
  tag text collate "C" not null,
  kind text collate "C" not null,
  resource_id uuid not null,
  primary key (company_id, tag, kind, resource_id)
);
alter table search_documents drop column tags;

-- The tags of a row that search can find.
create function found_tags(r jsonb) returns text[] language sql immutable as $$
  select case when r ->> 'deleted_at' is null and r ->> 'company_id' is not null
    then array(select jsonb_array_elements_text(r -> 'tags')) else '{}' end
$$;

-- Keeps document and tags of a row. Arguments: the kind, the column with the name, columns with words, columns with
-- exact values. The row goes from search when it is deleted, softly or not.
create or replace function keep_search_document() returns trigger language plpgsql as $$
declare
  r jsonb := case when tg_op = 'DELETE' then to_jsonb(old) else to_jsonb(new) end;
  tags_before text[] := '{}';
  tags_now text[] := '{}';
  exact_values text[];
begin
  if jsonb_typeof(r -> 'tags') = 'array' then
    if tg_op <> 'INSERT' then tags_before := found_tags(to_jsonb(old)); end if;
    if tg_op <> 'DELETE' then tags_now := found_tags(r); end if;
    if tags_before <> '{}' then
      delete from search_tags s where s.company_id = (r ->> 'company_id')::uuid and s.tag = any (tags_before)
        and s.tag <> all (tags_now) and s.kind = tg_argv[0] and s.resource_id = (r ->> 'id')::uuid;
    end if;
    -- Those that it had before too: what the index lacks comes back with any write of the row.
    if tags_now <> '{}' then
      insert into search_tags (company_id, tag, kind, resource_id)
        select (r ->> 'company_id')::uuid, tag, tg_argv[0], (r ->> 'id')::uuid from unnest(tags_now) as t (tag)
        on conflict do nothing;
    end if;
  end if;
  if tg_op = 'DELETE' or r ->> 'deleted_at' is not null or r ->> 'company_id' is null then
    delete from search_documents where kind = tg_argv[0] and resource_id = (r ->> 'id')::uuid;
    return null;
  end if;
  select coalesce(array_agg(lower(r ->> name)) filter (where r ->> name is not null), '{}') into exact_values
    from unnest(string_to_array(tg_argv[3], ',')) name;
  insert into search_documents (company_id, kind, resource_id, name, subtitle, text, exact, health, status)
  values ((r ->> 'company_id')::uuid, tg_argv[0], (r ->> 'id')::uuid, coalesce(r ->> tg_argv[1], ''), exact_values[1],
    texts_of(r, array_remove(string_to_array(tg_argv[1] || ',' || tg_argv[2], ','), 'tags'), 2000), exact_values,
    r ->> 'health', coalesce(r ->> 'status', r ->> 'state'))
  on conflict (kind, resource_id) do update set name = excluded.name, subtitle = excluded.subtitle, text = excluded.text,
    exact = excluded.exact, health = excluded.health, status = excluded.status, updated_at = now()
  where (search_documents.name, search_documents.text, search_documents.exact, search_documents.health,
      search_documents.status)
    is distinct from (excluded.name, excluded.text, excluded.exact, excluded.health, excluded.status);
  return null;
end $$;

-- Servers are many, and are given tags by the thousand.
drop trigger servers_search on servers;
create trigger servers_search
  after insert or delete or update of name, hostname, ip_address, environment, role, datacenter, status, deleted_at
  on servers for each row
  execute function keep_search_document('server', 'name', 'hostname,ip_address,environment,role,datacenter', 'hostname,ip_address');
create function keep_server_tags() returns trigger language plpgsql as $$
begin
  with changed as materialized (
    select f.id, f.company_id, f.tags as now, g.tags as before from fresh f join gone g on g.id = f.id
    where f.tags <> g.tags and f.deleted_at is null),
  given as (
    insert into search_tags (company_id, tag, kind, resource_id)
    select c.company_id, t.tag, 'server', c.id from changed c, unnest(c.now) as t (tag)
    where t.tag <> all (c.before) order by 1, 2, 4
    on conflict do nothing)
  delete from search_tags s using changed c, unnest(c.before) as t (tag)
  where t.tag <> all (c.now) and s.company_id = c.company_id and s.tag = t.tag and s.kind = 'server' and s.resource_id = c.id;
  return null;
end $$;
create trigger servers_search_tags after update on servers
  referencing old table as gone new table as fresh for each statement execute function keep_server_tags();

-- Rows with tags are written once, since their documents have the tags in the text: servers, which may be a hundred
-- thousand, by two statements, the others by their own triggers. That may take longer than a statement of the hub.
set local statement_timeout = 0;
insert into search_tags (company_id, tag, kind, resource_id)
  select s.company_id, t.tag, 'server', s.id from servers s, unnest(s.tags) as t (tag) where s.deleted_at is null
  on conflict do nothing;
update search_documents d
  set text = texts_of(to_jsonb(s), array['name', 'hostname', 'ip_address', 'environment', 'role', 'datacenter'], 2000)
  from servers s where d.kind = 'server' and d.resource_id = s.id and s.tags <> '{}';
do $$
declare
  named text;
begin
  foreach named in array array['subnets', 'ip_addresses', 'certificates', 'connections', 'load_balancers', 'lb_pools',
    'lb_members', 'virtual_servers', 'proxies', 'proxy_sites', 'dns_servers', 'dns_zones', 'dns_records'] loop
    execute format('update %I set name = name where tags <> $1', named) using array[]::text[];
  end loop;
end $$;
