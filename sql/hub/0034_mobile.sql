-- The mobile app: devices that are pushed to, what their people want, and every push that was tried.

-- The key pair by which push services know this hub (RFC 8292).
create table push_keys (
  id boolean primary key default true check (id),
  public_key text not null,
  private_key_sealed text not null
);

create table mobile_devices (
  id uuid primary key,
  user_id uuid not null references users (id) on delete cascade,
  platform text not null check (platform in ('webpush', 'fcm', 'apns')),
  name text not null,
  -- What a push service knows the device by: a token, or a subscription as JSON.
  token_sealed text not null,
  token_hash text collate "C" not null unique,
  app_version text,
  language text not null default 'en' check (language in ('en', 'vi')),
  time_zone text not null default 'UTC',
  enabled boolean not null default true,
  disabled_reason text,
  last_seen_at timestamptz(3) not null default now(),
  last_push_at timestamptz(3),
  created_at timestamptz(3) not null default now()
);
create index mobile_devices_user on mobile_devices (user_id, created_at desc, id desc);

create table mobile_settings (
  user_id uuid primary key references users (id) on delete cascade,
  -- {from, to, time_zone, days}; null: none.
  quiet_hours jsonb,
  critical_breaks_quiet boolean not null default true,
  show_details boolean not null default true
);

create table push_deliveries (
  id uuid primary key,
  device_id uuid not null references mobile_devices (id) on delete cascade,
  company_id uuid not null references companies (id) on delete cascade,
  -- What a newer message about the same thing replaces.
  topic text not null,
  type text not null,
  severity text not null,
  payload jsonb not null,
  state text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed', 'dropped')),
  tries integer not null default 0,
  last_error text,
  created_at timestamptz(3) not null default now(),
  finished_at timestamptz(3)
);
create index push_deliveries_device on push_deliveries (device_id);
create index push_deliveries_company on push_deliveries (company_id);
create index push_deliveries_ended on push_deliveries (finished_at);
