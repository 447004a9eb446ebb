-- How people and systems are told: the bell, e-mail, company channels, webhooks, and every delivery that was tried.

create table notifications (
  id uuid primary key,
  user_id uuid not null references users (id) on delete cascade,
  company_id uuid not null references companies (id) on delete cascade,
  type text not null,
  title text not null,
  body text not null,
  link text,
  read_at timestamptz(3),
  created_at timestamptz(3) not null default now()
);
create index notifications_user on notifications (user_id, created_at desc, id desc);
create index notifications_unread on notifications (user_id) where read_at is null;

create table notification_preferences (
  user_id uuid not null references users (id) on delete cascade,
  channel text not null check (channel in ('bell', 'email', 'push')),
  min_severity text not null check (min_severity in ('info', 'warning', 'critical', 'off')),
  primary key (user_id, channel)
);

create table notification_channels (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  name text not null,
  type text not null check (type in ('email', 'webhook')),
  address text not null,
  min_severity text not null default 'info',
  scope jsonb not null default '{"all":true}',
  enabled boolean not null default true,
  created_at timestamptz(3) not null default now()
);
create index notification_channels_company on notification_channels (company_id, created_at desc);

create table notification_templates (
  company_id uuid not null references companies (id) on delete cascade,
  template text not null,
  language text not null,
  title text not null,
  body text not null,
  primary key (company_id, template, language)
);

create table webhooks (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  name text not null,
  url text not null,
  secret_sealed text not null,
  events text[] not null default '{}',
  min_severity text not null default 'info',
  enabled boolean not null default true,
  failures_in_a_row integer not null default 0,
  disabled_reason text,
  created_at timestamptz(3) not null default now()
);
create index webhooks_company on webhooks (company_id, created_at desc);

create table notification_deliveries (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  channel text not null,
  target text not null,
  webhook_id uuid references webhooks (id) on delete cascade,
  type text not null,
  payload jsonb not null,
  state text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
  tries integer not null default 0,
  response_code integer,
  last_error text,
  created_at timestamptz(3) not null default now(),
  finished_at timestamptz(3)
);
create index notification_deliveries_company on notification_deliveries (company_id, created_at desc, id desc);
create index notification_deliveries_webhook on notification_deliveries (webhook_id, created_at desc);
