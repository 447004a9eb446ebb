// The events of security that people are told of (document 3, Events; decision G-162).
import type { Severity } from '../alerting/rules/rule.ts'

export const securityEventTypes = [
  'security.finding.p1_opened',
  'security.digest.daily',
  'security.sla.due_soon',
  'security.sla.overdue',
  'security.exception.requested',
  'security.exception.decided',
  'security.exception.expiring',
  'security.exception.expired',
  'security.server.scan_stale',
  'security.db.stale',
  'security.secret.high_opened',
  'security.pii.bulk_found',
  'security.content.scope_changed',
] as const
export type SecurityEventType = (typeof securityEventTypes)[number]

/** How loud each is, for the thresholds that people and webhooks set. */
export const securitySeverities: Readonly<Record<SecurityEventType, Severity>> = {
  'security.finding.p1_opened': 'critical',
  'security.digest.daily': 'info',
  'security.sla.due_soon': 'warning',
  'security.sla.overdue': 'critical',
  'security.exception.requested': 'warning',
  'security.exception.decided': 'info',
  'security.exception.expiring': 'warning',
  'security.exception.expired': 'warning',
  'security.server.scan_stale': 'warning',
  'security.db.stale': 'warning',
  'security.secret.high_opened': 'critical',
  'security.pii.bulk_found': 'critical',
  'security.content.scope_changed': 'warning',
}

/** The permission that a person needs to be told of it. */
export function permissionToHear(type: SecurityEventType): string {
  if (type.startsWith('security.secret.')) return 'security.secrets.view'
  return type.startsWith('security.pii.') ? 'security.pii.view' : 'security.view'
}
