-- A silence may name rules, and may recur (decisions G-178, G-179). Collectors know single windows only: the first one is the silence
-- itself, each later one a row of its own, made up to windows_until. Null there: no window is to come.
alter table monitoring_silences
  add column rule_ids uuid[] not null default '{}',
  add column recurrence jsonb,
  add column windows_until timestamptz,
  add column recurrence_of uuid references monitoring_silences (id) on delete cascade;
create unique index monitoring_silences_window on monitoring_silences (recurrence_of, starts_at) where recurrence_of is not null;
create index monitoring_silences_windows_until on monitoring_silences (windows_until) where windows_until is not null;
