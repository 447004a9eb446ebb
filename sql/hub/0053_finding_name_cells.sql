-- The names within one cell of the list are read for every deep page of it, so they lie together.
alter table security_finding_name_counts
  drop constraint security_finding_name_counts_pkey,
  add primary key (company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest);
