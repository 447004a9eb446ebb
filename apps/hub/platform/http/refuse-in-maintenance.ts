// Maintenance (decision R-068): what changes something is refused, whether it comes over the API or from a form.
import type { Hub } from '../../hub-context.ts'
import { ApiError } from './api-error.ts'
import { type Language, words } from './api-texts.ts'

const RETRY_SECONDS = 60

/** Throws 503 while people may change nothing. Super administrators may. */
export function refuseInMaintenance({ state, now }: Hub, isSuperAdmin: boolean, language: Language): void {
  const { mode, messageEn, messageVi, untilMs } = state.maintenance
  if (mode === 'off' || isSuperAdmin) return
  const left = untilMs === null ? RETRY_SECONDS : Math.max(1, Math.ceil((untilMs - now()) / 1000))
  const message = (language === 'vi' ? (messageVi ?? messageEn) : (messageEn ?? messageVi)) ?? ''
  throw new ApiError(503, 'unavailable', words('maintenance', { message }), {
    reason: 'maintenance_mode',
    headers: { 'Retry-After': String(left) },
  })
}
