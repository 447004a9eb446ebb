-- Why people were not told of an alert when it opened: a suppression, or flapping that opened it. Until it was written
-- down, this was read off the last event, and an alert whose last event was not suppressed was told to nobody, ever.
alter table monitoring_alerts add column held_back text;
update monitoring_alerts set held_back = coalesce(suppress_reason, 'suppressed')
  where suppressed and notified_at is null and state in ('open', 'acknowledged', 'grouped');
-- Alerts of rules are never untold without that. Losses of servers are: what a closed incident gave back, it had told.
update monitoring_alerts set held_back = 'flapping'
  where not suppressed and notified_at is null and state in ('open', 'acknowledged') and type not in ('agent_down', 'group_down');
-- Looked for every few seconds.
create index monitoring_alerts_held_back on monitoring_alerts (company_id)
  where held_back is not null and notified_at is null and state in ('open', 'acknowledged');
