// Notices become messages: all of one type that a company has waiting are one message, so that a first scan of a fleet
// is no flood of bells. Taking the notices and writing the messages is one transaction.
import { sql } from 'drizzle-orm'
import { type SecurityEventType, securityEventTypes } from '../../../../core/lifecycle/security-event-severity.ts'
import type { Hub } from '../../hub-context.ts'
import type { Attributes } from '../../notifications/choose-channels.ts'
import { type SecurityMessage, tellSecurity } from '../../notifications/security-messages.ts'
import { linkTo } from '../../notifications/templates.ts'
import { inTransaction, type Tx, uuidList } from '../../platform/db/transaction.ts'
import { digestValues } from './digest.ts'

const NOTICES_AT_ONCE = 1000
/** Of more findings at a time, webhooks are told how many there are. */
const ITEMS_MAX = 100
const NAMES_SHOWN = 3

type NoticeRow = {
  position: string
  type: string
  finding_id: string | null
  host_id: string | null
  exception_id: string | null
}

type FindingRow = {
  id: string
  kind: string
  vuln_id: string
  priority: string
  risk: number
  fixed_version: string
  sla_due_at: string | null
  server_id: string | null
  hostname: string
}
type HostRow = { host_id: string; hostname: string; server_id: string | null; last_report_at: string | null }
type ServerRow = Attributes & { readonly name: string }
type ExceptionRow = {
  id: string
  type: string
  status: string
  reason: string
  finding_count: number
  expires_at: string | null
  requester: string | null
  decider: string | null
}

const isType = (text: string): text is SecurityEventType => securityEventTypes.some(type => type === text)
const isoOf = (text: string | null): string => (text === null ? '–' : new Date(text).toISOString())

/** The first few of different names, and how many more there are. */
function shortList(names: readonly string[]): string {
  const different = [...new Set(names.filter(name => name !== ''))]
  if (different.length === 0) return '–'
  const more = different.length - NAMES_SHOWN
  return `${different.slice(0, NAMES_SHOWN).join(', ')}${more > 0 ? ` +${more}` : ''}`
}

async function serversOf(tx: Tx, companyId: string, ids: readonly (string | null)[]): Promise<Map<string, ServerRow>> {
  const list = uuidList(new Set(ids.filter(id => id !== null)))
  const rows = await tx.db.execute<ServerRow>(sql`
    select id, name, tags, environment, role, datacenter from servers
    where company_id = ${companyId} and id = any(${list}::uuid[])`)
  return new Map(rows.map(row => [row.id, row]))
}

/** What is found in contents is told of under a name of its own, to those who may see it. */
const typeOfFinding = (type: SecurityEventType, kind: string): SecurityEventType | null => {
  if (!isOfContents(kind)) return type
  if (type !== 'security.finding.p1_opened') return null
  return kind === 'secret' ? 'security.secret.high_opened' : 'security.pii.bulk_found'
}

const isOfContents = (kind: string): boolean => kind === 'secret' || kind === 'sensitive_data'

function itemOf(hub: Hub, finding: FindingRow, server: ServerRow | undefined) {
  const isContent = isOfContents(finding.kind)
  return {
    servers: server ? [server] : [],
    data: {
      finding: {
        id: finding.id,
        server: server ? { id: server.id, name: server.name } : null,
        ...(isContent ? { detector_id: finding.vuln_id } : { vuln_id: finding.vuln_id }),
        priority: finding.priority,
        risk: finding.risk,
        fixed_version: isContent ? '' : finding.fixed_version,
        link: linkTo(hub.config.public_url, `/security/findings/${finding.id}`),
      },
    },
  }
}

async function messagesOfFindings(
  hub: Hub,
  tx: Tx,
  companyId: string,
  asked: SecurityEventType,
  ids: readonly string[],
): Promise<SecurityMessage[]> {
  // One that is no longer open is nothing to worry about.
  const findings = await tx.db.execute<FindingRow>(sql`
    select f.id, f.kind, f.vuln_id, f.priority, f.risk, f.fixed_version, f.sla_due_at, f.server_id, h.hostname
    from security_findings f join scan_hosts h on h.host_id = f.host_id
    where f.company_id = ${companyId} and f.id = any(${uuidList(new Set(ids))}::uuid[]) and f.status = 'open'
    order by f.risk desc, f.vuln_id, f.id`)
  const servers = await serversOf(
    tx,
    companyId,
    findings.map(finding => finding.server_id),
  )
  const byType = Map.groupBy(findings, finding => typeOfFinding(asked, finding.kind))
  return [...byType].flatMap(([type, rows]) => {
    if (type === null) return []
    const serverOf = (row: FindingRow) => (row.server_id === null ? undefined : servers.get(row.server_id))
    const items = rows.slice(0, ITEMS_MAX).map(row => itemOf(hub, row, serverOf(row)))
    const beyond = rows.length - items.length
    const [first] = rows
    const message: SecurityMessage = {
      type,
      values: {
        count: String(rows.length),
        vuln_id: shortList(rows.map(row => row.vuln_id)),
        server: shortList(rows.map(row => serverOf(row)?.name ?? row.hostname)),
        fixed_version: shortList(rows.map(row => row.fixed_version)),
        priority: shortList(rows.map(row => row.priority).sort()),
        risk: String(first?.risk ?? 0),
        due_at: isoOf(rows.map(row => row.sla_due_at).sort()[0] ?? null),
      },
      path: rows.length === 1 && first ? `/security/findings/${first.id}` : '/security/findings',
      servers: [...new Set(rows.flatMap(row => serverOf(row) ?? []))],
      items: beyond > 0 ? [...items, { servers: [], data: { further_findings: beyond } }] : items,
    }
    return [message]
  })
}

async function messageOfHosts(
  tx: Tx,
  companyId: string,
  type: SecurityEventType,
  ids: readonly string[],
): Promise<SecurityMessage[]> {
  const hosts = await tx.db.execute<HostRow>(sql`
    select host_id, hostname, server_id, last_report_at from scan_hosts
    where company_id = ${companyId} and host_id = any(${uuidList(new Set(ids))}::uuid[]) and state = 'active' order by hostname`)
  if (hosts.length === 0) return []
  const servers = await serversOf(
    tx,
    companyId,
    hosts.map(host => host.server_id),
  )
  const serverOf = (host: HostRow) => (host.server_id === null ? undefined : servers.get(host.server_id))
  return [
    {
      type,
      values: {
        count: String(hosts.length),
        server: shortList(hosts.map(host => serverOf(host)?.name ?? host.hostname)),
        last_report_at: isoOf(hosts.map(host => host.last_report_at).sort()[0] ?? null),
      },
      path: '/security/scan-hosts',
      servers: hosts.flatMap(host => serverOf(host) ?? []),
      items: hosts.slice(0, ITEMS_MAX).map(host => {
        const server = serverOf(host)
        return {
          servers: server ? [server] : [],
          data: {
            scan_host: { id: host.host_id, last_report_at: host.last_report_at && isoOf(host.last_report_at) },
            server: server ? { id: server.id, name: server.name } : null,
          },
        }
      }),
    },
  ]
}

async function messagesOfExceptions(
  hub: Hub,
  tx: Tx,
  companyId: string,
  type: SecurityEventType,
  ids: readonly string[],
): Promise<SecurityMessage[]> {
  const rows = await tx.db.execute<ExceptionRow>(sql`
    select e.id, e.type, e.status, e.reason, e.finding_count, e.expires_at, r.name as requester, d.name as decider
    from security_exceptions e left join users r on r.id = e.requested_by left join users d on d.id = e.decided_by
    where e.company_id = ${companyId} and e.id = any(${uuidList(new Set(ids))}::uuid[]) order by e.requested_at, e.id`)
  const path = '/security/exceptions'
  return rows.map(row => ({
    type,
    values: {
      count: String(row.finding_count),
      reason: row.reason,
      exception_type: row.type,
      exception_status: row.status,
      expires_at: isoOf(row.expires_at),
      requester: row.requester ?? '–',
      decider: row.decider ?? '–',
    },
    path,
    servers: [],
    items: [
      {
        servers: [],
        data: {
          exception: {
            id: row.id,
            type: row.type,
            status: row.status,
            finding_count: row.finding_count,
            expires_at: row.expires_at && isoOf(row.expires_at),
            link: linkTo(hub.config.public_url, path),
          },
        },
      },
    ],
  }))
}

async function messageOfCompany(
  hub: Hub,
  tx: Tx,
  companyId: string,
  type: SecurityEventType,
): Promise<SecurityMessage[]> {
  const values = await digestValues(hub, tx.db, companyId)
  const path = '/security'
  const data = { ...values, link: linkTo(hub.config.public_url, path) }
  return [{ type, values, path, servers: [], items: [{ servers: [], data: { security: data } }] }]
}

/** The messages of the notices of one type. */
function messagesOf(hub: Hub, tx: Tx, companyId: string, type: SecurityEventType, rows: readonly NoticeRow[]) {
  const ids = (of: 'finding_id' | 'host_id' | 'exception_id') => rows.flatMap(row => row[of] ?? [])
  if (type.startsWith('security.exception.')) return messagesOfExceptions(hub, tx, companyId, type, ids('exception_id'))
  if (type === 'security.server.scan_stale') return messageOfHosts(tx, companyId, type, ids('host_id'))
  const findings = ids('finding_id')
  return findings.length > 0
    ? messagesOfFindings(hub, tx, companyId, type, findings)
    : messageOfCompany(hub, tx, companyId, type)
}

/** Tells the oldest notices of a company. Returns how many there were. */
async function tellSome(hub: Hub, companyId: string): Promise<number> {
  return inTransaction(hub.database.db, async tx => {
    const rows = await tx.db.execute<NoticeRow>(sql`
      with taken as (
        select position from security_notices where company_id = ${companyId} order by position limit ${NOTICES_AT_ONCE}
        for update skip locked)
      delete from security_notices n using taken t where n.position = t.position
      returning n.position, n.type, n.finding_id, n.host_id, n.exception_id`)
    const messages: SecurityMessage[] = []
    const ordered = [...rows].sort((a, b) => Number(a.position) - Number(b.position))
    for (const [type, ofType] of Map.groupBy(ordered, row => row.type))
      if (isType(type)) messages.push(...(await messagesOf(hub, tx, companyId, type, ofType)))
    await tellSecurity(hub, tx, companyId, messages)
    return rows.length
  })
}

/** Tells every notice that waits; those of companies that are gone are dropped. */
export async function tellSecurityNotices(hub: Hub): Promise<void> {
  await hub.database.db.execute(sql`
    delete from security_notices n where not exists (
      select 1 from companies c where c.id = n.company_id and c.deleted_at is null)`)
  const companies = await hub.database.db.execute<{ company_id: string }>(
    sql`select distinct company_id from security_notices`,
  )
  for (const { company_id } of companies)
    while ((await tellSome(hub, company_id)) === NOTICES_AT_ONCE) {
      // Each round is a transaction of its own.
    }
}
