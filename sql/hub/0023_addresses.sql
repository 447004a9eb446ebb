-- An address logs in to one company, and may stand in others for people who only have tokens: what is free in a company can be
-- given there, so that no answer tells of people elsewhere.
drop index users_email;
create unique index users_email on users (company_id, lower(email)) nulls not distinct;
create unique index users_login on users (lower(email)) where password_hash is not null;

-- Somebody else wrote it down: nobody has shown that they read what is sent there.
alter table users add column address_unconfirmed boolean not null default false;

-- Addresses that get messages of a company without having asked for them: the first ones bring a link to confirm, or to stop.
create table mail_addresses (
  company_id uuid not null references companies (id) on delete cascade,
  -- In lower case.
  address text not null,
  token_hash text not null unique,
  token_sealed text not null,
  sent_unconfirmed integer not null default 0,
  confirmed_at timestamptz(3),
  stopped_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  primary key (company_id, address)
);

-- The group addresses from before go on as they are; nobody has their link.
insert into mail_addresses (company_id, address, token_hash, token_sealed, confirmed_at)
  select distinct company_id, lower(address), md5(company_id::text || lower(address)), '', now() from notification_channels
  where type = 'email' on conflict do nothing;
