-- Pages and counts of long lists are read from an index alone: page 1,000 costs little more than page 1.
create index servers_list on servers (company_id, lower(name), id) include (name) where deleted_at is null;
create index servers_trashed on servers (company_id, lower(name), id) include (name) where deleted_at is not null;

drop index monitoring_alerts_state;
create index monitoring_alerts_state on monitoring_alerts (company_id, state, opened_at desc, id desc) include (severity);
-- What is going on now: of the overview, of machines in a list, and of agents that are lost.
create index monitoring_alerts_live on monitoring_alerts (company_id, type, server_id) include (state, agent_id)
  where state in ('open', 'acknowledged', 'grouped');
create index monitoring_alerts_resolved on monitoring_alerts (company_id, resolved_at) where resolved_at is not null;

drop index monitoring_alert_events_alert;
create index monitoring_alert_events_alert on monitoring_alert_events (alert_id, occurred_at desc, seq desc)
  include (id, company_id);

-- Lists of ids do not become smaller by compression; trying costs as much as writing them.
alter table monitoring_rules alter column resolved_server_ids set storage external;
alter table monitoring_silences alter column resolved_server_ids set storage external;
alter table monitoring_checks alter column resolved_server_ids set storage external;

-- A change of a machine finds room in its page, and most indexes need not know of it.
alter table servers set (fillfactor = 80);
