// Scan hosts as people manage them: attached to a server, detached, revoked (decisions G-156, G-171, G-185, G-194).
import { sql } from 'drizzle-orm'
import { auditRequest } from '../../audit/audit.ts'
import type { Hub } from '../../hub-context.ts'
import { inTransaction, lockCompany, type Tx, uuidList } from '../../platform/db/transaction.ts'
import { invalidField } from '../../platform/http/api-error.ts'
import type { RouteContext } from '../../platform/http/route.ts'
import { scanHostCollection } from './scan-host-list.ts'
import { lockScanQuota, markInactive } from './scan-quota.ts'

type ScanHostRow = Awaited<ReturnType<typeof scanHostCollection.find>>

/** Resolves the findings of hosts that are no longer scanned. Returns how many there were. */
async function resolveFindings(hub: Hub, tx: Tx, hostIds: readonly string[]): Promise<number> {
  const nowIso = new Date(hub.now()).toISOString()
  const rows = await tx.db.execute<{ company_id: string; count: string }>(sql`
    with resolved as (
      update security_findings set status = 'resolved', resolved_at = ${nowIso}, resolved_reason = 'out_of_scope'
      where host_id = any(${uuidList(hostIds)}::uuid[]) and status <> 'resolved' returning company_id)
    insert into security_finding_day_changes (company_id, day, opened, resolved)
    select company_id, (${nowIso}::timestamptz at time zone 'UTC')::date, 0, count(*) from resolved group by 1
    returning company_id, resolved as count`)
  return rows.reduce((sum, row) => sum + Number(row.count), 0)
}

/** Revokes active hosts for good, and resolves their findings. Returns how many findings were resolved. */
export async function revokeHosts(hub: Hub, tx: Tx, hostIds: readonly string[], reason: string): Promise<number> {
  const rows = await tx.db.execute<{ host_id: string }>(sql`
    update scan_hosts set state = 'revoked', revoked_at = ${new Date(hub.now()).toISOString()}, revoked_reason = ${reason},
      inactive_at = null
    where host_id = any(${uuidList(hostIds)}::uuid[]) and state = 'active' returning host_id`)
  const revoked = rows.map(row => row.host_id)
  if (revoked.length === 0) return 0
  tx.touch('scan_hosts', revoked)
  return resolveFindings(hub, tx, revoked)
}

/** The scan host that is attached to a server now; null without one. */
export async function activeHostOf({ database }: Hub, serverId: string): Promise<string | null> {
  const [known] = await database.db.execute<{ host_id: string }>(sql`
    select host_id from scan_hosts where server_id = ${serverId} and state = 'active'`)
  return known?.host_id ?? null
}

const subjectOf = ({ host }: ScanHostRow) => ({ type: 'scan_host', id: host.id, name: host.hostname })

/** Repeating changes nothing. */
export async function revokeHost(context: RouteContext, id: string): Promise<ScanHostRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    const quota = await lockScanQuota(tx, companyId)
    const before = await scanHostCollection.lock(tx, companyId, id)
    if (before.host.state === 'revoked') return before
    const resolved = await revokeHosts(hub, tx, [id], 'revoked by user')
    // What it leaves room for may be scanned again.
    await markInactive(hub, tx, quota)
    await auditRequest(tx, context, 'scan_host.revoke', subjectOf(before), {
      state: { old: 'active', new: 'revoked' },
      resolved_findings: { old: null, new: resolved },
    })
    return scanHostCollection.find(tx.db, companyId, id)
  })
}

/** Exceptions of the server's findings that hosts before this one told of go on for the same findings of this one. */
async function takeOverExceptions(tx: Tx, hostId: string, serverId: string): Promise<void> {
  await tx.db.execute(sql`
    with covered as (
      select distinct on (f.id) f.id, e.id as exception_id, e.type
      from security_findings f
        join security_findings o on o.server_id = ${serverId} and o.vuln_id = f.vuln_id and o.package_key = f.package_key
          and o.company_id = f.company_id and o.exception_id is not null and o.host_id <> f.host_id
        join security_exceptions e on e.id = o.exception_id and e.status = 'approved'
          and (e.expires_at is null or e.expires_at > now())
      where f.host_id = ${hostId} and f.status = 'open' order by f.id, e.decided_at desc),
    changed as (
      update security_findings f set status = c.type, exception_id = c.exception_id from covered c where f.id = c.id
      returning f.id, f.exception_id)
    insert into security_exception_findings (exception_id, finding_id) select exception_id, id from changed
    on conflict do nothing`)
}

/** Gives a host, its findings and its scan another server, or none. */
async function placeHost(tx: Tx, hostId: string, serverId: string | null): Promise<void> {
  await tx.db.execute(sql`update scan_hosts set server_id = ${serverId} where host_id = ${hostId}`)
  await tx.db.execute(sql`update security_findings set server_id = ${serverId} where host_id = ${hostId}`)
  await tx.db.execute(sql`update security_server_scans set server_id = ${serverId} where host_id = ${hostId}`)
  tx.touch('scan_hosts', [hostId])
  if (serverId !== null) await takeOverExceptions(tx, hostId, serverId)
}

/** Whether a server has an active host, other than this one. */
export async function isTaken(tx: Tx, serverId: string, hostId: string | null): Promise<boolean> {
  const others = await tx.db.execute(sql`select 1 from scan_hosts
    where server_id = ${serverId} and state = 'active' and host_id is distinct from ${hostId}::uuid`)
  return others.length > 0
}

/** Attaches a host to a server of its company; null detaches it. */
export async function attachHost(context: RouteContext, id: string, serverId: string | null): Promise<ScanHostRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await scanHostCollection.lock(tx, companyId, id)
    if (before.host.state === 'revoked') throw invalidField('state', 'state_refused', { state: 'revoked' })
    if (serverId !== null) {
      const known = await tx.db.execute(sql`
        select 1 from servers where company_id = ${companyId} and id = ${serverId} and deleted_at is null`)
      if (known.length === 0) throw invalidField('server_id', 'unknown_reference')
      if (await isTaken(tx, serverId, id)) throw invalidField('server_id', 'server_has_scan_host')
    }
    if (before.host.serverId === (serverId?.toLowerCase() ?? null)) return before
    await placeHost(tx, id, serverId)
    await auditRequest(tx, context, 'scan_host.attach', subjectOf(before), {
      server_id: { old: before.host.serverId, new: serverId },
    })
    return scanHostCollection.find(tx.db, companyId, id)
  })
}
