-- What lists of a hundred thousand rows are searched and counted by.
create index approval_tickets_by_state on approval_tickets (company_id, state, created_at desc, id desc);
create index iac_runs_text on iac_runs using gin (company_id, title gin_trgm_ops, submitter_name gin_trgm_ops,
  (id::text) gin_trgm_ops);
create index files_name on files using gin (company_id, name gin_trgm_ops);

-- What happened to a subject, newest first, whatever its type is: the ids of two types are seldom the same.
drop index audit_log_subject;
create index audit_log_subject on audit_log (company_id, subject_id, created_at desc, position desc)
  include (id, subject_type);
