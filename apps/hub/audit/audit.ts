// The audit log: who did what to what, append-only (decision G-164). What of a change it shows, and never a secret:
// masked-changes.ts.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import type { AuditChanges } from '../platform/db/schema-identity.ts'
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

const INSERT = fixedStatement<'entries'>(
  value => sql`
    insert into audit_log (id, company_id, actor_type, actor_id, actor_name, action, subject_type, subject_id,
      subject_name, changes, ip, user_agent, token_id)
    select x.id, x.company_id, x.actor_type, x.actor_id, x.actor_name, x.action, x.subject_type, x.subject_id,
      x.subject_name, x.changes, x.ip, x.user_agent, x.token_id
    from jsonb_to_recordset(${value('entries')}::jsonb) as x (id uuid, company_id uuid, actor_type text, actor_id uuid,
      actor_name text, action text, subject_type text, subject_id text, subject_name text, changes jsonb, ip text,
      user_agent text, token_id uuid)`,
)

const toRecord = ({ actor, subject, ...entry }: AuditEntry) => ({
  id: randomUUID(),
  company_id: entry.companyId,
  actor_type: actor.type,
  actor_id: actor.id,
  actor_name: actor.name,
  action: entry.action,
  subject_type: subject.type,
  subject_id: subject.id,
  // A name that was cut off inside a character is none that JSON in the database can hold.
  subject_name: subject.name?.toWellFormed() ?? null,
  changes: entry.changes ?? {},
  ip: entry.ip ?? null,
  user_agent: entry.userAgent ?? null,
  token_id: entry.tokenId ?? null,
})

/** Writes entries in the transaction of the acts, with one statement, so that neither exists without the other. */
export async function writeAudits(tx: Tx, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length > 0) await tx.db.execute(INSERT({ entries: JSON.stringify(entries.map(toRecord)) }))
}

export const writeAudit = (tx: Tx, entry: AuditEntry): Promise<void> => writeAudits(tx, [entry])

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

/** The entry for what the caller of a request did. */
export const entryOf = (
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
export const auditMany = (
  tx: Tx,
  context: RouteContext,
  action: string,
  changed: readonly { readonly subject: AuditEntry['subject']; readonly changes: AuditChanges }[],
): Promise<void> =>
  writeAudits(
    tx,
    changed.map(({ subject, changes }) => entryOf(context, action, subject, changes, context.companyId)),
  )
