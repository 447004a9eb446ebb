// How severe messages of approvals are, which decides the channels by which people are told of them.
import type { Severity } from '../../../core/alerting/rules/rule.ts'
import type { ApprovalType } from './approval-texts.ts'

/** What somebody waits for reaches people by e-mail too, unless they chose otherwise. */
export const approvalSeverities: Readonly<Record<ApprovalType, Severity>> = {
  'approval.requested': 'warning',
  'approval.decided': 'info',
  'approval.expired': 'warning',
  'approval.due_soon': 'warning',
  'approval.overdue': 'warning',
  'approval.blocked': 'warning',
}
