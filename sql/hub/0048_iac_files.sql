-- Files that are attached to runs of manifests cannot be deleted meanwhile.
create or replace view file_referrers as
  select a.file_id, 'iac_run'::text as kind, r.id, r.title as name, 'attachments'::text as field
  from iac_attachments a join iac_runs r on r.id = a.run_id;
