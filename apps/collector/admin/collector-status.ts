// The state of the collector that GET /internal/v1/status shows (decision G-131), as the worker gathers it.
import type { RejectedRule } from '../../../core/alerting/rules/rule.ts'

/** Of every feed: its cursor, its last pull (0 = never) and why the last one failed. */
export type FeedStatus = {
  readonly since: number
  readonly lastSyncAtMs: number
  readonly lastSyncError: string | null
}
type RulesStatus = FeedStatus & {
  readonly loaded: number
  readonly invalid: number
  readonly pending: number
  readonly firing: number
  readonly noData: number
  readonly flapping: number
  readonly invalidRules: readonly RejectedRule[]
}
type SilencesStatus = FeedStatus & { readonly active: number; readonly loaded: number }
export type ChecksStatus = FeedStatus & {
  readonly loaded: number
  readonly invalid: number
  readonly disabled: number
  readonly servers: number
  readonly truncated: number
}
/** Totals of the last retention sweep. */
export type RetentionStatus = {
  readonly atMs: number
  readonly companies: number
  readonly skipped: number
  readonly daysDeleted: number
  readonly errors: number
  readonly dryRun: boolean
  readonly durationSeconds: number
}
export type CollectorStatus = {
  readonly version: string
  readonly role: 'ingest' | 'worker' | 'all'
  readonly startedAtMs: number
  readonly busLag: number
  readonly outboxDepth: number
  readonly outboxSetAside: number
  readonly agentsOnline: number
  readonly rules: RulesStatus | null
  readonly silences: SilencesStatus | null
  readonly checks: ChecksStatus | null
  /** Null before the first sweep. */
  readonly retention: RetentionStatus | null
}
