-- A target of a check that is longer than 128 bytes is told apart by a hash: the label of its series is the first 115 bytes, cut at a
-- character, a tilde, and the first 12 hex characters of the SHA-256 of the whole. Rules of such checks match it from now on. One whose
-- matchers an operator has changed stays as it is.
create temporary table long_targets on commit drop as
select r.id as rule_id, t.target,
  (select left(t.target, max(n)) from generate_series(1, 128) n where octet_length(left(t.target, n)) <= 128) as old_label,
  (select left(t.target, max(n)) from generate_series(1, 115) n where octet_length(left(t.target, n)) <= 115)
    || '~' || left(encode(sha256(convert_to(t.target, 'UTF8')), 'hex'), 12) as new_label
from monitoring_checks c
  cross join lateral (select coalesce(c.target->>'url', c.target->>'target') as target) t
  join monitoring_rules r on r.check_id = c.id
where octet_length(t.target) > 128 and r.deleted_at is null;

delete from long_targets l using monitoring_rules r
where r.id = l.rule_id and r.matchers is distinct from jsonb_build_object('target', l.old_label);

with raised as (
  update monitoring_feed_counters set value = value + (select count(*) from long_targets) where feed = 'rules'
  returning value - (select count(*) from long_targets) as base
), numbered as (
  select rule_id, new_label, row_number() over (order by rule_id) as place from long_targets
)
update monitoring_rules r set matchers = jsonb_build_object('target', n.new_label), version = r.version + 1, updated_at = now(),
  sync_version = raised.base + n.place
from numbered n, raised where r.id = n.rule_id;
