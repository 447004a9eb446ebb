-- Filters and orders of the list of addresses that had no index read all addresses of the company, half a million at
-- most. A report moves the time at which an address was seen four times a day, which is worth an index.
create index ip_addresses_by_seen on ip_addresses (company_id, last_seen_at, id) where deleted_at is null;
create index ip_addresses_assigned on ip_addresses (company_id, server_id) where deleted_at is null;
create index ip_addresses_tags on ip_addresses using gin (company_id, tags) where deleted_at is null;
create index ip_addresses_trash on ip_addresses (company_id, address, id) where deleted_at is not null;
