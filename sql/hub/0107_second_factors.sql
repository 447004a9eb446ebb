-- The second factor of a person's login: the secret of an app's codes, sealed, and hashes of the recovery codes that are
-- left. `last_step`: the half minute of the last code that was taken, so that none is taken twice. Wrong codes are
-- counted here, over all hubs.
create table user_second_factors (
  user_id uuid primary key references users (id) on delete cascade,
  secret_sealed text not null,
  confirmed_at timestamptz(3) not null default now(),
  last_step bigint not null,
  recovery_hashes text[] not null,
  failures integer not null default 0,
  failures_since timestamptz(3),
  refused_until timestamptz(3)
);
