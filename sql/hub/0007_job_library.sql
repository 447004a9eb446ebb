-- Jobs live in the tables of the job library (schema pgboss, made before this runs). Those that are open go along.

-- What companies are to be told, in the order of commit: a dispatch job works off all of its company.
create table notification_outbox (
  position bigint generated always as identity primary key,
  company_id uuid not null references companies (id) on delete cascade,
  told jsonb not null,
  created_at timestamptz(3) not null default now()
);
create index notification_outbox_company on notification_outbox (company_id, position);

insert into notification_outbox (company_id, told, created_at)
  select c.id, x.told, x.created_at from (
    select (item->'alert'->>'companyId')::uuid as company_id, jsonb_agg(item order by place) as told, j.created_at, j.position
    from jobs j, jsonb_array_elements(j.payload->'told') with ordinality as t (item, place)
    where j.queue = 'notifications.dispatch' and j.state in ('waiting', 'running')
    group by 1, j.created_at, j.position) x
  join companies c on c.id = x.company_id order by x.position;

insert into pgboss.job (id, name, data, state, retry_count, retry_limit, retry_delay, expire_seconds, deletion_seconds,
    start_after, created_on, keep_until, singleton_key, group_id, policy, dead_letter)
  select j.id, q.name, j.payload, case when j.tries > 0 then 'retry' else 'created' end::pgboss.job_state,
    -- A fetch of a job that was tried counts one more.
    greatest(j.tries - 1, 0), q.retry_limit, q.retry_delay, q.expire_seconds, q.deletion_seconds,
    j.run_at, j.created_at, now() + q.retention_seconds * interval '1s',
    case when q.policy = 'short' then coalesce(j.dedupe_key, j.id::text) end,
    coalesce(j.payload->>'collector_id', d.webhook_id::text), q.policy, q.dead_letter
  from jobs j join pgboss.queue q on q.name = j.queue
  left join notification_deliveries d on d.id::text = j.payload->>'delivery_id'
  where j.state in ('waiting', 'running') and j.queue <> 'notifications.dispatch'
  on conflict do nothing;

insert into pgboss.job (name, data, retry_limit, retry_delay, expire_seconds, deletion_seconds, keep_until, singleton_key, policy)
  select q.name, jsonb_build_object('company_id', o.company_id), q.retry_limit, q.retry_delay, q.expire_seconds,
    q.deletion_seconds, now() + q.retention_seconds * interval '1s', o.company_id::text, q.policy
  from (select distinct company_id from notification_outbox) o, pgboss.queue q where q.name = 'notifications.dispatch';

drop table jobs;

-- What was written in one transaction has one time: its order is that of writing.
alter table notifications add column position bigint generated always as identity;
drop index notifications_user;
create index notifications_user on notifications (user_id, position desc);
alter table notification_deliveries add column position bigint generated always as identity;
drop index notification_deliveries_company;
drop index notification_deliveries_webhook;
create index notification_deliveries_company on notification_deliveries (company_id, position desc);
create index notification_deliveries_webhook on notification_deliveries (webhook_id, position desc);
