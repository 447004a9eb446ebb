// The life of a security finding: what each event of the matcher makes of it (document 3 "Finding status"; decisions
// G-153, G-154, G-169, G-170, G-194). Whether a finding is gone, and why: core/matching/finding-changes.ts.
import type { FindingColumns, ResolvedReason } from '../matching/finding-event.ts'
import { type Rating, rate } from './finding-rating.ts'

type FindingStatus = 'open' | 'resolved' | 'accepted' | 'false_positive'

/** An exception that is approved and has not ended. */
export type RunningException = { readonly id: string; readonly type: 'accepted' | 'false_positive' }

/** What the reference data say of a vulnerability that decides its priority. */
export type VulnerabilityReference = {
  readonly kev: boolean
  readonly kevDueDate: string | null
  readonly epss: number | null
}

const NO_REFERENCE: VulnerabilityReference = { kev: false, kevDueDate: null, epss: null }

export type Finding = VulnerabilityReference &
  Rating & {
    readonly id: string
    readonly companyId: string
    readonly serverId: string | null
    readonly hostId: string
    readonly findingKey: string
    readonly columns: FindingColumns
    readonly status: FindingStatus
    /** The exception that gave it its status, whether it still runs or not; kept while the finding is resolved. */
    readonly exceptionId: string | null
    readonly firstSeenAtMs: number
    readonly lastSeenAtMs: number
    readonly reopenedAtMs: number | null
    readonly resolvedAtMs: number | null
    readonly resolvedReason: ResolvedReason | null
    /** What people were told of its term. */
    readonly slaTold: string | null
    readonly lastEventSeq: number
    readonly dbVersion: number
  }

type EventCommon = {
  readonly companyId: string
  readonly serverId: string | null
  readonly hostId: string
  readonly findingKey: string
  readonly seq: number
  readonly occurredAtMs: number
  readonly dbVersion: number
}
export type SeenEvent = EventCommon & {
  readonly type: 'seen'
  readonly columns: FindingColumns
  readonly firstSeenAtMs: number
}
export type ResolvedEvent = EventCommon & {
  readonly type: 'resolved'
  readonly resolvedAtMs: number
  readonly resolvedReason: ResolvedReason
}

type FindingContext = {
  readonly newId: string
  readonly reference: VulnerabilityReference | null
  /** The exception that covers the finding now: its own, or for a new one that of the same finding on its server. */
  readonly exception: RunningException | null
}

function rated(finding: Omit<Finding, keyof Rating>, before: Finding | null): Finding {
  const { columns } = finding
  const rating = rate({
    cvssScore: columns.cvss_score ?? null,
    severityLabel: columns.severity_label,
    minor: columns.minor,
    fixStatus: columns.fix_status,
    kev: finding.kev,
    firstSeenAtMs: finding.firstSeenAtMs,
    reopenedAtMs: finding.reopenedAtMs,
  })
  const hasSameTerm = before !== null && before.slaDueAtMs === rating.slaDueAtMs
  return { ...finding, ...rating, slaTold: hasSameTerm ? finding.slaTold : null }
}

function see(before: Finding | null, event: SeenEvent, { newId, reference, exception }: FindingContext): Finding {
  const isReopened = before?.status === 'resolved'
  const isOpening = before === null || isReopened
  const { kev, kevDueDate, epss } = reference ?? NO_REFERENCE
  return rated(
    {
      id: before?.id ?? newId,
      companyId: event.companyId,
      serverId: event.serverId,
      hostId: event.hostId,
      findingKey: event.findingKey,
      columns: event.columns,
      kev,
      kevDueDate,
      epss,
      status: isOpening ? (exception?.type ?? 'open') : before.status,
      exceptionId: isOpening ? (exception?.id ?? null) : before.exceptionId,
      firstSeenAtMs: Math.min(before?.firstSeenAtMs ?? event.firstSeenAtMs, event.firstSeenAtMs),
      lastSeenAtMs: Math.max(before?.lastSeenAtMs ?? event.occurredAtMs, event.occurredAtMs),
      reopenedAtMs: isReopened ? event.occurredAtMs : (before?.reopenedAtMs ?? null),
      resolvedAtMs: null,
      resolvedReason: null,
      slaTold: isReopened ? null : (before?.slaTold ?? null),
      lastEventSeq: event.seq,
      dbVersion: event.dbVersion,
    },
    before,
  )
}

function resolve(before: Finding, event: ResolvedEvent): Finding {
  if (before.status === 'resolved') return { ...before, lastEventSeq: event.seq }
  return {
    ...before,
    status: 'resolved',
    resolvedAtMs: event.resolvedAtMs,
    resolvedReason: event.resolvedReason,
    lastSeenAtMs: Math.max(before.lastSeenAtMs, event.occurredAtMs),
    lastEventSeq: event.seq,
    dbVersion: event.dbVersion,
  }
}

/** The finding after an event, the same object when the event changes nothing, null when there still is none. */
export function applyFindingEvent(
  before: Finding | null,
  event: SeenEvent | ResolvedEvent,
  context: FindingContext,
): Finding | null {
  if (before !== null && event.seq <= before.lastEventSeq) return before
  if (event.type === 'seen') return see(before, event, context)
  return before === null ? null : resolve(before, event)
}
