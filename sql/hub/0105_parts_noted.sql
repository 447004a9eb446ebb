-- What a manifest says of a resource may stand in its parts: members of a load balancer, records of a zone, items of a
-- list. A change of a part is noted at what it is part of. A binding that another transaction holds is left out, so that
-- nobody waits for one while holding parts; such a one is compared with all others every 15 minutes. One that is noted
-- already is not written again: a file of records notes each of them.
create or replace function iac_note_change() returns trigger language plpgsql as $$
begin
  update iac_bindings b set is_stale = true from noted n
  where b.company_id = n.company_id and b.resource_kind = n.subject_type
    and b.resource_id = case when n.subject_id ~ '^[0-9a-f]{8}-' then n.subject_id::uuid end;
  if not exists (select 1 from noted where subject_type in
    ('dns_record', 'lb_member', 'lb_pool', 'option_item', 'proxy_site', 'virtual_server')) then
    return null;
  end if;
  with part as materialized (
    select company_id, subject_type as type,
      case when subject_id ~ '^[0-9a-f]{8}-' then subject_id::uuid end as id
    from noted where company_id is not null),
  whole as (
    select part.company_id, 'dns_zone' as kind, r.zone_id as id from part join dns_records r on r.id = part.id
      where part.type = 'dns_record'
    union select part.company_id, 'load_balancer', p.device_id from part join lb_members m on m.id = part.id
      join lb_pools p on p.id = m.pool_id where part.type = 'lb_member'
    union select part.company_id, 'load_balancer', p.device_id from part join lb_pools p on p.id = part.id
      where part.type = 'lb_pool'
    union select part.company_id, 'load_balancer', v.device_id from part join virtual_servers v on v.id = part.id
      where part.type = 'virtual_server'
    union select part.company_id, 'proxy', s.proxy_id from part join proxy_sites s on s.id = part.id
      where part.type = 'proxy_site'
    union select b.company_id, b.resource_kind, b.resource_id from iac_bindings b
      where b.resource_kind = 'option_list' and b.company_id in (select company_id from part where type = 'option_item')),
  bound as materialized (
    select b.company_id, b.kind, b.slug from whole w
    join iac_bindings b on b.company_id = w.company_id and b.resource_kind = w.kind and b.resource_id = w.id
    where not b.is_stale for update of b skip locked)
  update iac_bindings b set is_stale = true from bound
  where b.company_id = bound.company_id and b.kind = bound.kind and b.slug = bound.slug;
  return null;
end $$;
