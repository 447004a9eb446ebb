// What a caller is told of an error that nobody expected: 500 or 503, and never a stack, a path or SQL, which the log
// has.
import type { Logger } from 'pino'
import { sqlState } from '../db/connect.ts'
import { ApiError } from './api-error.ts'
import { words } from './api-texts.ts'

/** Lost connections, locks, deadlocks and shutdowns are temporary, so the response asks the caller to try again. */
function isTransient(error: unknown): boolean {
  const state = sqlState(error)
  if (state !== null) return /^(08|40|53|55|57)/.test(state)
  // The library of queries wraps what the connection tells.
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++)
    if (/^(CONNECT|ECONN|CONNECTION_)/.test(String((at as { code?: unknown }).code ?? ''))) return true
  return false
}

/**
 * An expected error stays as it is, a transient database error becomes 503, and any other error is logged and becomes a
 * 500 without details.
 */
export function toApiError(error: unknown, log: Logger): ApiError {
  if (error instanceof ApiError) return error
  if (isTransient(error)) {
    log.error({ err: error }, 'the database is not available')
    return new ApiError(503, 'unavailable', words('unavailable'), { headers: { 'Retry-After': '5' } })
  }
  log.error({ err: error }, 'unexpected error')
  return new ApiError(500, 'server_error', words('server_error'))
}
