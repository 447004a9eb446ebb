-- The key of a count by name had ten columns, five of them texts: comparing them was the larger part of what adding the
-- counts up cost. A digest of the cell stands for them.

-- The label is the only word that others choose, so it is the last: no two cells have the same text.
create function security_cell_digest(
  risk smallint, priority text, status text, kind text, severity_label text, fix_status text, kev boolean, is_attached boolean
) returns uuid language sql immutable parallel safe as $$
  select md5(risk::text || ' ' || priority || ' ' || status || ' ' || kind || ' ' || fix_status || ' ' || kev::text || ' '
    || is_attached::text || ' ' || severity_label)::uuid
$$;

-- Computed for the rows there are in one rewriting of the table; from then on written by the statement that sorts by it.
alter table security_finding_name_counts
  drop constraint security_finding_name_counts_pkey,
  add column cell_digest uuid not null generated always as
    (security_cell_digest(risk, priority, status, kind, severity_label, fix_status, kev, is_attached)) stored;
alter table security_finding_name_counts
  alter column cell_digest drop expression,
  add primary key (company_id, cell_digest, name_digest);
