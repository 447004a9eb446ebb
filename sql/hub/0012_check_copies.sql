-- Only enabled checks write series: a copy may share its original's target until one of the two is to be enabled.
drop index monitoring_checks_target;
create unique index monitoring_checks_target on monitoring_checks (company_id, type, target) where deleted_at is null and enabled;
