-- Why servers were not enrolled (decision G-180): kept a week, the newest thousand of a company.
create table monitoring_enrollment_refusals (
  id bigint generated always as identity primary key,
  company_id uuid not null references companies (id) on delete cascade,
  license_id uuid not null references monitoring_licenses (id) on delete cascade,
  reason text not null,
  hostname text,
  ip_addresses text[] not null default '{}',
  refused_at timestamptz not null
);
create index monitoring_enrollment_refusals_company on monitoring_enrollment_refusals (company_id, id);
create index monitoring_enrollment_refusals_license on monitoring_enrollment_refusals (license_id, id);
