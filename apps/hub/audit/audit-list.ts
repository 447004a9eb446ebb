// Reading the audit log (decision G-164).

import { Type } from '@sinclair/typebox'
import { and, desc, eq, type SQL, sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import type { RowRange } from '../platform/db/page-of-rows.ts'
import { type AuditChanges, auditLog } from '../platform/db/schema-identity.ts'
import { notFound } from '../platform/http/api-error.ts'
import { collectionReadBy } from '../platform/http/collection.ts'
import { instant, isUuid, text, uuid } from '../platform/http/request-schema.ts'
import { id, named, nullable, string, time } from '../platform/http/response-schema.ts'
import { type AuditFilter, all, bySubject, countAudit, entriesBy } from './audit-count.ts'

export type AuditRow = Omit<typeof auditLog.$inferSelect, 'position'>

export const auditEntryResponse = named('AuditEntry', {
  id: id(),
  company_id: nullable(id()),
  actor: Type.Object({ type: string(), id: nullable(id()), name: nullable(string()) }),
  action: string(),
  subject: Type.Object({ type: string(), id: nullable(string()), name: nullable(string()) }),
  changes: Type.Unsafe<AuditChanges>({
    type: 'object',
    additionalProperties: { type: 'object', properties: { old: {}, new: {} } },
  }),
  ip: nullable(string()),
  user_agent: nullable(string()),
  token_id: nullable(id()),
  created_at: time(),
})

export const presentAuditEntry = (row: AuditRow) => ({
  id: row.id,
  company_id: row.companyId,
  actor: { type: row.actorType, id: row.actorId, name: row.actorName },
  action: row.action,
  subject: { type: row.subjectType, id: row.subjectId, name: row.subjectName },
  changes: row.changes,
  ip: row.ip,
  user_agent: row.userAgent,
  token_id: row.tokenId,
  created_at: row.createdAt,
})

/** Entries of one transaction have one time. */
const ORDER = sql`order by created_at desc, position desc`

/** The ids of a page: what it skips is counted off in an index. */
function idsOf(companyId: string, filter: AuditFilter, { limit, offset }: RowRange): SQL {
  const conditions = entriesBy(companyId, filter)
  if (filter.subject === undefined)
    return sql`select id from audit_log where ${all(conditions)} ${ORDER} limit ${limit} offset ${offset}`
  // Each of the two lists has an index in which it is read up to the end of the page; together they have none.
  const { kind, id } = bySubject(filter.subject)
  const newest = (condition: SQL) => sql`(
    select id, created_at, position from audit_log where ${all([...conditions, condition])} ${ORDER} limit ${limit + offset})`
  return sql`select id from (${newest(kind)} union all ${newest(id)}) x ${ORDER} limit ${limit} offset ${offset}`
}

/** What the log keeps of an entry, without its place in the order. */
const columns = {
  id: auditLog.id,
  companyId: auditLog.companyId,
  actorType: auditLog.actorType,
  actorId: auditLog.actorId,
  actorName: auditLog.actorName,
  action: auditLog.action,
  subjectType: auditLog.subjectType,
  subjectId: auditLog.subjectId,
  subjectName: auditLog.subjectName,
  changes: auditLog.changes,
  ip: auditLog.ip,
  userAgent: auditLog.userAgent,
  tokenId: auditLog.tokenId,
  createdAt: auditLog.createdAt,
}

const instantOf = (text: string | undefined): Date | undefined => (text === undefined ? undefined : new Date(text))

/** Entries of the log, newest first. */
export const auditRows = (db: Executor, companyId: string, filter: AuditFilter, range: RowRange): Promise<AuditRow[]> =>
  db
    .select(columns)
    .from(auditLog)
    // An array is looked up one by one, where a plan for `in (select …)` may read the whole log.
    .where(sql`${auditLog.id} = any(array(${idsOf(companyId, filter, range)}))`)
    .orderBy(desc(auditLog.createdAt), desc(auditLog.position))

/** A page of the log. Page and total are read in ways of their own: it is the longest list of all. */
export async function readAudit(
  db: Executor,
  companyId: string,
  filter: AuditFilter,
  range: RowRange,
): Promise<{ readonly rows: readonly AuditRow[]; readonly total: number }> {
  const [rows, total] = await Promise.all([auditRows(db, companyId, filter, range), countAudit(db, companyId, filter)])
  return { rows, total }
}

/** Newest first. */
export const auditCollection = collectionReadBy({
  filters: {
    action: text(64),
    actor: uuid(),
    subject: text(64),
    from: instant(),
    to: instant(),
  },
  within: { subject_type: text(64), subject_id: text(64) },
  async read({ hub, companyId }, { action, actor, subject, from, to, subject_type, subject_id }, range) {
    const filter: AuditFilter = {
      action,
      actorId: actor,
      subject,
      subjectType: subject_type,
      subjectId: subject_id,
      from: instantOf(from),
      to: instantOf(to),
    }
    return readAudit(hub.database.db, companyId, filter, range)
  },
  response: auditEntryResponse,
  present: presentAuditEntry,
})

export async function findAuditEntry(db: Executor, companyId: string, id: string): Promise<AuditRow> {
  if (!isUuid(id)) throw notFound()
  const [row] = await db
    .select(columns)
    .from(auditLog)
    .where(and(eq(auditLog.companyId, companyId), eq(auditLog.id, id)))
  if (!row) throw notFound()
  return row
}
