-- What all kinds of resources share: conditions, runs, and the documents of search. A kind has a table of its own with
-- the common columns; `test/api/kinds.test.ts` holds each table to its definition.
create extension if not exists pg_trgm;
create extension if not exists btree_gin;
create extension if not exists btree_gist;

-- What the hub finds wrong with a resource: one open row for each resource and code. A probed one is open once `since`
-- is set.
create table resource_conditions (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  kind text not null,
  resource_id uuid not null,
  code text not null,
  severity text not null check (severity in ('info', 'warning', 'critical')),
  detail jsonb not null default '{}',
  failures integer not null default 1,
  since timestamptz(3),
  resolved_at timestamptz(3),
  -- When people were told of it, and of its end.
  told_at timestamptz(3),
  recovery_told_at timestamptz(3)
);
create unique index resource_conditions_open on resource_conditions (kind, resource_id, code) where resolved_at is null;
create index resource_conditions_company on resource_conditions (company_id, kind, resource_id);
create index resource_conditions_untold on resource_conditions (since)
  where told_at is null and since is not null and resolved_at is null and severity <> 'info';
create index resource_conditions_untold_end on resource_conditions (resolved_at)
  where told_at is not null and resolved_at is not null and recovery_told_at is null;

-- Work that leaves the hub for a resource; one under way for each resource and action.
create table resource_runs (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  kind text not null,
  resource_id uuid not null,
  action text not null,
  state text not null check (state in ('queued', 'running', 'done', 'failed')),
  input jsonb not null default '{}',
  requested_by uuid,
  queued_at timestamptz(3) not null default now(),
  started_at timestamptz(3),
  finished_at timestamptz(3),
  result jsonb,
  error text
);
create unique index resource_runs_under_way on resource_runs (kind, resource_id, action) where state in ('queued', 'running');
create index resource_runs_newest on resource_runs (company_id, kind, resource_id, action, queued_at desc);
create index resource_runs_old on resource_runs (queued_at);

-- One row for everything that search can find, written by triggers in the transaction of each change (R-073). `exact`
-- has values that are looked up whole, in lower case; `text` what words are looked for in.
create table search_documents (
  company_id uuid not null references companies (id) on delete cascade,
  kind text not null,
  resource_id uuid not null,
  name text not null,
  subtitle text,
  text text not null,
  exact text[] not null default '{}',
  tags text[] not null default '{}',
  health text,
  status text,
  updated_at timestamptz(3) not null default now(),
  primary key (kind, resource_id)
);
create index search_documents_exact on search_documents using gin (company_id, exact);
create index search_documents_text on search_documents using gin (company_id, text gin_trgm_ops);
create index search_documents_name on search_documents using gin (company_id, lower(name) gin_trgm_ops);

-- The texts of the named columns of a row, in lower case, at most so many characters.
create function texts_of(record jsonb, columns text[], at_most integer) returns text language sql immutable as $$
  select left(lower(coalesce(string_agg(
    case jsonb_typeof(record -> name)
      when 'array' then (select string_agg(x, ' ') from jsonb_array_elements_text(record -> name) x)
      else record ->> name end, ' ' order by position), '')), at_most)
  from unnest(columns) with ordinality as c (name, position)
$$;

-- Keeps `search_text` of a kind: the argument names the columns that its list is searched in.
create function keep_search_text() returns trigger language plpgsql as $$
begin
  new.search_text := texts_of(to_jsonb(new), string_to_array(tg_argv[0], ','), 10000);
  return new;
end $$;

-- Keeps the document of a row. Arguments: the kind, the column with the name, columns with words, columns with exact
-- values. The row goes from search when it is deleted, softly or not.
create function keep_search_document() returns trigger language plpgsql as $$
declare
  r jsonb := case when tg_op = 'DELETE' then to_jsonb(old) else to_jsonb(new) end;
  exact_values text[];
begin
  if tg_op = 'DELETE' or r ->> 'deleted_at' is not null or r ->> 'company_id' is null then
    delete from search_documents where kind = tg_argv[0] and resource_id = (r ->> 'id')::uuid;
    return null;
  end if;
  select coalesce(array_agg(lower(r ->> name)) filter (where r ->> name is not null), '{}') into exact_values
    from unnest(string_to_array(tg_argv[3], ',')) name;
  insert into search_documents (company_id, kind, resource_id, name, subtitle, text, exact, tags, health, status)
  values ((r ->> 'company_id')::uuid, tg_argv[0], (r ->> 'id')::uuid, coalesce(r ->> tg_argv[1], ''), exact_values[1],
    texts_of(r, string_to_array(tg_argv[1] || ',' || tg_argv[2], ','), 2000), exact_values,
    case when jsonb_typeof(r -> 'tags') = 'array' then array(select jsonb_array_elements_text(r -> 'tags')) else '{}' end,
    r ->> 'health', coalesce(r ->> 'status', r ->> 'state'))
  on conflict (kind, resource_id) do update set name = excluded.name, subtitle = excluded.subtitle, text = excluded.text,
    exact = excluded.exact, tags = excluded.tags, health = excluded.health, status = excluded.status, updated_at = now()
  where (search_documents.name, search_documents.text, search_documents.exact, search_documents.tags,
      search_documents.health, search_documents.status)
    is distinct from (excluded.name, excluded.text, excluded.exact, excluded.tags, excluded.health, excluded.status);
  return null;
end $$;

-- Everything that only reads, for the viewer and the operator.
update roles set permissions = permissions || array(
    select key from unnest(array['connections.view', 'load-balancers.view', 'proxies.view', 'certificates.view',
      'dns.view', 'network.view', 'options.view', 'files.view', 'iac.view', 'approvals.view']) key
    where key <> all (permissions))
  where built_in and name in ('viewer', 'operator');
