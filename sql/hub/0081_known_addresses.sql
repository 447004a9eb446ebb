-- Which addresses of a range are known, from one of its ends: registered, resting, seen by agents, or released before.
-- An index has them in this order. Where the statistics of the table are of a time when it was small, as after a fleet
-- was registered within minutes, another index seems as good, and each look would read all addresses of the company.
create function known_addresses_up(company uuid, space text, first inet, last inet, rest_hours int, seen_days int, most int)
  returns table (address inet, released_id uuid, released_at timestamptz, is_settled boolean)
  language plpgsql stable set enable_sort = off set enable_bitmapscan = off set enable_seqscan = off as $$
begin
  return query
    (select a.address, case when a.is_free then a.id end, case when a.is_free then a.released_at end, a.status <> 'released'
      from (select i.address, i.id, i.status, i.released_at, i.status = 'released'
          and (i.released_at > now() - make_interval(hours => rest_hours)) is not true as is_free
        from ip_addresses i where i.company_id = company and i.vrf = space and i.deleted_at is null
          and i.address between first and last
        order by i.address limit most) a)
    union
    (select o.address, null, null, false from ip_observations o where o.company_id = company
      and o.address between first and last and o.last_seen_at > now() - make_interval(days => seen_days)
      order by o.address limit most)
    order by 1, 2 nulls first, 4 desc limit most;
end $$;
create function known_addresses_down(company uuid, space text, first inet, last inet, rest_hours int, seen_days int, most int)
  returns table (address inet, released_id uuid, released_at timestamptz, is_settled boolean)
  language plpgsql stable set enable_sort = off set enable_bitmapscan = off set enable_seqscan = off as $$
begin
  return query
    (select a.address, case when a.is_free then a.id end, case when a.is_free then a.released_at end, a.status <> 'released'
      from (select i.address, i.id, i.status, i.released_at, i.status = 'released'
          and (i.released_at > now() - make_interval(hours => rest_hours)) is not true as is_free
        from ip_addresses i where i.company_id = company and i.vrf = space and i.deleted_at is null
          and i.address between first and last
        order by i.address desc limit most) a)
    union
    (select o.address, null, null, false from ip_observations o where o.company_id = company
      and o.address between first and last and o.last_seen_at > now() - make_interval(days => seen_days)
      order by o.address desc limit most)
    order by 1 desc, 2 nulls first, 4 desc limit most;
end $$;
