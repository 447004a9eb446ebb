-- Which subnets lie around a block or an address was looked up in a GiST index. Under PostgreSQL 18.4 such an index was
-- seen to lose entries of rows that live, while its first page was divided and several connections read and wrote: a
-- block in between was then not found, and what lies in it got the wrong parent for good (an ordered index beside it,
-- in the same rounds, lost none).
-- Around a block there are 33 at most (of IPv6 129), so they are looked up one by one, in an index that is ordered.
create function blocks_around(given inet) returns cidr[] language sql immutable strict parallel safe
  return array(select set_masklen(network(given), n) from generate_series(0, masklen(given)) n);
drop index subnets_around;

-- Those that were arranged by what the index had.
update subnets c set parent_id = p.parent_id, depth = p.depth, usage_stale = true, free_from = null
from (select s.id, around.parent_id, around.depth from subnets s,
  lateral (select count(*)::int as depth, (array_agg(a.id order by masklen(a.cidr) desc))[1] as parent_id from subnets a
    where a.company_id = s.company_id and a.vrf = s.vrf and a.deleted_at is null and a.id <> s.id
      and a.cidr = any(blocks_around(s.cidr))) around where s.deleted_at is null) p
where c.id = p.id and (c.parent_id is distinct from p.parent_id or c.depth <> p.depth);
update ip_addresses i set subnet_id = x.subnet_id
from (select a.id, (select s.id from subnets s where s.company_id = a.company_id and s.vrf = a.vrf and s.deleted_at is null
    and s.cidr = any(blocks_around(a.address)) order by masklen(s.cidr) desc limit 1) as subnet_id
  from ip_addresses a where a.deleted_at is null) x
where i.id = x.id and i.subnet_id is distinct from x.subnet_id;
