-- A reference costs a look and a lock for every row, and the row of a company is one that every batch of events wants. Those that others imply
-- are gone: an alert has a server and a server a company, an event has an alert and with it a server. Agents go only with their company. What
-- is deleted takes along what it took along before.
alter table monitoring_alerts drop constraint monitoring_alerts_company_id_fkey, drop constraint monitoring_alerts_agent_id_fkey;
alter table monitoring_alert_events drop constraint monitoring_alert_events_company_id_fkey,
  drop constraint monitoring_alert_events_server_id_fkey;

-- Events that no alert has go with their server. They are found by an index; until now a server's deletion read every event there is.
create index monitoring_alert_events_lone on monitoring_alert_events (server_id) where alert_id is null;
create function monitoring_lone_events_deleted() returns trigger language plpgsql as $$
begin
  delete from monitoring_alert_events e using gone where e.server_id = gone.id and e.alert_id is null;
  return null;
end $$;
create trigger servers_deleted after delete on servers
  referencing old table as gone for each statement execute function monitoring_lone_events_deleted();
