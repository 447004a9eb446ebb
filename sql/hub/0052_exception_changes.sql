-- An exception of a great many findings gives them its status, and takes it back, some at a time.
alter table security_exceptions
  -- What is still being done to its findings: `begin` gives them its status, `end` takes it back; null when nothing is.
  add column changing text check (changing in ('begin', 'end')),
  -- The last finding that this came to, and how many it came to.
  add column changed_to uuid,
  add column changed_count integer not null default 0;
create index security_exceptions_changing on security_exceptions (id) where changing is not null;
update security_exceptions set changed_count = finding_count where status = 'approved' or (status in ('withdrawn', 'expired') and decided_at is not null);
