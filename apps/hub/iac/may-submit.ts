// Whether and how often a caller may submit manifests (resources.md R-066).
import { ApiError, tooManyRequests } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import type { RouteContext } from '../platform/http/route.ts'

/** Throws 403 where the company takes no YAML. */
export async function refuseDisabledUpload({ hub, companyId }: RouteContext): Promise<void> {
  const isOn = await hub.state.valueIn(hub.database.db, companyId, 'iac.yaml_upload_enabled')
  if (isOn === false)
    throw new ApiError(403, 'forbidden', words('iac_upload_disabled'), { reason: 'iac_upload_disabled' })
}

/** Counts a submission of a token, on top of the general limit (decision G-130). Throws 429. */
export function countSubmission({ hub, caller }: RouteContext): void {
  const limit = hub.state.valueOf('iac.submissions_per_minute')
  const taken = hub.requestWindows.take(`iac ${caller.credentialId}`, limit)
  if (!taken.allowed) throw tooManyRequests(taken.retryAfterSeconds)
}
