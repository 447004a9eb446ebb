// Whether who applies a run needs the permissions that the API would ask for (resources.md R-066): a setting, which a
// company may have of its own.
import type { Hub } from '../hub-context.ts'

/** Whether applying needs the permission that the API would ask for, beside iac.apply. */
export const isKindPermissionNeeded = async (hub: Hub, companyId: string): Promise<boolean> =>
  (await hub.state.valueIn(hub.database.db, companyId, 'iac.require_kind_permissions')) === true
