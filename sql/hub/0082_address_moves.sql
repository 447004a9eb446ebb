-- To split or merge a subnet moves its addresses, by the thousand: what they move to is looked at, and held, once a
-- statement. Rows are compared as sets, which costs the same a row however many there are.
drop trigger ip_addresses_moved on ip_addresses;
drop function ip_address_moved();
create function ip_addresses_moved() returns trigger language plpgsql as $$
declare
  companies uuid[];
  subnets uuid[];
begin
  select array_agg(distinct company_id), coalesce(array_agg(distinct subnet_id) filter (where subnet_id is not null), '{}')
    into companies, subnets
    from (select id, company_id, subnet_id from new_rows except select id, company_id, subnet_id from old_rows) moved;
  if companies is not null then
    perform hold_parents_of_addresses(companies, subnets);
  end if;
  return null;
end $$;
create trigger ip_addresses_moved after update on ip_addresses
  referencing old table as old_rows new table as new_rows for each statement execute function ip_addresses_moved();

-- What is deleted for good lets go of its addresses, those in the trash too, which the index of a subnet does not hold.
create index ip_addresses_deleted_of_subnet on ip_addresses (subnet_id)
  where deleted_at is not null and subnet_id is not null;
create or replace function subnets_deleted() returns trigger language plpgsql as $$
declare
  ids uuid[];
begin
  select array_agg(id) into ids from gone;
  if ids is null then
    return null;
  end if;
  update ip_addresses set subnet_id = null where subnet_id = any(ids) and deleted_at is null;
  update ip_addresses set subnet_id = null where subnet_id = any(ids) and deleted_at is not null;
  return null;
end $$;
