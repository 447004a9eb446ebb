// Reading the audit log (decision G-164).

import { Type } from '@sinclair/typebox'
import { and, count, desc, eq, gte, inArray, lte, or } from 'drizzle-orm'
import type { Executor } from '../db/connect.ts'
import { type AuditChanges, auditLog } from '../db/schema-identity.ts'
import { id, named, nullable, string, time } from '../http/answer.ts'
import { notFound } from '../http/api-error.ts'
import type { Page } from '../http/paging.ts'
import { isUuid } from '../http/schema.ts'

export type AuditRow = typeof auditLog.$inferSelect

export const auditEntryAnswer = named('AuditEntry', {
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

export type AuditFilter = {
  readonly action?: string | undefined
  readonly actorId?: string | undefined
  readonly subjectType?: string | undefined
  readonly subjectId?: string | undefined
  /** The type or the id of a subject. */
  readonly subject?: string | undefined
  readonly from?: Date | undefined
  readonly to?: Date | undefined
}

/** Newest first. */
export async function listAudit(db: Executor, companyId: string, filter: AuditFilter, page: Page) {
  const where = and(
    eq(auditLog.companyId, companyId),
    filter.action ? eq(auditLog.action, filter.action) : undefined,
    filter.actorId ? eq(auditLog.actorId, filter.actorId) : undefined,
    filter.subjectType ? eq(auditLog.subjectType, filter.subjectType) : undefined,
    filter.subjectId ? eq(auditLog.subjectId, filter.subjectId) : undefined,
    filter.subject ? or(eq(auditLog.subjectType, filter.subject), eq(auditLog.subjectId, filter.subject)) : undefined,
    filter.from ? gte(auditLog.createdAt, filter.from) : undefined,
    filter.to ? lte(auditLog.createdAt, filter.to) : undefined,
  )
  const order = [desc(auditLog.createdAt), desc(auditLog.id)]
  // What a page skips is counted off in an index; only its own rows are fetched.
  const ids = db
    .select({ id: auditLog.id })
    .from(auditLog)
    .where(where)
    .orderBy(...order)
    .limit(page.limit)
    .offset(page.offset)
  const [rows, totals] = await Promise.all([
    db
      .select()
      .from(auditLog)
      .where(inArray(auditLog.id, ids))
      .orderBy(...order),
    db.select({ total: count() }).from(auditLog).where(where),
  ])
  return { rows, total: totals[0]?.total ?? 0 }
}

export async function findAuditEntry(db: Executor, companyId: string, id: string): Promise<AuditRow> {
  if (!isUuid(id)) throw notFound()
  const [row] = await db
    .select()
    .from(auditLog)
    .where(and(eq(auditLog.companyId, companyId), eq(auditLog.id, id)))
  if (!row) throw notFound()
  return row
}
