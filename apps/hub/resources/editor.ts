// Who changes resources: the caller of a request, or the hub itself by the clock, for a manifest or an agent's report.
import { type AuditEntry, auditByHub, auditMany, auditRequest } from '../audit/audit.ts'
import type { Hub } from '../hub-context.ts'
import type { AuditChanges } from '../platform/db/schema-identity.ts'
import type { Tx } from '../platform/db/transaction.ts'
import type { Language } from '../platform/http/api-texts.ts'
import type { RouteContext } from '../platform/http/route.ts'

type Subject = AuditEntry['subject']
type Changed = { readonly subject: Subject; readonly changes: AuditChanges }

export type Editor = {
  readonly hub: Hub
  readonly companyId: string
  /** Null for the hub itself. */
  readonly userId: string | null
  readonly language: Language
  readonly mayView: (permission: string) => boolean
  /** Writes the entry of the audit log, in the transaction of the change. */
  readonly record: (tx: Tx, action: string, subject: Subject, changes?: AuditChanges) => Promise<void>
  readonly recordMany: (tx: Tx, action: string, changed: readonly Changed[]) => Promise<void>
}

export const editorOf = (context: RouteContext): Editor => ({
  hub: context.hub,
  companyId: context.companyId,
  userId: context.caller.user.id,
  language: context.language,
  mayView: permission => context.caller.permissions.has(permission),
  record: (tx, action, subject, changes = {}) => auditRequest(tx, context, action, subject, changes),
  recordMany: (tx, action, changed) => auditMany(tx, context, action, changed),
})

export const hubEditor = (hub: Hub, companyId: string): Editor => ({
  hub,
  companyId,
  userId: null,
  language: 'en',
  mayView: () => true,
  record: (tx, action, subject, changes = {}) => auditByHub(tx, companyId, action, subject, changes),
  recordMany: async (tx, action, changed) => {
    for (const { subject, changes } of changed) await auditByHub(tx, companyId, action, subject, changes)
  },
})
