-- Filters of the list of addresses whose values most rows have: to count those read all rows of the company. Equal
-- values stand in such an index once, so that it is small and costs an allocation little.
create index ip_addresses_by_origin on ip_addresses (company_id, origin) where deleted_at is null;
create index ip_addresses_by_health on ip_addresses (company_id, health, probe_until) where deleted_at is null;
drop index ip_addresses_by_status;
create index ip_addresses_by_status on ip_addresses (company_id, status) where deleted_at is null;
