-- The built-in roles, and teams.
insert into roles (id, company_id, name, permissions, built_in) values
  ('00000000-0000-4000-8000-000000000001', null, 'viewer', array[
    'monitoring.view', 'servers.view', 'iac.view', 'approvals.view', 'security.view', 'identity.view',
    'notifications.view', 'webhooks.view', 'audit.view', 'connections.view', 'load-balancers.view', 'proxies.view',
    'certificates.view', 'dns.view', 'network.view', 'options.view', 'queues.view', 'files.view'], true),
  ('00000000-0000-4000-8000-000000000002', null, 'operator', array[
    'monitoring.view', 'servers.view', 'iac.view', 'approvals.view', 'security.view', 'identity.view',
    'notifications.view', 'webhooks.view', 'audit.view', 'connections.view', 'load-balancers.view', 'proxies.view',
    'certificates.view', 'dns.view', 'network.view', 'options.view', 'queues.view', 'files.view',
    'monitoring.manage', 'iac.submit'], true),
  ('00000000-0000-4000-8000-000000000003', null, 'admin', array['*'], true);

create table teams (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  name text not null,
  created_at timestamptz(3) not null default now()
);
create unique index teams_name on teams (company_id, lower(name));

create table team_members (
  team_id uuid not null references teams (id) on delete cascade,
  user_id uuid not null references users (id) on delete cascade,
  primary key (team_id, user_id)
);
