// Maintenance (decision R-068): while the hub is read_only, people read and collectors report; nothing is changed.
import { Type } from '@sinclair/typebox'
import { and, eq, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import type { Executor } from '../platform/db/connect.ts'
import { users } from '../platform/db/schema-identity.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { instant, oneOf, optional, text } from '../platform/http/request-schema.ts'
import { named, nullable, reference, string, time, wordOf } from '../platform/http/response-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { tellHubs } from '../system-state/system-state.ts'

const modes = ['off', 'read_only'] as const
const TEXT_MAX = 1000

export const maintenanceBody = Type.Object({
  mode: oneOf(modes),
  message: optional(Type.Object({ en: optional(text(TEXT_MAX)), vi: optional(text(TEXT_MAX)) })),
  until: optional(instant()),
})
export const maintenanceResponse = named('Maintenance', {
  mode: wordOf(modes),
  message: nullable(Type.Object({ en: nullable(string()), vi: nullable(string()) })),
  until: nullable(time()),
  updated_by: nullable(reference),
  updated_at: nullable(time()),
})

type Row = {
  mode: string
  message_en: string | null
  message_vi: string | null
  until: string | null
  updated_at: string
  updated_by: { id: string; name: string } | null
}

const OFF = { mode: 'off', message: null, until: null, updated_by: null, updated_at: null }

/** The mode in force: one whose end has come is off. */
async function showMaintenance(db: Executor, nowMs: number) {
  const [row] = await db.execute<Row>(sql`
    select m.mode, m.message_en, m.message_vi, m.until, m.updated_at,
      case when u.id is not null then jsonb_build_object('id', u.id, 'name', u.name) end as updated_by
    from maintenance m left join users u on u.id = m.updated_by`)
  if (!row || (row.until !== null && Date.parse(row.until) <= nowMs)) return OFF
  const hasMessage = row.message_en !== null || row.message_vi !== null
  return {
    mode: row.mode,
    message: hasMessage ? { en: row.message_en, vi: row.message_vi } : null,
    until: row.until === null ? null : new Date(row.until),
    updated_by: row.updated_by,
    updated_at: new Date(row.updated_at),
  }
}

/** As a caller is shown it: who is of another company is not named to those who are no super administrators. */
export async function maintenanceOf({ hub, caller, companyId }: RouteContext) {
  const { db } = hub.database
  const shown = await showMaintenance(db, hub.now())
  if (shown.updated_by === null || caller.actsAsSuperAdmin) return shown
  const { id } = shown.updated_by
  const own = await db
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.id, id), eq(users.companyId, companyId)))
  return own.length > 0 ? shown : { ...shown, updated_by: null }
}

type Given = {
  readonly mode: (typeof modes)[number]
  readonly message?:
    | { readonly en?: string | null | undefined; readonly vi?: string | null | undefined }
    | null
    | undefined
  readonly until?: string | null | undefined
}

export async function setMaintenance(context: RouteContext, { mode, message, until }: Given): Promise<void> {
  const { hub, caller } = context
  if (until != null && Date.parse(until) <= hub.now()) throw invalidField('until', 'future')
  await inTransaction(hub.database.db, async tx => {
    const before = await showMaintenance(tx.db, hub.now())
    await tx.db.execute(sql`
      insert into maintenance (mode, message_en, message_vi, until, updated_by)
      values (${mode}, ${message?.en ?? null}, ${message?.vi ?? null}, ${until ?? null}, ${caller.user.id})
      on conflict (id) do update set mode = excluded.mode, message_en = excluded.message_en,
        message_vi = excluded.message_vi, until = excluded.until, updated_by = excluded.updated_by, updated_at = now()`)
    const after = await showMaintenance(tx.db, hub.now())
    const told = ({ mode: kind, message: words, until: end }: typeof before) => ({
      mode: kind,
      message: words,
      until: end,
    })
    const changes = changesBetween(told(before), told(after))
    await auditRequest(tx, context, 'maintenance.update', { type: 'maintenance', id: null, name: mode }, changes)
    await tellHubs(tx)
  })
  await hub.state.refresh()
}
