-- How many audit entries a company has of each day (UTC), action, actor and kind of subject: lists show totals without counting a hundred
-- thousand rows. Entries are written by transactions that do not wait for each other, and must not begin to: a statement adds a row of what
-- it changed, and the hub adds those up from time to time. A total is the sum of both tables.
create table audit_log_counts (
  company_id uuid not null,
  day date not null,
  action text not null,
  actor_id uuid,
  subject_type text not null,
  count bigint not null
);
create unique index audit_log_counts_key on audit_log_counts (company_id, day, action, actor_id, subject_type) nulls not distinct;

create table audit_log_count_changes (
  company_id uuid not null,
  day date not null,
  action text not null,
  actor_id uuid,
  subject_type text not null,
  count bigint not null
);
create index audit_log_count_changes_company on audit_log_count_changes (company_id);

create function audit_log_counted() returns trigger language plpgsql as $$
begin
  insert into audit_log_count_changes (company_id, day, action, actor_id, subject_type, count)
    select company_id, (created_at at time zone 'UTC')::date, action, actor_id, subject_type,
      case tg_op when 'INSERT' then count(*) else -count(*) end
    from changed where company_id is not null group by 1, 2, 3, 4, 5;
  return null;
end $$;

-- Entries are never changed. The triggers come before the counts: from here on nobody writes until this is committed.
create trigger audit_log_inserted after insert on audit_log
  referencing new table as changed for each statement execute function audit_log_counted();
create trigger audit_log_deleted after delete on audit_log
  referencing old table as changed for each statement execute function audit_log_counted();
insert into audit_log_counts (company_id, day, action, actor_id, subject_type, count)
  select company_id, (created_at at time zone 'UTC')::date, action, actor_id, subject_type, count(*)
  from audit_log where company_id is not null group by 1, 2, 3, 4, 5;

-- Each filter has its entries in the order of the list; a kind of subject and a subject are asked for by the same word.
drop index audit_log_company;
create index audit_log_company on audit_log (company_id, created_at desc, id desc);
create index audit_log_action on audit_log (company_id, action, created_at desc, id desc);
create index audit_log_subject_type on audit_log (company_id, subject_type, created_at desc, id desc);
drop index audit_log_subject;
create index audit_log_subject on audit_log (company_id, subject_id, subject_type, created_at desc, id desc);
