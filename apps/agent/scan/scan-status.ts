// How scanning stands, for `agent status` (MAT-045): from what the scanner keeps, so that a report of the command line
// is seen too.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import { SCAN_HOST_FILE } from '../config.ts'
import { SCAN_STATE_FILE, scanStateOf } from './scan-store.ts'

/** The member `scan` of the status; null for an agent that has nothing to do with a matcher. */
export function readScanStatus(stateDir: string, isConfigured: boolean) {
  const document = readObject(join(stateDir, SCAN_STATE_FILE))
  if (document === null && !isConfigured) return null
  const state = scanStateOf(document ?? { reason: 'not_enrolled' })
  const { host_id } = readObject(join(stateDir, SCAN_HOST_FILE)) ?? {}
  return {
    host_id: typeof host_id === 'string' && host_id !== '' ? host_id : null,
    last_report_ms: state.lastReportAtMs,
    match_status: state.matchStatus,
    open_findings: state.openFindings,
    next_ms: state.retryAtMs ?? state.nextAtMs,
    reason: state.reason,
    last_error: state.lastError,
  }
}

function readObject(path: string): Unchecked | null {
  try {
    const parsed: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return isObject(parsed) ? parsed : null
  } catch {
    return null
  }
}
