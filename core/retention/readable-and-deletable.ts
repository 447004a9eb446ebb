// What a company may read, write and keep of its samples under its plan (document 3 "Retention semantics", decisions
// G-118, G-137 and G-138). Whatever the plan, raw samples live 30 days and cells 400 days: the TTL of the tables in
// sql/samples/, and `rawRetentionDays` of limits.ts. plan-change.ts decides, for the hub, when a grace begins.
import { DAY_MS } from '../limits.ts'

const RETENTION_DAYS_MAX = 3650

/** The retention part of a company's settings as the hub sent it; null is unset. */
export type RetentionSettings = {
  readonly retentionDays: number | null
  readonly previousDays: number | null
  readonly graceUntilMs: number | null
}

/** The settings without out-of-domain values and without an expired grace. */
type EffectiveRetention = {
  readonly days: number
  /** Days that the company could read before; Infinity when that was unlimited; null without a running grace. */
  readonly previousDays: number | null
  readonly graceUntilMs: number
}

const inDomain = (days: number | null): days is number =>
  days !== null && Number.isInteger(days) && days >= 1 && days <= RETENTION_DAYS_MAX

function effective(settings: RetentionSettings | null, nowMs: number): EffectiveRetention | null {
  if (settings === null || !inDomain(settings.retentionDays)) return null
  const { retentionDays: days, previousDays, graceUntilMs } = settings
  if (graceUntilMs === null || graceUntilMs <= nowMs) return { days, previousDays: null, graceUntilMs: 0 }
  return { days, previousDays: inDomain(previousDays) ? previousDays : Number.POSITIVE_INFINITY, graceUntilMs }
}

/** The days of a company's plan, null without a limit. The write-locked zone and the retention memory use these. */
export const planDays = (settings: RetentionSettings | null): number | null =>
  settings !== null && inDomain(settings.retentionDays) ? settings.retentionDays : null

export type ReadWindow = {
  /** Older samples cannot be read; -Infinity without a limit. */
  readonly readFromMs: number
  /** The retention members of the series response; absent ones are left out there. */
  readonly retentionDays?: number
  readonly previousDays?: number
  readonly graceUntilMs?: number
  readonly lockedBeforeMs?: number
}

/**
 * The read limit at `nowMs`. `settings` is null for a company whose settings the hub never sent; its reads are not
 * limited.
 */
export function readWindow(settings: RetentionSettings | null, nowMs: number): ReadWindow {
  const retention = effective(settings, nowMs)
  if (retention === null) return { readFromMs: Number.NEGATIVE_INFINITY }
  const { days, previousDays, graceUntilMs } = retention
  if (previousDays === null) return { readFromMs: nowMs - days * DAY_MS, retentionDays: days }
  return {
    readFromMs: nowMs - Math.max(days, previousDays) * DAY_MS,
    retentionDays: days,
    ...(previousDays === Number.POSITIVE_INFINITY ? {} : { previousDays }),
    graceUntilMs,
    lockedBeforeMs: nowMs - days * DAY_MS,
  }
}

/** Samples before this instant are never written again, even in a grace; -Infinity without a limit. */
export function writeLockedBeforeMs(retentionDays: number | null, nowMs: number): number {
  return retentionDays === null ? Number.NEGATIVE_INFINITY : nowMs - retentionDays * DAY_MS
}

/** What the collector remembers about a company's retention, kept in the samples store itself. */
type RetentionMemory = {
  readonly firstSeenAtMs: number
  /** The largest retention seen in the last 30 days; Infinity when it was unlimited. */
  readonly largestDays: number
}

/** `keep` is the reason why nothing is deleted; `deleteBeforeMs` is a UTC midnight. */
type Deletion = { readonly keep: 'hub_silent' | 'new_company' | 'unlimited' } | { readonly deleteBeforeMs: number }

/**
 * Which samples of a company may be deleted: whole UTC days that are entirely outside everything that the company can
 * read now or could read in the last 30 days. `settings` is the hub's answer just now; undefined when it did not
 * answer.
 */
export function deletion(
  settings: RetentionSettings | undefined,
  memory: RetentionMemory,
  nowMs: number,
  newCompanyWaitMs: number,
): Deletion {
  if (settings === undefined) return { keep: 'hub_silent' }
  const retention = effective(settings, nowMs)
  if (retention === null) return { keep: 'unlimited' }
  if (nowMs - memory.firstSeenAtMs < newCompanyWaitMs) return { keep: 'new_company' }
  const keepDays = Math.max(1, retention.days, retention.previousDays ?? 0, memory.largestDays)
  if (keepDays === Number.POSITIVE_INFINITY) return { keep: 'unlimited' }
  return { deleteBeforeMs: Math.floor((nowMs - keepDays * DAY_MS) / DAY_MS) * DAY_MS }
}
