-- What a batch of alert events costs: a reference is a look, and a lock of the row that it names, for every row that is written.

-- A batch holds the company of its servers locked, and so does who deletes a server. An alert goes only with its server.
alter table monitoring_alerts drop constraint monitoring_alerts_server_id_fkey;
alter table monitoring_event_seqs drop constraint monitoring_event_seqs_server_id_fkey;
alter table monitoring_alert_events drop constraint monitoring_alert_events_alert_id_fkey;
drop trigger servers_deleted on servers;
drop function monitoring_lone_events_deleted();
create function servers_deleted() returns trigger language plpgsql as $$
begin
  delete from monitoring_alerts where server_id in (select id from gone);
  delete from monitoring_alert_events where server_id in (select id from gone) and alert_id is null;
  delete from monitoring_event_seqs where server_id in (select id from gone);
  return null;
end $$;
create trigger servers_deleted after delete on servers
  referencing old table as gone for each statement execute function servers_deleted();
create function monitoring_alert_events_deleted() returns trigger language plpgsql as $$
begin
  delete from monitoring_alert_events where alert_id in (select id from gone);
  return null;
end $$;
create trigger monitoring_alerts_events_deleted after delete on monitoring_alerts
  referencing old table as gone for each statement execute function monitoring_alert_events_deleted();

-- Who writes rows of the bell locks once the people and companies that they name.
alter table notifications drop constraint notifications_user_id_fkey, drop constraint notifications_company_id_fkey;
create function users_deleted() returns trigger language plpgsql as $$
begin
  delete from notifications where user_id in (select id from gone);
  return null;
end $$;
create trigger users_deleted after delete on users
  referencing old table as gone for each statement execute function users_deleted();
create function companies_deleted() returns trigger language plpgsql as $$
begin
  delete from notifications where company_id in (select id from gone);
  return null;
end $$;
create trigger companies_deleted after delete on companies
  referencing old table as gone for each statement execute function companies_deleted();
