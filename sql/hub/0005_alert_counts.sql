-- How many alerts a company has of each state and severity, kept by the statements that change them: lists and the
-- overview show totals without counting a hundred thousand rows.
create table monitoring_alert_counts (
  company_id uuid not null references companies (id) on delete cascade,
  state text not null,
  severity text not null,
  count bigint not null,
  primary key (company_id, state, severity)
);
insert into monitoring_alert_counts (company_id, state, severity, count)
  select company_id, state, severity, count(*) from monitoring_alerts group by company_id, state, severity;

create function monitoring_alerts_counted() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into monitoring_alert_counts as c (company_id, state, severity, count)
      select company_id, state, severity, count(*) from fresh group by 1, 2, 3 order by 1, 2, 3
      on conflict (company_id, state, severity) do update set count = c.count + excluded.count;
  elsif tg_op = 'DELETE' then
    -- The company may go in the same transaction: its counts go with it, and none may be made anew.
    update monitoring_alert_counts c set count = c.count - d.count
      from (select company_id, state, severity, count(*) as count from gone group by 1, 2, 3) d
      where c.company_id = d.company_id and c.state = d.state and c.severity = d.severity;
  else
    insert into monitoring_alert_counts as c (company_id, state, severity, count)
      select company_id, state, severity, sum(n) from (
        select company_id, state, severity, 1 as n from fresh
        union all select company_id, state, severity, -1 from gone) x
      group by 1, 2, 3 having sum(n) <> 0 order by 1, 2, 3
      on conflict (company_id, state, severity) do update set count = c.count + excluded.count;
  end if;
  return null;
end $$;

create trigger monitoring_alerts_inserted after insert on monitoring_alerts
  referencing new table as fresh for each statement execute function monitoring_alerts_counted();
create trigger monitoring_alerts_updated after update on monitoring_alerts
  referencing old table as gone new table as fresh for each statement execute function monitoring_alerts_counted();
create trigger monitoring_alerts_deleted after delete on monitoring_alerts
  referencing old table as gone for each statement execute function monitoring_alerts_counted();

-- An alert is updated by every event of it: room in its page keeps those updates out of the indexes.
alter table monitoring_alerts set (fillfactor = 70);
alter table monitoring_event_seqs set (fillfactor = 70);
