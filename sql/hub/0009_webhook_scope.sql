-- A webhook is told of the machines of its scope, like a group address (decision G-104).
alter table webhooks add column scope jsonb not null default '{"all":true}';
