-- What a batch of events costs: work that was done for each finding is done once a statement.

-- A batch locks the scan hosts that it writes findings of, so that none is deleted meanwhile. Looking each of them up again for every
-- finding was a seventh of the pages that a batch reads.
alter table security_findings drop constraint security_findings_host_id_fkey;
create function security_hosts_deleted() returns trigger language plpgsql as $$
begin
  delete from security_findings where host_id in (select host_id from gone);
  return null;
end $$;
create trigger security_hosts_deleted after delete on scan_hosts
  referencing old table as gone for each statement execute function security_hosts_deleted();

-- An open finding that is new, was resolved, or was of a lower priority. One that an exception gives back is told of with the exception.
drop trigger security_p1_inserted on security_findings;
drop trigger security_p1_updated on security_findings;
drop function security_p1_opened();
create function security_p1_inserted() returns trigger language plpgsql as $$
begin
  insert into security_notices (company_id, type, finding_id, host_id)
    select company_id, 'security.finding.p1_opened', id, host_id from fresh where priority = 'p1' and status = 'open';
  return null;
end $$;
create function security_p1_updated() returns trigger language plpgsql as $$
begin
  -- The two tables are joined only where there is something to tell.
  if exists (select 1 from fresh where priority = 'p1' and status = 'open') then
    insert into security_notices (company_id, type, finding_id, host_id)
      select f.company_id, 'security.finding.p1_opened', f.id, f.host_id from fresh f join gone g on g.id = f.id
      where f.priority = 'p1' and f.status = 'open' and (g.priority <> 'p1' or g.status = 'resolved');
  end if;
  return null;
end $$;
create trigger security_p1_inserted after insert on security_findings
  referencing new table as fresh for each statement execute function security_p1_inserted();
create trigger security_p1_updated after update on security_findings
  referencing old table as gone new table as fresh for each statement execute function security_p1_updated();

-- Most findings have no other names. A function of SQL with a query inside is started like a statement at every call.
create or replace function security_search_text(vuln_id text, package_key text, aliases jsonb) returns text
  language plpgsql immutable parallel safe as $$
begin
  if aliases = '[]' then
    return lower((vuln_id || chr(10) || package_key || chr(10)) collate "C");
  end if;
  return lower((vuln_id || chr(10) || package_key || chr(10)
    || coalesce((select string_agg(a, chr(10)) from jsonb_array_elements_text(aliases) a), '')) collate "C");
end $$;

-- A count is changed in its page, without new entries of both indexes.
alter table security_finding_name_counts set (fillfactor = 80);
alter table security_finding_counts set (fillfactor = 80);
