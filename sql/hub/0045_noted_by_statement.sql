-- Whatever changes a resource writes the audit log in the same transaction; what is bound is then compared again. One
-- statement does it for all entries of a request: a trigger for each row asked the bindings ten thousand times.
drop trigger iac_note_change on audit_log;
create or replace function iac_note_change() returns trigger language plpgsql as $$
begin
  update iac_bindings b set is_stale = true from noted n
  where b.company_id = n.company_id and b.resource_kind = n.subject_type
    and b.resource_id = case when n.subject_id ~ '^[0-9a-f]{8}-' then n.subject_id::uuid end;
  return null;
end $$;
create trigger iac_note_change after insert on audit_log
  referencing new table as noted for each statement execute function iac_note_change();
