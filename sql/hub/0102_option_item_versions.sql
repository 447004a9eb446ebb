-- Items of option lists have a version, as other resources do.
alter table option_items add column version bigint not null default 1,
  add column updated_at timestamptz(3) not null default now();
update option_items set updated_at = created_at;
