// What people are to be told of security, written in the transaction that made it so, and told after it.
import { sql } from 'drizzle-orm'
import type { SecurityEventType } from '../../../../core/lifecycle/security-event-severity.ts'
import type { Hub } from '../../hub-context.ts'
import type { Tx } from '../../platform/db/transaction.ts'

type Notice = {
  readonly companyId: string
  readonly type: SecurityEventType
  readonly exceptionId?: string
}

export async function addNotice(hub: Hub, tx: Tx, notice: Notice): Promise<void> {
  const { companyId, type, exceptionId = null } = notice
  await tx.db.execute(sql`
    insert into security_notices (company_id, type, exception_id, created_at)
    values (${companyId}, ${type}, ${exceptionId}, ${new Date(hub.now()).toISOString()})`)
}
