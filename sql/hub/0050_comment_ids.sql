-- Comments on tickets have ids like everything that answers show (decision G-13): a number would tell how many events
-- all companies have. The default is for hubs of the former version, which do not give one.
alter table approval_events add column comment_id uuid;
alter table approval_events alter column comment_id set default gen_random_uuid();
update approval_events set comment_id = gen_random_uuid() where type = 'commented';
