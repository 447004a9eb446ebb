-- Pages of the feeds are bounded in bytes: how large a record is at most as JSON stands beside it, and how many ids of servers it carries.
-- A tombstone carries none of the content, so none is kept of what was deleted.
update monitoring_rules set resolved_server_ids = '{}', scope =
  '{"all": false, "server_ids": [], "tags": [], "environments": [], "roles": [], "datacenters": []}' where deleted_at is not null;
update monitoring_checks set resolved_server_ids = '{}', scope =
  '{"all": false, "server_ids": [], "tags": [], "environments": [], "roles": [], "datacenters": []}' where deleted_at is not null;
update monitoring_silences set resolved_server_ids = '{}', scope =
  '{"all": false, "server_ids": [], "tags": [], "environments": [], "roles": [], "datacenters": []}' where deleted_at is not null;

-- Names and reasons are short: 4,096 bytes are more than all of them with every character escaped.
alter table monitoring_rules
  add column server_id_count integer generated always as
    (cardinality(resolved_server_ids) + coalesce(jsonb_array_length(scope->'server_ids'), 0)) stored,
  add column feed_bytes bigint generated always as
    (4096 + octet_length(scope::text) + coalesce(octet_length(matchers::text), 0) + 40 * cardinality(resolved_server_ids)::bigint) stored;
alter table monitoring_silences
  add column server_id_count integer generated always as
    (cardinality(resolved_server_ids) + coalesce(jsonb_array_length(scope->'server_ids'), 0)) stored,
  add column feed_bytes bigint generated always as
    (4096 + octet_length(scope::text) + 40 * cardinality(resolved_server_ids)::bigint) stored;
alter table monitoring_checks
  add column server_id_count integer generated always as
    (cardinality(resolved_server_ids) + coalesce(jsonb_array_length(scope->'server_ids'), 0)) stored,
  add column feed_bytes bigint generated always as
    (4096 + octet_length(scope::text) + octet_length(target::text) + 40 * cardinality(resolved_server_ids)::bigint) stored;
