// What the hub does by the clock: plan expiry, licence migration, ended suppressions, clean-up. Each task runs once a
// period however many hubs there are: the last run stands in the database and is claimed under its row lock.
import { type SQL, sql } from 'drizzle-orm'
import { tickTickets } from './approvals/ticket-clock.ts'
import { addUpAuditCounts } from './audit/audit-count.ts'
import { judgeDueCertificates, lookAtDuePlaces } from './certificates/certificate-watch.ts'
import { cleanUp, purgeDeletedCompanies } from './clean-up.ts'
import { watchConnections } from './connections/connection-schedule.ts'
import { forgetNodes } from './connections/gone-nodes.ts'
import { verifyDueZones } from './dns/zone-schedule.ts'
import { runSchedules } from './exports/schedules.ts'
import { keepExports } from './exports/write-export.ts'
import type { Hub } from './hub-context.ts'
import { resumeRuns } from './iac/apply.ts'
import { watchDrift } from './iac/drift.ts'
import { forgetOldManifestRuns } from './iac/run-retention.ts'
import { endLicenseMigrations } from './licenses/license-migrations.ts'
import { watchLoadBalancers } from './load-balancers/load-balancer-watch.ts'
import { watchAddresses } from './network/network-watch.ts'
import { refreshUsage } from './network/subnet-fullness.ts'
import { tellLeftOver } from './notifications/outbox.ts'
import { HELD_BACK, tellEndedSuppressions } from './notifications/suppression-end.ts'
import { applyRetention } from './plans/apply-retention.ts'
import { inTransaction, type Tx } from './platform/db/transaction.ts'
import { testDueProxies } from './proxies/proxy-schedule.ts'
import { purgeResources } from './resources/purge-resources.ts'
import { tellConditions, UNTOLD_CONDITIONS } from './resources/tell-conditions.ts'
import { resumeChanges } from './security/exceptions/exception-findings.ts'
import { endExceptions } from './security/exceptions/exceptions.ts'
import { deleteOldExports } from './security/exports/exports.ts'
import { forgetOldFindings } from './security/finding-retention.ts'
import { addUpFindingCounts } from './security/findings/finding-page.ts'
import { noteDigests } from './security/notices/digest.ts'
import { watchSecurity } from './security/notices/due-notices.ts'
import { tellSecurityNotices } from './security/notices/tell-notices.ts'
import { inviteAgents } from './security/scan-hosts/invite-agents.ts'
import { applyScanQuotas } from './security/scan-hosts/scan-quota.ts'
import { keepWindowsAhead } from './silences/windows-ahead.ts'
import { failLostRuns } from './system/commands/lost-runs.ts'

type Task = {
  readonly name: string
  readonly periodSeconds: number
  readonly run: (hub: Hub) => Promise<void>
  /** Rows without which there is nothing to do: while there are none the task is not begun. */
  readonly needs?: SQL
}

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const CHECK_EVERY_MS = 5_000

/** Expired plans: the retention rule runs for each company whose plan ended since the last look (decision G-05). */
export async function applyExpiredPlans(hub: Hub): Promise<void> {
  const expired = await hub.database.db.execute<{ id: string }>(sql`
    select id from companies where plan_expires_at is not null and plan_expires_at <= now()
      and plan_expires_at > now() - interval '2 days' and deleted_at is null`)
  for (const { id } of expired)
    await inTransaction(hub.database.db, async tx => {
      await applyRetention(hub, tx, id)
      await applyScanQuotas(hub, tx, id)
    })
}

const tasks: readonly Task[] = [
  {
    name: 'subnet_usage',
    periodSeconds: 5,
    run: refreshUsage,
    needs: sql`subnets where usage_stale and deleted_at is null`,
  },
  { name: 'address_watch', periodSeconds: MINUTE, run: watchAddresses },
  { name: 'plan_expiry', periodSeconds: MINUTE, run: applyExpiredPlans },
  { name: 'certificate_places', periodSeconds: 20, run: lookAtDuePlaces, needs: sql`certificate_deployments` },
  { name: 'certificate_dates', periodSeconds: MINUTE, run: judgeDueCertificates },
  {
    name: 'load_balancers',
    periodSeconds: 15,
    run: watchLoadBalancers,
    needs: sql`(select id from load_balancers union all select id from lb_pools union all select id from lb_members) x`,
  },
  {
    name: 'connection_watch',
    periodSeconds: 20,
    run: watchConnections,
    needs: sql`(select id from connections union all
      select id from monitoring_checks where managed_by_kind = 'connection' and deleted_at is null) x`,
  },
  { name: 'zone_verification', periodSeconds: 20, run: verifyDueZones, needs: sql`dns_zones` },
  { name: 'proxy_tests', periodSeconds: 20, run: testDueProxies, needs: sql`proxies` },
  { name: 'ended_suppressions', periodSeconds: 20, run: tellEndedSuppressions, needs: HELD_BACK },
  { name: 'conditions', periodSeconds: 5, run: tellConditions, needs: UNTOLD_CONDITIONS },
  { name: 'left_over_notifications', periodSeconds: 5, run: tellLeftOver, needs: sql`notification_outbox` },
  {
    name: 'audit_counts',
    periodSeconds: MINUTE,
    run: hub => addUpAuditCounts(hub.database.db),
    needs: sql`audit_log_count_changes`,
  },
  { name: 'security_notices', periodSeconds: 5, run: tellSecurityNotices, needs: sql`security_notices` },
  {
    name: 'security_exceptions',
    periodSeconds: 5,
    run: endExceptions,
    needs: sql`security_exceptions where status in ('pending', 'approved') and expires_at <= now()`,
  },
  {
    name: 'exception_changes',
    periodSeconds: MINUTE,
    run: resumeChanges,
    needs: sql`security_exceptions where changing is not null`,
  },
  { name: 'security_watch', periodSeconds: MINUTE, run: watchSecurity, needs: sql`scan_hosts` },
  { name: 'security_digest', periodSeconds: MINUTE, run: noteDigests },
  { name: 'security_retention', periodSeconds: DAY, run: forgetOldFindings },
  { name: 'security_exports', periodSeconds: 10 * MINUTE, run: deleteOldExports },
  {
    name: 'finding_counts',
    periodSeconds: 5,
    run: hub => addUpFindingCounts(hub.database.db),
    needs: sql`(select 1 from security_finding_count_changes union all select 1 from security_finding_day_changes) x`,
  },
  { name: 'scan_invitations', periodSeconds: MINUTE, run: inviteAgents },
  { name: 'exports', periodSeconds: 20, run: keepExports, needs: sql`exports` },
  { name: 'export_schedules', periodSeconds: 20, run: runSchedules, needs: sql`export_schedules` },
  {
    name: 'lost_commands',
    periodSeconds: 20,
    run: failLostRuns,
    needs: sql`system_command_runs where state = 'running'`,
  },
  { name: 'iac_runs', periodSeconds: 10, run: resumeRuns, needs: sql`iac_runs where queued_at is not null` },
  { name: 'iac_drift', periodSeconds: 5, run: watchDrift, needs: sql`iac_bindings` },
  { name: 'iac_retention', periodSeconds: DAY, run: forgetOldManifestRuns },
  { name: 'approval_clock', periodSeconds: MINUTE, run: tickTickets },
  { name: 'license_migration', periodSeconds: HOUR, run: endLicenseMigrations },
  { name: 'silence_windows', periodSeconds: HOUR, run: keepWindowsAhead },
  { name: 'purge_companies', periodSeconds: HOUR, run: purgeDeletedCompanies },
  { name: 'purge_resources', periodSeconds: DAY, run: purgeResources },
  { name: 'gone_nodes', periodSeconds: DAY, run: forgetNodes },
  { name: 'clean_up', periodSeconds: DAY, run: cleanUp },
]

/** Whether there is something to do, of a task by its key `p.key`: asked of those only whose period is over. */
const HAS_WORK = sql.join(
  [
    sql`case p.key`,
    ...tasks.flatMap(({ name, needs }) =>
      needs ? [sql`when ${sql.raw(`'schedule.${name}'`)} then exists (select 1 from ${needs})`] : [],
    ),
    sql`else true end`,
  ],
  sql` `,
)

/** A tick finds what the tick before claimed a moment after it began: a period of one tick is not two of them. */
const SLACK_MS = 500
const PERIODS = JSON.stringify(
  tasks.map(task => ({ key: `schedule.${task.name}`, seconds: task.periodSeconds - SLACK_MS / 1000 })),
)
/**
 * Tasks whose period is over. The periods stand in the text: a statement without parameters is planned once a
 * connection, and to plan it takes longer than all that it does.
 */
const DUE = sql`from jsonb_to_recordset(${sql.raw(`'${PERIODS}'`)}::jsonb) as p (key text, seconds float8)
  left join system_settings s on s.key = p.key
  where (s.updated_at is null or s.updated_at <= now() - make_interval(secs => p.seconds))`

/** Those that have something to do: most hubs have no rows of most kinds, and each task would be several statements. */
const DUE_WITH_WORK = sql`select p.key ${DUE} and ${HAS_WORK}`

/** Of the tasks with work those that are still due, and that this hub now has to start. */
async function claimDue(tx: Tx, keys: readonly string[]): Promise<Task[]> {
  const rows = await tx.db.execute<{ key: string }>(sql`
    insert into system_settings (key, value, updated_at) select p.key, 'true', now() ${DUE}
      and p.key in (select jsonb_array_elements_text(${JSON.stringify(keys)}::jsonb))
    on conflict (key) do update set updated_at = now() where system_settings.updated_at < excluded.updated_at
      - interval '1 second' returning key`)
  const claimed = new Set(rows.map(row => row.key))
  return tasks.filter(task => claimed.has(`schedule.${task.name}`))
}

const QUEUE = 'schedule'

export function registerSchedule(hub: Hub): void {
  hub.jobs.register(QUEUE, {
    async handle(payload) {
      const task = tasks.find(item => item.name === payload.task)
      await task?.run(hub)
    },
  })
}

/** Starts the clock. Returns the function that stops it. */
export function startSchedule(hub: Hub): () => void {
  let isRunning = false
  const tick = async () => {
    if (isRunning) return
    isRunning = true
    try {
      // An idle hub asks this one statement and no more.
      const found = await hub.database.db.execute<{ key: string }>(DUE_WITH_WORK)
      if (found.length === 0) return
      await inTransaction(hub.database.db, async tx => {
        const keys = found.map(row => row.key)
        const due = await claimDue(tx, keys)
        hub.jobs.enqueue(
          tx,
          due.map(task => ({ queue: QUEUE, payload: { task: task.name }, key: task.name })),
        )
      })
    } catch (error) {
      hub.log.error({ err: error }, 'cannot schedule tasks')
    } finally {
      isRunning = false
    }
  }
  const timer = setInterval(() => void tick(), CHECK_EVERY_MS)
  return () => clearInterval(timer)
}
