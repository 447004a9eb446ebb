// Who did what: entries of the audit log, newest first.

import { and, eq, or, sql } from 'drizzle-orm'
import { type AuditRow as Entry, readAudit } from '../../audit/audit-list.ts'
import { users } from '../../platform/db/schema-identity.ts'
import { parseFilter } from '../address/filter-language.ts'
import { sitePages } from '../address/site-map.ts'
import type { AuditRow, AuditView } from './administration-pages.ts'
import { askedOffset, type View, type ViewContext } from './view.ts'

const WINDOW = 60
/** Of nobody: a filter by somebody whom the company does not have. */
const NOBODY = '00000000-0000-0000-0000-000000000000'

const toRow = (entry: Entry): AuditRow => ({
  ...{ id: entry.id, atMs: entry.createdAt.getTime(), actorType: entry.actorType, actor: entry.actorName },
  ...{ action: entry.action, subjectType: entry.subjectType, ip: entry.ip },
  subject: entry.subjectName ?? entry.subjectId,
  diff: Object.entries(entry.changes).map(([field, change]) => ({ field, old: change.old, new: change.new })),
})

/** Somebody of the company by name, address or id. */
async function actorOf({ hub, companyId }: ViewContext, text: string): Promise<string> {
  const [row] = await hub.database.db
    .select({ id: users.id })
    .from(users)
    .where(
      and(
        eq(users.companyId, companyId),
        or(
          sql`lower(${users.name}) = lower(${text})`,
          sql`lower(${users.email}) = lower(${text})`,
          sql`${users.id}::text = ${text}`,
        ),
      ),
    )
    .limit(1)
  return row?.id ?? NOBODY
}

/** An instant of the address, of a year of four digits as the database reads it. */
function instantOf(text: string): Date | undefined {
  const at = new Date(text)
  const isUsable = text !== '' && !Number.isNaN(at.getTime()) && /^\d{4}-/.test(at.toISOString())
  return isUsable ? at : undefined
}

export const auditView: View<AuditView> = {
  permissions: ['audit.view'],
  params: sitePages.audit.takes,
  async make(context) {
    const { hub, companyId, param } = context
    const terms = parseFilter(param('q')).filter(({ isExcluded }) => !isExcluded)
    const termOf = (key: string): string | undefined => terms.find(term => term.key === key)?.value
    // A word alone is an action or a kind of subject, as they are written in the rows.
    const word = terms.find(({ key }) => key === null)?.value
    const actor = termOf('actor')
    const isAction = word?.includes('.') ?? false
    const offset = askedOffset(param('offset'))
    const { rows, total } = await readAudit(
      hub.database.db,
      companyId,
      {
        action: termOf('action') ?? (isAction ? word : undefined),
        subject: termOf('subject') ?? (isAction ? undefined : word),
        actorId: actor === undefined ? undefined : await actorOf(context, actor),
        from: instantOf(param('from')),
        to: instantOf(param('to')),
      },
      { limit: WINDOW, offset },
    )
    return { total, offset, rows: rows.map(toRow) }
  },
}
