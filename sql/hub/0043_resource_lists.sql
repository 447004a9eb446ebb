-- When agents saw an address last, beside the address: lists are sorted and filtered by it. No index has it, so that a
-- report rewrites no index.
alter table ip_addresses add column last_seen_at timestamptz(3);
alter table ip_addresses set (fillfactor = 90);
update ip_addresses a set last_seen_at = s.at
  from (select company_id, address, max(last_seen_at) as at from ip_observations group by company_id, address) s
  where a.company_id = s.company_id and a.address = s.address and a.deleted_at is null;

create function note_seen_addresses() returns trigger language plpgsql as $$
begin
  update ip_addresses a set last_seen_at = s.at from (
      select c.company_id, c.address, (select max(o.last_seen_at) from ip_observations o
        where o.company_id = c.company_id and o.address = c.address) as at
      from (select distinct company_id, address from changed) c) s
    where a.company_id = s.company_id and a.address = s.address and a.deleted_at is null
      and a.last_seen_at is distinct from s.at;
  return null;
end $$;
create trigger ip_observations_inserted after insert on ip_observations
  referencing new table as changed for each statement execute function note_seen_addresses();
create trigger ip_observations_updated after update on ip_observations
  referencing new table as changed for each statement execute function note_seen_addresses();
create trigger ip_observations_deleted after delete on ip_observations
  referencing old table as changed for each statement execute function note_seen_addresses();

-- A company may have half a million addresses: each order of their list has an index, but the one above.
create index ip_addresses_by_name on ip_addresses (company_id, lower(name), id) where deleted_at is null;
create index ip_addresses_by_creation on ip_addresses (company_id, created_at, id) where deleted_at is null;
