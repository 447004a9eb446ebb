// Runs as the API answers them (decisions G-125, G-183; resources.md §6).
import { Type } from '@sinclair/typebox'
import { fieldDiff, slaStates } from '../approvals/ticket-response.ts'
import { shortRun } from '../manifest-runs/run-list.ts'
import { oneOf } from '../platform/http/request-schema.ts'
import {
  amount,
  id,
  listed,
  named,
  nullable,
  reference,
  string,
  time,
  wordOf,
} from '../platform/http/response-schema.ts'

export const attachmentResponse = named('IacAttachment', {
  id: id(),
  file_id: id(),
  name: string(),
  size: amount(),
  sha256: string(),
})

const planned = {
  path: string(),
  kind: string(),
  company: string(),
  name: string(),
  action: wordOf(['create', 'update', 'delete', 'none']),
  adopts: Type.Boolean(),
  diff: listed(fieldDiff),
  approvals: Type.Object({ required: amount(), given: amount() }),
  status: wordOf(['planned', 'applied', 'skipped', 'failed']),
  error: nullable(string()),
  requires: string(),
  forbidden: Type.Boolean(),
  resource_id: nullable(id()),
  base_version: nullable(Type.Integer()),
}

const runError = named('IacError', { path: string(), line: nullable(Type.Integer()), message: string() })

const approvalStep = named('IacApprovalStep', {
  flow: string(),
  step: string(),
  ticket: id(),
  item_id: id(),
  sla_due_at: nullable(time()),
  sla_state: nullable(oneOf(slaStates)),
  decision: nullable(string()),
  decided_by: nullable(reference),
  decided_at: nullable(time()),
})

const whole = {
  ...shortRun,
  description: nullable(string()),
  files: listed(named('IacFile', { path: string(), contents: string(), sha256: string() })),
  attachments: listed(attachmentResponse),
  items: listed(named('IacItem', { id: id(), ...planned })),
  approval_timeline: listed(approvalStep),
  errors: listed(runError),
  /** The paths of manifests that were judged but not tried out: the plan has too many parts. */
  untried: listed(string()),
  plan_stale: Type.Boolean(),
}
export const runResponse = named('IacRun', whole)

const { id: _id, ...withoutId } = whole
/** A run that is not stored: it has no id. */
export const validatedRun = named('IacValidatedRun', {
  ...withoutId,
  items: listed(named('IacPlannedItem', planned)),
})

export const timelineTypes = [
  'submitted',
  'planned',
  'ticket_opened',
  'decided',
  'delegated',
  'escalated',
  'expired',
  'queued',
  'item_applied',
  'item_failed',
  'cancelled',
  'finished',
] as const

export const timelineEntry = named('IacTimelineEntry', {
  at: time(),
  type: oneOf(timelineTypes),
  flow: nullable(string()),
  step: nullable(string()),
  ticket: nullable(id()),
  item_id: nullable(id()),
  actor: nullable(reference),
  text: string(),
})

export const kindResponse = named('IacKind', {
  kind: string(),
  title: string(),
  permission_view: string(),
  permission_manage: string(),
  count: amount(),
  drifted: amount(),
  depends_on: listed(string()),
  /** Where the JSON Schema of its manifests is. */
  schema: string(),
})

export const exportedManifest = named('IacManifest', { path: string(), contents: string() })
