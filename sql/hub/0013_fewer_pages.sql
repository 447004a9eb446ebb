-- Filters of long lists, and their counts, are answered by an index alone.
drop index audit_log_company;
create index audit_log_company on audit_log (company_id, created_at desc, id desc) include (action);
create index audit_log_actor on audit_log (company_id, actor_id, created_at desc, id desc);

drop index monitoring_alerts_severity;
create index monitoring_alerts_severity on monitoring_alerts (company_id, severity, opened_at desc, id desc) include (state);

-- Recoveries that people still wait to hear of are looked for every few seconds.
create index monitoring_alerts_untold on monitoring_alerts (company_id) where recovery_untold;

-- The newest alert of each (server, rule, series) stands beside its seq: events find it without an index of long keys, which every change
-- of every alert had to be written to. Without a reference, as an alert goes only with its server, and this row goes with it too.
alter table monitoring_event_seqs add column alert_id uuid;
insert into monitoring_event_seqs as s (server_id, rule_key, series_key, seq, alert_id)
  select distinct on (server_id, rule_key, series_key) server_id, rule_key, series_key, last_event_seq, id
  from monitoring_alerts order by server_id, rule_key, series_key, (state in ('open', 'acknowledged', 'grouped')) desc,
    opened_at desc, created_at desc
  on conflict (server_id, rule_key, series_key) do update set alert_id = excluded.alert_id;
drop index monitoring_alerts_key;
-- A server has one company. This one is also what a server's deletion finds its alerts by.
drop index monitoring_alerts_server;
create index monitoring_alerts_server on monitoring_alerts (server_id, opened_at desc, id desc) include (company_id);
-- The same for agents, whose deletion had no index at all.
drop index monitoring_alerts_agent;
create index monitoring_alerts_agent on monitoring_alerts (agent_id, opened_at desc, id desc) include (company_id);
