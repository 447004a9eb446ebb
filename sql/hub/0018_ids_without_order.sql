-- New ids are random and say nothing of their order. Entries of one transaction have one time: their order is that of writing.
alter table audit_log add column position bigint generated always as identity;
drop index audit_log_company;
create index audit_log_company on audit_log (company_id, created_at desc, position desc) include (id);
drop index audit_log_actor;
create index audit_log_actor on audit_log (company_id, actor_id, created_at desc, position desc) include (id);
drop index audit_log_action;
create index audit_log_action on audit_log (company_id, action, created_at desc, position desc) include (id);
drop index audit_log_subject_type;
create index audit_log_subject_type on audit_log (company_id, subject_type, created_at desc, position desc) include (id);
drop index audit_log_subject;
create index audit_log_subject on audit_log (company_id, subject_id, subject_type, created_at desc, position desc) include (id);

-- Nothing looks for an event by its id, and every event would be written to a place of its own in that index.
alter table monitoring_alert_events drop constraint monitoring_alert_events_pkey;
alter table monitoring_alert_events replica identity using index monitoring_alert_events_event_id_key;
