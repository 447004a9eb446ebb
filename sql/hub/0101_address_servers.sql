-- The list of addresses is searched by the name of an address's server too.
create or replace function keep_ip_address_text() returns trigger language plpgsql as $$
begin
  new.search_text := left(lower(concat_ws(' ', new.name, new.description, nullif(array_to_string(new.tags, ' '), ''),
    new.dns_name, new.mac, (select name from servers where id = new.server_id))), 10000);
  return new;
end $$;
drop trigger ip_addresses_search_text on ip_addresses;
-- Those in the trash have no index by server: their text is made anew when they come back.
create trigger ip_addresses_search_text
  before insert or update of name, description, tags, dns_name, mac, server_id, deleted_at on ip_addresses
  for each row execute function keep_ip_address_text();
create function server_renamed() returns trigger language plpgsql as $$
begin
  update ip_addresses set server_id = server_id where server_id = new.id and deleted_at is null;
  return null;
end $$;
create trigger servers_renamed after update of name on servers
  for each row when (old.name is distinct from new.name) execute function server_renamed();
set local statement_timeout = 0;
update ip_addresses set server_id = server_id where server_id is not null;
