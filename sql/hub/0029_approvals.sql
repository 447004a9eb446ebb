-- Approvals: workflows with their steps, and the tickets that items of runs wait for.

create table approval_workflows (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  name text not null,
  version integer not null default 1,
  -- Empty: every kind of manifests, every action.
  kinds text[] not null default '{}',
  actions text[] not null default '{}',
  match jsonb not null default '{}',
  priority integer not null default 100,
  enabled boolean not null default true,
  allow_self boolean not null default false,
  distinct_approvers boolean not null default false,
  -- Null: the company's setting.
  expire_hours integer,
  created_by uuid references users (id) on delete set null,
  updated_by uuid references users (id) on delete set null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create unique index approval_workflows_name on approval_workflows (company_id, lower(name));

create table approval_steps (
  id uuid primary key,
  workflow_id uuid not null references approval_workflows (id) on delete cascade,
  position integer not null,
  name text not null,
  role_id uuid references roles (id) on delete set null,
  -- Whether the role was given by its name, and is shown so.
  role_by_name boolean not null default false,
  team_id uuid references teams (id) on delete set null,
  user_ids uuid[] not null default '{}',
  required integer not null default 1,
  sla_hours integer not null default 24,
  on_overdue text not null default 'notify' check (on_overdue in ('notify', 'escalate', 'reject')),
  -- {role, team, users}
  escalate_to jsonb,
  unique (workflow_id, position) deferrable initially deferred
);
create index approval_steps_role on approval_steps (role_id) where role_id is not null;
create index approval_steps_team on approval_steps (team_id) where team_id is not null;

create table approval_tickets (
  id uuid primary key,
  company_id uuid not null references companies (id) on delete cascade,
  -- The workflow as it was when the ticket was opened stands beside its id.
  workflow_id uuid not null,
  workflow jsonb not null,
  run_id uuid not null references iac_runs (id) on delete cascade,
  -- Replaced when the run is planned again and the item stays what it was.
  item_id uuid not null,
  kind text collate "C" not null,
  name text not null,
  action text not null,
  diff jsonb not null,
  diff_hash text collate "C" not null,
  state text not null default 'pending' check (state in ('pending', 'approved', 'rejected', 'cancelled', 'expired')),
  step integer not null default 0,
  step_started_at timestamptz(3) not null,
  sla_due_at timestamptz(3) not null,
  -- From then on less than a quarter of the step's time is left.
  due_soon_at timestamptz(3) not null,
  is_escalated boolean not null default false,
  due_soon_told boolean not null default false,
  overdue_told boolean not null default false,
  blocked boolean not null default false,
  requested_by uuid references users (id) on delete set null,
  requester_ids uuid[] not null,
  expires_at timestamptz(3) not null,
  created_at timestamptz(3) not null default now(),
  closed_at timestamptz(3)
);
create index approval_tickets_list on approval_tickets (company_id, created_at desc, id desc);
create index approval_tickets_pending on approval_tickets (company_id, sla_due_at) where state = 'pending';
create index approval_tickets_run on approval_tickets (run_id);
create index approval_tickets_item on approval_tickets (item_id);
create index approval_tickets_workflow on approval_tickets (workflow_id) where state = 'pending';

-- What people, and the clock, did with a ticket.
create table approval_events (
  id bigint generated always as identity primary key,
  ticket_id uuid not null references approval_tickets (id) on delete cascade,
  at timestamptz(3) not null default now(),
  type text not null check (type in ('opened', 'decided', 'delegated', 'escalated', 'commented', 'expired', 'cancelled')),
  step integer not null,
  -- Null: the clock.
  user_id uuid references users (id) on delete set null,
  user_name text,
  decision text check (decision in ('approved', 'rejected')),
  -- Whose say it was or is.
  origin_id uuid,
  from_id uuid,
  to_id uuid,
  comment text
);
create index approval_events_ticket on approval_events (ticket_id, id);
create index approval_events_decider on approval_events (user_id) where type = 'decided';
