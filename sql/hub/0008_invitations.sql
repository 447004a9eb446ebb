-- Invitations by e-mail, and pictures of people.
create table invitations (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  email text not null,
  name text,
  permissions text[] not null default '{}',
  role_ids uuid[] not null default '{}',
  language text not null default 'en',
  token_hash text not null unique,
  invited_by uuid references users (id) on delete set null,
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null default now()
);
-- An address has one invitation of a company: a new one replaces it, an accepted one is gone.
create unique index invitations_email on invitations (company_id, lower(email));

-- A data URL.
alter table users add column avatar text;
