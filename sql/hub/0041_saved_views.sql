-- Lists of the web interface as somebody wants them again: a page with its filter, order and form, for oneself or for
-- everybody in the company. The browser names the row, so that a save can be sent again; hence the company in the key.

create table saved_views (
  company_id uuid not null references companies (id) on delete cascade,
  id uuid not null,
  user_id uuid not null references users (id) on delete cascade,
  page text not null,
  name text not null,
  -- The parameters of the address: `q=tag:web&sort=-cpu`.
  query text not null,
  is_shared boolean not null default false,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (company_id, id)
);
create unique index saved_views_name on saved_views (company_id, user_id, page, lower(name));
create index saved_views_shared on saved_views (company_id) where is_shared;
create index saved_views_user on saved_views (user_id);
