-- Findings that one statement inserts hardly ever agree in all that is counted by, so what they add is written as it comes: to bring a
-- batch into groups of thirteen columns cost more than it saved, and the counts are added up anyway.
create or replace function security_findings_counted() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into security_finding_count_changes (company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached,
        name_digest, vuln_id, package_key, aliases, count)
      select company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest, vuln_id, package_key, aliases, 1
      from changed;
  elsif tg_op = 'UPDATE' then
    -- Rows that a statement left as they were in all that counts cancel each other out, without a join of the two tables.
    insert into security_finding_count_changes (company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached,
        name_digest, vuln_id, package_key, aliases, count)
      select company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest, vuln_id, package_key, aliases, sum(n)
      from (
        select company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest, vuln_id, package_key, aliases, 1 as n
          from fresh
        union all
        select company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest, vuln_id, package_key, aliases, -1
          from gone) x
      group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 having sum(n) <> 0;
  else
    insert into security_finding_count_changes (company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached,
        name_digest, vuln_id, package_key, aliases, count)
      select company_id, risk, priority, status, kind, severity_label, fix_status, kev, is_attached, name_digest, vuln_id, package_key, aliases, -count(*)
      from changed group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13;
  end if;
  return null;
end $$;
