-- Jobs that become due in the same millisecond keep the order in which they were written.
alter table jobs add column position bigint generated always as identity;
drop index jobs_due;
create index jobs_due on jobs (run_at, position) where state = 'waiting';
