// What the audit log shows of a change: the fields that differ, never a token, hash, secret or password (decision
// G-164).
import type { AuditChanges } from '../platform/db/schema-identity.ts'

const SECRET_NAME = /token|hash|secret|password|license_key/i

/** What changed between two records, by field; secrets are masked by name. */
export function changesBetween(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): AuditChanges {
  const changes: Record<string, { old: unknown; new: unknown }> = {}
  for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, fresh] = [before[field] ?? null, after[field] ?? null]
    if (old === fresh || JSON.stringify(old) === JSON.stringify(fresh)) continue
    changes[field] = SECRET_NAME.test(field) ? { old: '(hidden)', new: '(hidden)' } : { old, new: fresh }
  }
  return changes
}
