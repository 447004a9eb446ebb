-- Addresses and records of zones are registered by the dozen, and thousands of them by one file: a statement that adds
-- rows adds their documents with one statement too. A trigger for each row took two thirds of what an allocation costs.

-- The texts of the named columns of a row, in lower case, at most so many characters.
create or replace function texts_of(record jsonb, columns text[], at_most integer) returns text language plpgsql immutable as $$
declare
  column_name text;
  value jsonb;
  found text := '';
begin
  foreach column_name in array columns loop
    value := record -> column_name;
    if jsonb_typeof(value) = 'array' then
      if value <> '[]' then
        found := found || coalesce(' ' || (select string_agg(x, ' ') from jsonb_array_elements_text(value) x), '');
      end if;
    elsif jsonb_typeof(value) <> 'null' then
      found := found || ' ' || (record ->> column_name);
    end if;
  end loop;
  return left(lower(substr(found, 2)), at_most);
end $$;

-- Adds the documents and tags of the rows that a statement inserted, with the arguments of `keep_search_document`.
create function add_search_documents() returns trigger language plpgsql as $$
begin
  insert into search_tags (company_id, tag, kind, resource_id)
    select f.company_id, t.tag, tg_argv[0], f.id from fresh f, unnest(f.tags) as t (tag)
    where f.deleted_at is null and f.tags <> '{}'
    on conflict do nothing;
  -- Without the offset the row would be turned into JSON for each of its members.
  insert into search_documents (company_id, kind, resource_id, name, subtitle, text, exact, health, status)
    select (r ->> 'company_id')::uuid, tg_argv[0], (r ->> 'id')::uuid, coalesce(r ->> tg_argv[1], ''), e.values[1],
      texts_of(r, array_remove(string_to_array(tg_argv[1] || ',' || tg_argv[2], ','), 'tags'), 2000), e.values,
      r ->> 'health', coalesce(r ->> 'status', r ->> 'state')
    from (select to_jsonb(f) as r from fresh f where f.deleted_at is null offset 0) f,
      lateral (select coalesce(array_agg(lower(r ->> name)) filter (where r ->> name is not null), '{}') as values
        from unnest(string_to_array(tg_argv[3], ',')) name) e
    on conflict (kind, resource_id) do update set name = excluded.name, subtitle = excluded.subtitle,
      text = excluded.text, exact = excluded.exact, health = excluded.health, status = excluded.status, updated_at = now();
  return null;
end $$;

drop trigger ip_addresses_search on ip_addresses;
create trigger ip_addresses_search
  after delete or update of name, description, tags, dns_name, mac, health, status, deleted_at on ip_addresses
  for each row execute function keep_search_document('ip_address', 'name', 'dns_name,tags,mac,vrf,description', 'address,dns_name,mac');
create trigger ip_addresses_search_new after insert on ip_addresses
  referencing new table as fresh for each statement
  execute function add_search_documents('ip_address', 'name', 'dns_name,tags,mac,vrf,description', 'address,dns_name,mac');
drop trigger dns_records_search on dns_records;
create trigger dns_records_search after update or delete on dns_records
  for each row execute function keep_search_document('dns_record', 'name', 'fqdn,value,comment,type', 'fqdn');
create trigger dns_records_search_new after insert on dns_records
  referencing new table as fresh for each statement
  execute function add_search_documents('dns_record', 'name', 'fqdn,value,comment,type', 'fqdn');
