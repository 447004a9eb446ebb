// Which records of a feed leave the set that is in force (document 1 "Rule sync envelope"; document 2 "Rule sync on the
// collector").
import { isSilenceForgotten } from '../alerting/evaluate/suppression.ts'
import type { UncheckedRecord } from './feed.ts'

/** Tombstones of the three feeds: a disabled rule leaves the running set; a disabled check is kept, for its count. */
export const isGone = {
  rules: (record: UncheckedRecord): boolean => record.deleted === true || record.enabled === false,
  silences: (record: UncheckedRecord): boolean => record.deleted === true,
  checks: (record: UncheckedRecord): boolean => record.deleted === true,
} as const

/** A silence is kept for a day after its end, for events that come late. */
export const isExpiredSilence = (record: UncheckedRecord, nowMs: number): boolean =>
  typeof record.ends_at === 'string' && isSilenceForgotten({ ends_at: record.ends_at }, nowMs)
