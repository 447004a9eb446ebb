// How a company is scanned: settings within its plan, the ports that it expects to be open, and the scan of contents
// (decisions G-159, G-176).
import { Type } from '@sinclair/typebox'
import { eq, sql } from 'drizzle-orm'
import { auditRequest } from '../../audit/audit.ts'
import { changesBetween } from '../../audit/masked-changes.ts'
import { effectivePlan } from '../../plans/effective-plan.ts'
import type { Executor } from '../../platform/db/connect.ts'
import {
  securityContentScanSettings,
  securityExpectedPorts,
  securitySettings,
} from '../../platform/db/schema-security.ts'
import { inTransaction, lockCompany, type Tx } from '../../platform/db/transaction.ts'
import { invalidField } from '../../platform/http/api-error.ts'
import { amount, id, listed, named, nullable, string, time, wordOf } from '../../platform/http/response-schema.ts'
import type { RouteContext } from '../../platform/http/route.ts'
import { addNotice } from '../notices/notices.ts'

export const securitySettingsResponse = named('SecuritySettings', {
  company_id: id(),
  version: Type.Integer({ minimum: 1 }),
  enabled: Type.Boolean(),
  /** Never below what the plan allows. */
  scan_interval_hours: amount(),
  min_scan_interval_hours: amount(),
  content_scan: Type.Boolean(),
  /** How long events and resolved findings are kept; null: for ever. */
  history_days: nullable(amount()),
  /** Of the daily digest. */
  time_zone: string(),
  updated_at: nullable(time()),
})

type SettingsRow = {
  version: number
  enabled: boolean
  scan_interval_hours: number
  time_zone: string
  updated_at: string | null
  content_scan: boolean
}

/** Without rows a company has what the columns begin with. */
async function settingsRow(db: Executor, companyId: string): Promise<SettingsRow> {
  const [row] = await db.execute<SettingsRow>(sql`
    select coalesce(s.version, 1) as version, coalesce(s.enabled, true) as enabled,
      coalesce(s.scan_interval_hours, 24) as scan_interval_hours, coalesce(s.time_zone, 'UTC') as time_zone, s.updated_at,
      coalesce(k.enabled, false) as content_scan
    from (select ${companyId}::uuid as id) c left join security_settings s on s.company_id = c.id
      left join security_content_scan_settings k on k.company_id = c.id`)
  if (!row) throw new Error('cannot read the security settings of a company')
  return row
}

export async function readSecuritySettings(db: Executor, companyId: string) {
  const [row, plan] = await Promise.all([settingsRow(db, companyId), effectivePlan(db, companyId)])
  return {
    company_id: companyId,
    version: row.version,
    enabled: row.enabled,
    scan_interval_hours: Math.max(row.scan_interval_hours, plan.scanMinIntervalHours),
    min_scan_interval_hours: plan.scanMinIntervalHours,
    content_scan: row.content_scan,
    history_days: plan.scanHistoryDays,
    time_zone: row.time_zone,
    updated_at: row.updated_at === null ? null : new Date(row.updated_at),
  }
}

type SettingsInput = {
  readonly enabled?: boolean | undefined
  readonly scan_interval_hours?: number | undefined
  readonly time_zone?: string | undefined
}

/** A new version, by which scanners see that something changed. */
async function raiseVersion(tx: Tx, companyId: string, nowMs: number, given: SettingsInput = {}): Promise<void> {
  const now = new Date(nowMs)
  await tx.db.insert(securitySettings).values({ companyId, updatedAt: now }).onConflictDoNothing()
  await tx.db
    .update(securitySettings)
    .set({
      version: sql`${securitySettings.version} + 1`,
      updatedAt: now,
      ...(given.enabled === undefined ? {} : { enabled: given.enabled }),
      ...(given.scan_interval_hours === undefined ? {} : { scanIntervalHours: given.scan_interval_hours }),
      ...(given.time_zone === undefined ? {} : { timeZone: given.time_zone }),
    })
    .where(eq(securitySettings.companyId, companyId))
}

export async function changeSecuritySettings(context: RouteContext, given: SettingsInput) {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await settingsRow(tx.db, companyId)
    await raiseVersion(tx, companyId, hub.now(), given)
    const { updated_at: _at, ...after } = await settingsRow(tx.db, companyId)
    const { updated_at: _before, ...old } = before
    const subject = { type: 'security_settings', id: companyId, name: null }
    await auditRequest(tx, context, 'security.settings.update', subject, changesBetween(old, after))
    return readSecuritySettings(tx.db, companyId)
  })
}

const protos = ['tcp', 'udp'] as const
export const expectedPortsResponse = named('ExpectedPorts', {
  ports: listed(Type.Object({ port: Type.Integer({ minimum: 1, maximum: 65_535 }), proto: wordOf(protos) })),
})
type ExpectedPort = { readonly port: number; readonly proto: (typeof protos)[number] }

export async function expectedPorts(db: Executor, companyId: string) {
  const ports = await db
    .select({ port: securityExpectedPorts.port, proto: securityExpectedPorts.proto })
    .from(securityExpectedPorts)
    .where(eq(securityExpectedPorts.companyId, companyId))
    .orderBy(securityExpectedPorts.port, securityExpectedPorts.proto)
  return { ports }
}

/** Replaces all of them; one that is named twice is one. */
export async function replaceExpectedPorts(context: RouteContext, given: readonly ExpectedPort[]) {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await expectedPorts(tx.db, companyId)
    await tx.db.delete(securityExpectedPorts).where(eq(securityExpectedPorts.companyId, companyId))
    const ports = [...new Map(given.map(port => [`${port.port} ${port.proto}`, port])).values()]
    if (ports.length > 0)
      await tx.db.execute(sql`
        insert into security_expected_ports (company_id, port, proto)
        select ${companyId}::uuid, x.port, x.proto from jsonb_to_recordset(${JSON.stringify(ports)}::jsonb)
          as x (port int, proto text)`)
    const after = await expectedPorts(tx.db, companyId)
    const subject = { type: 'security_expected_ports', id: companyId, name: null }
    await auditRequest(tx, context, 'security.settings.update', subject, changesBetween(before, after))
    return after
  })
}

export const contentKinds = ['secret', 'sensitive_data'] as const
export const contentScanResponse = named('ContentScanSettings', {
  enabled: Type.Boolean(),
  kinds: listed(wordOf(contentKinds)),
  paths: listed(string()),
  max_file_mb: amount(),
})

type ContentScan = {
  readonly enabled: boolean
  readonly kinds: readonly string[]
  readonly paths: readonly string[]
  readonly max_file_mb: number
}
type ContentScanInput = { readonly [K in keyof ContentScan]?: ContentScan[K] | undefined }

export async function contentScanSettings(db: Executor, companyId: string): Promise<ContentScan> {
  const [row] = await db
    .select()
    .from(securityContentScanSettings)
    .where(eq(securityContentScanSettings.companyId, companyId))
  return {
    enabled: row?.enabled ?? false,
    kinds: row?.kinds ?? [],
    paths: row?.paths ?? [],
    max_file_mb: row?.maxFileMb ?? 10,
  }
}

const isAbsolute = (path: string): boolean =>
  path.startsWith('/') && !path.includes('\0') && !path.split('/').includes('..')

/** Whoever widens the scope of the scan tells everybody who may see what it finds. */
export async function changeContentScan(context: RouteContext, given: ContentScanInput): Promise<ContentScan> {
  const { hub, companyId } = context
  const index = given.paths?.findIndex(path => !isAbsolute(path)) ?? -1
  if (index >= 0) throw invalidField(`paths.${index}`, 'absolute_path')
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await contentScanSettings(tx.db, companyId)
    const after: ContentScan = {
      enabled: given.enabled ?? before.enabled,
      kinds: [...new Set(given.kinds ?? before.kinds)],
      paths: [...new Set(given.paths ?? before.paths)],
      max_file_mb: given.max_file_mb ?? before.max_file_mb,
    }
    const changes = changesBetween(before, after)
    if (Object.keys(changes).length === 0) return before
    const set = {
      enabled: after.enabled,
      kinds: [...after.kinds],
      paths: [...after.paths],
      maxFileMb: after.max_file_mb,
      updatedAt: new Date(hub.now()),
    }
    await tx.db
      .insert(securityContentScanSettings)
      .values({ companyId, ...set })
      .onConflictDoUpdate({ target: securityContentScanSettings.companyId, set })
    await raiseVersion(tx, companyId, hub.now())
    await addNotice(hub, tx, { companyId, type: 'security.content.scope_changed' })
    const subject = { type: 'security_content_scan', id: companyId, name: null }
    await auditRequest(tx, context, 'security.settings.update', subject, changes)
    return after
  })
}
