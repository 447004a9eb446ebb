// The audit log: who did what to what, append-only, never a token, hash, secret or password (decision G-164).
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { type AuditChanges, auditLog } from '../platform/db/schema-identity.ts'
import type { Tx } from '../platform/db/transaction.ts'
import type { RouteContext } from '../platform/http/route.ts'

type Actor = {
  readonly type: 'user' | 'collector' | 'matcher' | 'system'
  readonly id: string | null
  readonly name: string | null
}

export type AuditEntry = {
  readonly companyId: string | null
  readonly actor: Actor
  readonly action: string
  readonly subject: { readonly type: string; readonly id: string | null; readonly name: string | null }
  readonly changes?: AuditChanges
  readonly ip?: string | null
  readonly userAgent?: string | null
  readonly tokenId?: string | null
}

const SECRET_NAME = /token|hash|secret|password|license_key/i

/** What changed between two records, by field; secrets are masked by name. */
export function changesBetween(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): AuditChanges {
  const changes: Record<string, { old: unknown; new: unknown }> = {}
  for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, fresh] = [before[field] ?? null, after[field] ?? null]
    if (JSON.stringify(old) === JSON.stringify(fresh)) continue
    changes[field] = SECRET_NAME.test(field) ? { old: '(hidden)', new: '(hidden)' } : { old, new: fresh }
  }
  return changes
}

const toRow = (entry: AuditEntry): typeof auditLog.$inferInsert => ({
  id: randomUUID(),
  companyId: entry.companyId,
  actorType: entry.actor.type,
  actorId: entry.actor.id,
  actorName: entry.actor.name,
  action: entry.action,
  subjectType: entry.subject.type,
  subjectId: entry.subject.id,
  subjectName: entry.subject.name,
  changes: entry.changes ?? {},
  ip: entry.ip ?? null,
  userAgent: entry.userAgent ?? null,
  tokenId: entry.tokenId ?? null,
})

/** Writes an entry in the transaction of the act, so that neither exists without the other. */
export async function writeAudit(tx: Tx, entry: AuditEntry): Promise<void> {
  await tx.db.insert(auditLog).values(toRow(entry))
}

/** The hub itself: its commands, and what it does by the clock. */
export const HUB_ACTOR: Actor = { type: 'system', id: null, name: 'hub' }

/** An entry for what the hub itself did. */
export const auditByHub = (
  tx: Tx,
  companyId: string | null,
  action: string,
  subject: AuditEntry['subject'],
  changes: AuditChanges = {},
): Promise<void> => writeAudit(tx, { companyId, actor: HUB_ACTOR, action, subject, changes })

const entryOf = (
  context: RouteContext,
  action: string,
  subject: AuditEntry['subject'],
  changes: AuditChanges,
  companyId: string,
): AuditEntry => ({
  companyId,
  actor: {
    type: context.caller.user.kind === 'person' ? 'user' : context.caller.user.kind,
    id: context.caller.user.id,
    name: context.caller.user.name,
  },
  action,
  subject,
  changes: { ...changes, ...context.auditNote },
  ip: context.ip,
  userAgent: context.userAgent,
  tokenId: context.caller.kind === 'token' ? context.caller.credentialId : null,
})

/** An entry for what the caller of a request did. */
export const auditRequest = (
  tx: Tx,
  context: RouteContext,
  action: string,
  subject: AuditEntry['subject'],
  changes: AuditChanges = {},
  companyId: string = context.companyId,
): Promise<void> => writeAudit(tx, entryOf(context, action, subject, changes, companyId))

/** An entry for each of many subjects that one request changed, with one statement. */
export async function auditMany(
  tx: Tx,
  context: RouteContext,
  action: string,
  changed: readonly { readonly subject: AuditEntry['subject']; readonly changes: AuditChanges }[],
): Promise<void> {
  if (changed.length === 0) return
  const { actor, ip, userAgent, tokenId } = entryOf(context, action, changed[0]!.subject, {}, context.companyId)
  const records = changed.map(({ subject, changes }) => ({
    id: randomUUID(),
    subject_type: subject.type,
    subject_id: subject.id,
    subject_name: subject.name,
    changes: { ...changes, ...context.auditNote },
  }))
  await tx.db.execute(sql`
    insert into audit_log (id, company_id, actor_type, actor_id, actor_name, action, subject_type, subject_id,
      subject_name, changes, ip, user_agent, token_id)
    select x.id, ${context.companyId}::uuid, ${actor.type}::text, ${actor.id}::uuid, ${actor.name}::text, ${action}::text,
      x.subject_type, x.subject_id, x.subject_name, x.changes, ${ip ?? null}::text, ${userAgent ?? null}::text,
      ${tokenId ?? null}::uuid
    from jsonb_to_recordset(${JSON.stringify(records)}::jsonb) as x (id uuid, subject_type text, subject_id text,
      subject_name text, changes jsonb)`)
}
