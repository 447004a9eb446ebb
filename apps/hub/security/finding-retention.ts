// What is kept of findings: events and resolved findings for the history of the plan (decision G-177).
import { sql } from 'drizzle-orm'
import type { Hub } from '../hub-context.ts'
import { effectivePlan } from '../plans/effective-plan.ts'
import { allowLongStatements, inTransaction } from '../platform/db/transaction.ts'

const DAY_MS = 86_400_000
const TREND_DAYS_KEPT = 400
const AT_ONCE = 10_000

async function forgetOf(hub: Hub, companyId: string, days: number): Promise<void> {
  const before = new Date(hub.now() - days * DAY_MS).toISOString()
  const forget = (from: string, which: ReturnType<typeof sql>) =>
    inTransaction(hub.database.db, async tx => {
      await allowLongStatements(tx)
      const gone = await tx.db.execute(sql`delete from ${sql.identifier(from)} where ${which}`)
      return gone.count
    })
  const ofHosts = sql`host_id in (select host_id from scan_hosts where company_id = ${companyId})`
  const events = sql`event_id in (select event_id from security_finding_events
    where ${ofHosts} and received_at < ${before}::timestamptz limit ${AT_ONCE})`
  const resolved = sql`id in (select id from security_findings
    where company_id = ${companyId} and status = 'resolved' and resolved_at < ${before}::timestamptz limit ${AT_ONCE})`
  while ((await forget('security_finding_events', events)) === AT_ONCE) {
    // A little at a time, so that nobody waits for long.
  }
  while ((await forget('security_findings', resolved)) === AT_ONCE) {
    // The same.
  }
}

export async function forgetOldFindings(hub: Hub): Promise<void> {
  const { db } = hub.database
  const companies = await db.execute<{ company_id: string }>(sql`select distinct company_id from scan_hosts`)
  for (const { company_id } of companies) {
    const { scanHistoryDays } = await effectivePlan(db, company_id)
    if (scanHistoryDays !== null) await forgetOf(hub, company_id, scanHistoryDays)
  }
  await db.execute(sql`
    delete from security_finding_days where day < ${new Date(hub.now() - TREND_DAYS_KEPT * DAY_MS).toISOString()}::timestamptz`)
  // Counts of what no company has any more.
  await db.execute(sql`delete from security_finding_name_counts where count = 0`)
  await db.execute(sql`delete from security_finding_counts where count = 0`)
}
