-- The paths of manifests that a plan judged but did not try out, for a run has too many parts to try all of them.
alter table iac_runs add column untried text[] not null default '{}';
