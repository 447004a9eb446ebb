-- What people were told of a condition: how severe it was, and at which stage. It is told anew when it becomes critical
-- and when its stage is another one, such as the days that a certificate still has.
alter table resource_conditions add column stage text, add column told_severity text, add column told_stage text;

drop index resource_conditions_untold;
create index resource_conditions_untold on resource_conditions (company_id, kind)
  where since is not null and resolved_at is null and severity <> 'info'
    and (told_at is null or severity = 'critical' and told_severity <> 'critical' or told_stage is distinct from stage);
drop index resource_conditions_untold_end;
create index resource_conditions_untold_end on resource_conditions (company_id, kind)
  where told_at is not null and resolved_at is not null and recovery_told_at is null;
