// How long the hub keeps what is over, and when a deleted company goes for good; other days stand with what they are of
// (findings: security/finding-retention.ts, runs of manifests: iac/run-retention.ts, resources in the trash:
// resources/purge-resources.ts).
import { sql } from 'drizzle-orm'
import { addUpAuditCounts } from './audit/audit-count.ts'
import { purgeCompany } from './companies/companies.ts'
import type { Hub } from './hub-context.ts'
import { forgetOldRefusals } from './licenses/refusals.ts'
import { allowLongStatements, inTransaction } from './platform/db/transaction.ts'
import { forgetOldRuns } from './system/commands/lost-runs.ts'

const DAY_MS = 86_400_000
const COMPANY_KEPT_DAYS = 30
const TOMBSTONE_DAYS = 90
const NOTIFICATION_DAYS = 90
const DELIVERY_DAYS = 30

/** Old events of alerts that are over. Company by company: the events of one stand in an index by their time. */
async function deleteOldEvents({ database: { db }, config, now }: Hub): Promise<void> {
  const companies = await db.execute<{ company_id: string; days: number }>(sql`
    select company_id, coalesce(alert_event_retention_days, ${config['events.retention_days']}) as days from monitoring_settings`)
  for (const { company_id, days } of companies)
    await inTransaction(db, async tx => {
      await allowLongStatements(tx)
      await tx.db.execute(sql`
        delete from monitoring_alert_events e
        where e.company_id = ${company_id} and e.occurred_at < ${new Date(now() - days * DAY_MS).toISOString()}
          and not exists (select 1 from monitoring_alerts a where a.id = e.alert_id
            and a.state in ('open', 'acknowledged', 'grouped'))`)
    })
}

/**
 * Old events of alerts that are over; graces that ended; tombstones, audit entries and notifications past their time.
 */
export async function cleanUp(hub: Hub): Promise<void> {
  const { db } = hub.database
  await deleteOldEvents(hub)
  await db.execute(sql`
    update monitoring_settings set metrics_retention_previous_days = null, metrics_retention_grace_until = null
    where metrics_retention_grace_until <= now()`)
  const old = sql`now() - make_interval(days => ${TOMBSTONE_DAYS})`
  for (const table of ['monitoring_rules', 'monitoring_silences', 'monitoring_checks'])
    await db.execute(sql`delete from ${sql.identifier(table)} where deleted_at < ${old}`)
  await db.execute(sql`delete from monitoring_feed_tombstones where deleted_at < ${old}`)
  await forgetOldRefusals(db)
  const auditDays = hub.state.valueOf('audit.retention_days')
  await db.execute(sql`delete from audit_log where created_at < now() - make_interval(days => ${auditDays})`)
  await forgetOldRuns(db)
  await addUpAuditCounts(db)
  await db.execute(sql`delete from audit_log_counts where count = 0`)
  await inTransaction(db, async tx => {
    await allowLongStatements(tx)
    await tx.db.execute(
      sql`delete from notifications where created_at < now() - make_interval(days => ${NOTIFICATION_DAYS})`,
    )
    await tx.db.execute(sql`delete from push_deliveries
      where finished_at < now() - make_interval(days => ${DELIVERY_DAYS})`)
    await tx.db.execute(sql`delete from notification_deliveries
      where state <> 'waiting' and finished_at < now() - make_interval(days => ${DELIVERY_DAYS})`)
  })
  // A used code of an agent tells that the agent needs no other.
  await db.execute(sql`
    delete from scan_enrolment_codes where expires_at < now() - interval '2 days' and (agent_id is null or uses = 0)`)
  await db.execute(sql`delete from sessions where last_seen_at < now() - interval '2 days'`)
}

/** Companies that were deleted 30 days ago go for good (decision G-41). */
export async function purgeDeletedCompanies(hub: Hub): Promise<void> {
  const due = await hub.database.db.execute<{ id: string }>(sql`
    select id from companies where deleted_at < now() - make_interval(days => ${COMPANY_KEPT_DAYS})
      and (parent_id is null or parent_id not in (select id from companies where deleted_at is not null))`)
  for (const { id } of due) await inTransaction(hub.database.db, tx => purgeCompany(hub, tx, id))
}
