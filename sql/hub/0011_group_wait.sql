-- The loss of a machine that a wide-area incident may claim waits for it: a row of its own, due later, that names the alert.
alter table notification_outbox add column due_at timestamptz(3) not null default now(), add column alert_id uuid;
create index notification_outbox_waiting on notification_outbox (alert_id) where alert_id is not null;
