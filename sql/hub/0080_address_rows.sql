-- What addresses cost that are registered by the dozen: a reference is a look, and a lock of the row that it names, for
-- every row that is written, and so is what a trigger keeps. A statement that adds addresses looks at each company and
-- subnet once, locks them as a reference does, and makes the documents of its rows from their columns.
alter table ip_addresses drop constraint ip_addresses_company_id_fkey;
alter table ip_addresses drop constraint ip_addresses_subnet_id_fkey;
-- A document is written in the transaction that writes what it is of, which holds the company, and goes with it.
alter table search_documents drop constraint search_documents_company_id_fkey;

-- Refuses what names a company or subnet that is not there, as a reference would; what is there stays until the commit.
create function hold_parents_of_addresses(companies uuid[], subnets uuid[]) returns void language plpgsql as $$
begin
  if (select count(*) from (select from companies c where c.id = any(companies) for key share) x)
      <> cardinality(companies) then
    raise foreign_key_violation using message = 'an address names a company that is not there',
      table = 'ip_addresses', constraint = 'ip_addresses_company_id_fkey';
  end if;
  if (select count(*) from (select from subnets s where s.id = any(subnets) for key share) x)
      <> cardinality(subnets) then
    raise foreign_key_violation using message = 'an address names a subnet that is not there',
      table = 'ip_addresses', constraint = 'ip_addresses_subnet_id_fkey';
  end if;
end $$;

drop trigger ip_addresses_count_insert on ip_addresses;
drop trigger ip_addresses_search_new on ip_addresses;
create function ip_addresses_inserted() returns trigger language plpgsql as $$
declare
  companies uuid[];
  subnets uuid[];
  are_tagged boolean;
begin
  select array_agg(distinct company_id), coalesce(array_agg(distinct subnet_id) filter (where subnet_id is not null), '{}'),
    bool_or(tags <> '{}') into companies, subnets, are_tagged from fresh;
  if companies is null then
    return null;
  end if;
  perform hold_parents_of_addresses(companies, subnets);
  update subnets s set direct_used = direct_used + d.delta, usage_stale = true
    from (select subnet_id, count(*) as delta from fresh
      where deleted_at is null and status <> 'released' and subnet_id is not null group by subnet_id) d
    where s.id = d.subnet_id;
  if are_tagged then
    insert into search_tags (company_id, tag, kind, resource_id)
      select f.company_id, t.tag, 'ip_address', f.id from fresh f, unnest(f.tags) as t (tag) where f.deleted_at is null
      on conflict do nothing;
  end if;
  -- `concat` writes an address as its list shows it, without the length of its mask.
  insert into search_documents (company_id, kind, resource_id, name, subtitle, text, exact, health, status)
    select company_id, 'ip_address', id, name, lower(concat(address)),
      left(lower(concat_ws(' ', name, dns_name, mac, vrf, description)), 2000),
      array_remove(array[lower(concat(address)), lower(dns_name), lower(mac)], null), health, status
    from fresh where deleted_at is null
    on conflict (kind, resource_id) do update set name = excluded.name, subtitle = excluded.subtitle,
      text = excluded.text, exact = excluded.exact, health = excluded.health, status = excluded.status, updated_at = now();
  return null;
end $$;
create trigger ip_addresses_inserted after insert on ip_addresses
  referencing new table as fresh for each statement execute function ip_addresses_inserted();

create function ip_address_moved() returns trigger language plpgsql as $$
begin
  perform hold_parents_of_addresses(array[new.company_id], array_remove(array[new.subnet_id], null));
  return null;
end $$;
create trigger ip_addresses_moved after update of company_id, subnet_id on ip_addresses for each row
  when (old.company_id <> new.company_id or (new.subnet_id is not null and new.subnet_id is distinct from old.subnet_id))
  execute function ip_address_moved();

create function subnets_deleted() returns trigger language plpgsql as $$
begin
  update ip_addresses set subnet_id = null where subnet_id in (select id from gone);
  return null;
end $$;
create trigger subnets_deleted after delete on subnets
  referencing old table as gone for each statement execute function subnets_deleted();
create or replace function companies_deleted() returns trigger language plpgsql as $$
begin
  delete from notifications where company_id in (select id from gone);
  delete from ip_addresses where company_id in (select id from gone);
  delete from search_documents where company_id in (select id from gone);
  return null;
end $$;

-- The same text as before, without the row as JSON.
create function keep_ip_address_text() returns trigger language plpgsql as $$
begin
  new.search_text := left(lower(concat_ws(' ', new.name, new.description, nullif(array_to_string(new.tags, ' '), ''),
    new.dns_name, new.mac)), 10000);
  return new;
end $$;
drop trigger ip_addresses_search_text on ip_addresses;
create trigger ip_addresses_search_text
  before insert or update of name, description, tags, dns_name, mac on ip_addresses
  for each row execute function keep_ip_address_text();
