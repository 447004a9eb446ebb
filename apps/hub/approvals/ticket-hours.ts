// How long a ticket may wait where its workflow says nothing: a setting, which a company may have of its own.
import type { Hub } from '../hub-context.ts'

const DEFAULT_HOURS = 168

export const ticketHours = async (hub: Hub, companyId: string): Promise<number> =>
  (await hub.state.valueIn(hub.database.db, companyId, 'approvals.expire_hours')) ?? DEFAULT_HOURS
