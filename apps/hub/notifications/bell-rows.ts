// Rows of the bell: what is left out because its person or company was deleted meanwhile.
import { sql } from 'drizzle-orm'
import { fixedStatement } from '../platform/db/fixed-statement.ts'
import { statementOfRows } from '../platform/db/statement-of-rows.ts'
import { type Tx, together, uuidList } from '../platform/db/transaction.ts'

const ROWS_AT_ONCE = 2000

/** A row of the bell's notifications before it is inserted. */
export type BellRow = {
  readonly id: string
  readonly user_id: string
  readonly company_id: string
  readonly type: string
  readonly title: string
  readonly body: string
  readonly link: string
  readonly created_at: string
  /** The alert that it is about; missing: it is about something else. */
  readonly alert_id?: string
}

const insertBellRows = statementOfRows(
  {
    id: 'uuid',
    user_id: 'uuid',
    company_id: 'uuid',
    type: 'text',
    title: 'text',
    body: 'text',
    link: 'text',
    created_at: 'timestamptz',
    alert_id: 'uuid',
  },
  rows => sql`
    insert into notifications (id, user_id, company_id, type, title, body, link, created_at, alert_id)
    select x.id, x.user_id, x.company_id, x.type, x.title, x.body, x.link, x.created_at, x.alert_id from ${rows}`,
)

const lockOf = (table: 'companies' | 'users') =>
  fixedStatement<'ids'>(
    value => sql`
      select id from ${sql.identifier(table)} where id = any(${value('ids')}::uuid[]) order by id for key share`,
  )
const LOCK_COMPANIES = lockOf('companies')
const LOCK_USERS = lockOf('users')

/** Locks rows, so that none is deleted before the transaction has ended. Returns the ids of those that exist. */
async function lockExisting(tx: Tx, lock: typeof LOCK_USERS, ids: Iterable<string>): Promise<ReadonlySet<string>> {
  const rows = await tx.db.execute<{ id: string }>(lock({ ids: uuidList(ids) }))
  return new Set(rows.map(row => row.id))
}

/**
 * Writes rows of the bell; those for a person or of a company that was deleted meanwhile are left out. The table has no
 * foreign keys: both are locked here once, and not looked up again for every row (G-102).
 */
export async function addBellRows(tx: Tx, rows: readonly BellRow[]): Promise<void> {
  if (rows.length === 0) return
  const [companyIds, userIds] = await together([
    lockExisting(tx, LOCK_COMPANIES, new Set(rows.map(row => row.company_id))),
    lockExisting(tx, LOCK_USERS, new Set(rows.map(row => row.user_id))),
  ])
  const kept = rows.filter(row => companyIds.has(row.company_id) && userIds.has(row.user_id))
  for (let at = 0; at < kept.length; at += ROWS_AT_ONCE)
    await tx.db.execute(insertBellRows(kept.slice(at, at + ROWS_AT_ONCE)))
}
