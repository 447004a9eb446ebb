-- Lists of findings by any filter. What a filter can ask for, beside one server, has counts that say where a page begins: findings that are
-- told apart by name only (vulnerability, package) lie together in the index of the list, and how many they are is kept too.

-- The text that a search looks into.
create function security_search_text(vuln_id text, package_key text, aliases jsonb) returns text
  language sql immutable parallel safe as $$
  select lower((vuln_id || chr(10) || package_key || chr(10)
    || coalesce((select string_agg(a, chr(10)) from jsonb_array_elements_text(aliases) a), '')) collate "C")
$$;

-- Names can be long, so keys have their digest.
alter table security_findings
  add column is_attached boolean not null generated always as (server_id is not null) stored,
  add column name_digest uuid not null
    generated always as (md5(vuln_id || chr(10) || package_key || chr(10) || aliases::text)::uuid) stored;
drop index security_findings_list;
create index security_findings_list on security_findings
  (company_id, risk desc, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest, id);

-- What is overdue is counted by company; who was told of it stands in the index.
drop index security_findings_sla;
create index security_findings_sla on security_findings (company_id, sla_due_at) include (sla_told)
  where status = 'open' and sla_due_at is not null;

drop table security_finding_counts;
drop table security_finding_count_changes;
create table security_finding_counts (
  company_id uuid not null,
  risk smallint not null,
  priority text collate "C" not null,
  status text collate "C" not null,
  kind text not null,
  severity_label text collate "C" not null,
  fix_status text not null,
  kev boolean not null,
  is_attached boolean not null,
  count bigint not null,
  primary key (company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached)
);
-- The same by name.
create table security_finding_name_counts (
  company_id uuid not null,
  name_digest uuid not null,
  risk smallint not null,
  priority text collate "C" not null,
  status text collate "C" not null,
  kind text not null,
  severity_label text collate "C" not null,
  fix_status text not null,
  kev boolean not null,
  is_attached boolean not null,
  vuln_id text collate "C" not null,
  package_key text collate "C" not null,
  search_text text collate "C" not null,
  count bigint not null,
  primary key (company_id, name_digest, risk, priority, status, kind, severity_label, fix_status, kev, is_attached)
);
create index security_finding_name_counts_vuln on security_finding_name_counts (company_id, vuln_id);
create table security_finding_count_changes (
  company_id uuid not null,
  risk smallint not null,
  priority text collate "C" not null,
  status text collate "C" not null,
  kind text not null,
  severity_label text collate "C" not null,
  fix_status text not null,
  kev boolean not null,
  is_attached boolean not null,
  name_digest uuid not null,
  vuln_id text collate "C" not null,
  package_key text collate "C" not null,
  aliases jsonb not null,
  count bigint not null
);
create index security_finding_count_changes_company on security_finding_count_changes (company_id);

-- Rows that a statement left as they were in all that counts cancel each other out, without a join of the two tables.
create or replace function security_findings_counted() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    insert into security_finding_count_changes (company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached,
        name_digest, vuln_id, package_key, aliases, count)
      select company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest, vuln_id, package_key, aliases, sum(n)
      from (
        select company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest, vuln_id, package_key, aliases, 1 as n
          from fresh
        union all
        select company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest, vuln_id, package_key, aliases, -1
          from gone) x
      group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 having sum(n) <> 0;
  else
    insert into security_finding_count_changes (company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached,
        name_digest, vuln_id, package_key, aliases, count)
      select company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest, vuln_id, package_key, aliases,
        case tg_op when 'INSERT' then count(*) else -count(*) end
      from changed group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13;
  end if;
  return null;
end $$;
insert into security_finding_count_changes (company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached,
    name_digest, vuln_id, package_key, aliases, count)
  select company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest, vuln_id, package_key, aliases, count(*)
  from security_findings group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13;

-- What people are to be told, written in the transaction that made it so.
create table security_notices (
  position bigint generated always as identity primary key,
  company_id uuid not null,
  type text not null,
  finding_id uuid,
  host_id uuid,
  exception_id uuid,
  created_at timestamptz(3) not null default now()
);
create index security_notices_company on security_notices (company_id, position);

-- An open finding that is new, was resolved, or was of a lower priority. One that an exception gives back is told of with the exception.
create function security_p1_opened() returns trigger language plpgsql as $$
begin
  insert into security_notices (company_id, type, finding_id, host_id)
    values (new.company_id, 'security.finding.p1_opened', new.id, new.host_id);
  return null;
end $$;
create trigger security_p1_inserted after insert on security_findings for each row
  when (new.priority = 'p1' and new.status = 'open') execute function security_p1_opened();
create trigger security_p1_updated after update on security_findings for each row
  when (new.priority = 'p1' and new.status = 'open' and (old.priority <> 'p1' or old.status = 'resolved'))
  execute function security_p1_opened();

-- The day, in the time zone of the company, whose digest was told.
create table security_digests (
  company_id uuid primary key references companies (id) on delete cascade,
  told_on date not null
);
alter table security_settings add column time_zone text not null default 'UTC';
