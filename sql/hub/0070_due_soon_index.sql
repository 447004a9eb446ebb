-- How soon a term counts as due soon depends on the priority: both are counted in the index alone.
drop index security_findings_sla;
create index security_findings_sla on security_findings (company_id, sla_due_at) include (sla_told, priority)
  where status = 'open' and sla_due_at is not null;
