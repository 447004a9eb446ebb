// Who changes resources: the caller of a request, or the hub itself by the clock, for a manifest or an agent's report.
import { type AuditEntry, entryOf, HUB_ACTOR, writeAudits } from '../audit/audit.ts'
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
  /** The entry of the audit log for a change, for who writes those of several editors together. */
  readonly entry: (action: string, subject: Subject, changes: AuditChanges) => AuditEntry
  /** Writes the entry of the audit log, in the transaction of the change. */
  readonly record: (tx: Tx, action: string, subject: Subject, changes?: AuditChanges) => Promise<void>
  readonly recordMany: (tx: Tx, action: string, changed: readonly Changed[]) => Promise<void>
}

type Person = Pick<Editor, 'hub' | 'companyId' | 'userId' | 'language' | 'mayView' | 'entry'>

const editing = (person: Person): Editor => ({
  ...person,
  record: (tx, action, subject, changes = {}) => writeAudits(tx, [person.entry(action, subject, changes)]),
  recordMany: (tx, action, changed) =>
    writeAudits(
      tx,
      changed.map(({ subject, changes }) => person.entry(action, subject, changes)),
    ),
})

export const editorOf = (context: RouteContext): Editor =>
  editing({
    hub: context.hub,
    companyId: context.companyId,
    userId: context.caller.user.id,
    language: context.language,
    mayView: permission => context.caller.permissions.has(permission),
    entry: (action, subject, changes) => entryOf(context, action, subject, changes, context.companyId),
  })

export const hubEditor = (hub: Hub, companyId: string): Editor =>
  editing({
    hub,
    companyId,
    userId: null,
    language: 'en',
    mayView: () => true,
    entry: (action, subject, changes) => ({ companyId, actor: HUB_ACTOR, action, subject, changes }),
  })
