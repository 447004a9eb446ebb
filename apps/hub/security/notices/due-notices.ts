// What time alone makes of security: findings whose term ends, exceptions that end soon, scan hosts that fall silent, a
// vulnerability database that grows old (decision G-162). Each is noted once.
import { sql } from 'drizzle-orm'
import type { Hub } from '../../hub-context.ts'
import { inTransaction } from '../../platform/db/transaction.ts'
import { EXPIRING_DAYS } from '../exceptions/exception-limits.ts'
import { hasTermState, type TermState } from '../findings/finding-term-sql.ts'
import { DB_STALE_DAYS, databaseDay, isStaleHost } from '../stale-hosts-and-database.ts'
import { addNotice } from './notices.ts'

const DAY_MS = 86_400_000
const AT_ONCE = 1000

/** Notes up to so many findings of a company whose term is over, or soon. Returns how many. */
async function noteTermsOf(hub: Hub, companyId: string, what: TermState): Promise<number> {
  const now = new Date(hub.now()).toISOString()
  const isUntold = what === 'overdue' ? sql`sla_told is distinct from 'overdue'` : sql`sla_told is null`
  const noted = await hub.database.db.execute(sql`
    with due as (
      select id from security_findings where company_id = ${companyId} and ${hasTermState(what, hub.now())}
        and ${isUntold} order by sla_due_at limit ${AT_ONCE} for update skip locked),
    told as (
      update security_findings f set sla_told = ${what} from due where f.id = due.id returning f.id, f.company_id, f.host_id)
    insert into security_notices (company_id, type, finding_id, host_id, created_at)
    select company_id, ${`security.sla.${what}`}, id, host_id, ${now}::timestamptz from told`)
  return noted.count
}

async function noteTerms(hub: Hub): Promise<void> {
  const companies = await hub.database.db.execute<{ company_id: string }>(sql`
    select distinct h.company_id from scan_hosts h join companies c on c.id = h.company_id and c.deleted_at is null`)
  for (const { company_id } of companies)
    for (const what of ['overdue', 'due_soon'] as const)
      while ((await noteTermsOf(hub, company_id, what)) === AT_ONCE) {
        // Each round is a statement of its own.
      }
}

/** Exceptions that end within a week. */
async function noteExpiring(hub: Hub): Promise<void> {
  const now = hub.now()
  await hub.database.db.execute(sql`
    with soon as (
      update security_exceptions set expiring_told_at = ${new Date(now).toISOString()}::timestamptz
      where status = 'approved' and expiring_told_at is null and expires_at > ${new Date(now).toISOString()}::timestamptz
        and expires_at <= ${new Date(now + EXPIRING_DAYS * DAY_MS).toISOString()}::timestamptz returning id, company_id)
    insert into security_notices (company_id, type, exception_id)
    select company_id, 'security.exception.expiring', id from soon`)
}

/** Scan hosts without a report for two days, once until the next report; none where scans are switched off. */
async function noteStaleHosts(hub: Hub): Promise<void> {
  const now = new Date(hub.now()).toISOString()
  await hub.database.db.execute(sql`
    with silent as (
      update scan_hosts h set stale_told_at = ${now}::timestamptz
      where ${isStaleHost(now)} and (h.stale_told_at is null or h.stale_told_at < h.last_report_at)
        and not exists (select 1 from security_settings s where s.company_id = h.company_id and not s.enabled)
      returning h.host_id, h.company_id)
    insert into security_notices (company_id, type, host_id)
    select company_id, 'security.server.scan_stale', host_id from silent`)
}

/** A database of a week ago, told once to each company that is scanned; a newer one begins anew. */
async function noteStaleDatabase(hub: Hub): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    const matchers = await tx.db.execute<{ user_id: string; db_version: string; is_told: boolean }>(sql`
      select user_id, db_version, stale_told_at is not null as is_told from security_matchers
      order by last_heartbeat_at desc limit 1 for update`)
    const [matcher] = matchers
    const day = matcher ? databaseDay(Number(matcher.db_version)) : null
    if (!matcher || day === null) return
    const isStale = hub.now() - Date.parse(day) > DB_STALE_DAYS * DAY_MS
    if (isStale === matcher.is_told) return
    const toldAt = isStale ? new Date(hub.now()).toISOString() : null
    await tx.db.execute(
      sql`update security_matchers set stale_told_at = ${toldAt}::timestamptz where user_id = ${matcher.user_id}`,
    )
    if (!isStale) return
    const companies = await tx.db.execute<{ company_id: string }>(
      sql`select distinct company_id from scan_hosts where state = 'active'`,
    )
    for (const { company_id } of companies)
      await addNotice(hub, tx, { companyId: company_id, type: 'security.db.stale' })
  })
}

export async function watchSecurity(hub: Hub): Promise<void> {
  await noteTerms(hub)
  await noteExpiring(hub)
  await noteStaleHosts(hub)
  await noteStaleDatabase(hub)
}
