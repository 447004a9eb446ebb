// How long a ticket may wait where its workflow says nothing: a setting, which a company may have of its own.
import type { Hub } from '../hub-context.ts'
import type { Executor } from '../platform/db/connect.ts'
import { defaultOf } from '../system-state/setting-definitions.ts'

export const ticketHours = async (hub: Hub, db: Executor, companyId: string): Promise<number> =>
  (await hub.state.valueIn(db, companyId, 'approvals.expire_hours')) ?? defaultOf('approvals.expire_hours')
