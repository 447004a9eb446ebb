-- Which alert a message is about, so that the page of an alert says who was told of it and whether it arrived.
alter table notification_deliveries add column alert_id uuid;
update notification_deliveries set alert_id = (payload -> 'data' -> 'alert' ->> 'id')::uuid
  where payload -> 'data' -> 'alert' ->> 'id' is not null;
update notification_deliveries set alert_id = substring(payload::text from '/alerts/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})')::uuid
  where alert_id is null and channel = 'email' and payload::text like '%/alerts/%';
create index notification_deliveries_alert on notification_deliveries (company_id, alert_id, position desc) where alert_id is not null;

alter table notifications add column alert_id uuid;
update notifications set alert_id = substring(link from '^/alerts/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$')::uuid
  where link like '/alerts/%';
create index notifications_alert on notifications (company_id, alert_id) where alert_id is not null;
