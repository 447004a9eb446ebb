// How a check stands now, and when its last result is too old to say so.

/** This hour and the one before: what is older says nothing about now. */
export const FRESH_HOURS = 2
const HOUR_MS = 3_600_000
/** So many results may be late or lost. */
const STALE_INTERVALS = 3
/** How exactly the time of a result is read, and how long a result may be on its way. */
export const RESULT_STEP_MS = 60_000

/** Whether a result is too old to say how a check stands now. */
export const isStale = (atMs: number | null, intervalSeconds: number, nowMs: number): boolean =>
  atMs !== null && nowMs - atMs > STALE_INTERVALS * intervalSeconds * 1000 + 2 * RESULT_STEP_MS

type HourShares = readonly (number | null)[]

type CheckStanding = {
  /** What the last result was; null: there is none of this hour or the one before. */
  readonly isWell: boolean | null
  /** The beginning of the hour from which on all results were so; null: for the whole day, or it has no standing. */
  readonly sinceMs: number | null
}

/** By the last result of each hour, and by the share of good ones: how a check stands, and since which hour. */
export function standingOf(lasts: HourShares, shares: HourShares, nowMs: number): CheckStanding {
  const last = lasts.slice(-FRESH_HOURS).findLast(result => result !== null) ?? null
  if (last === null) return { isWell: null, sinceMs: null }
  const good = last >= 1 ? 1 : 0
  // Hours without a result end nothing: nobody looked.
  const other = shares.findLastIndex(share => share !== null && share !== good)
  const hourAt = (at: number): number => Math.ceil(nowMs / HOUR_MS) * HOUR_MS - (lasts.length - at) * HOUR_MS
  if (other < 0) {
    // A day whose first hour has a result may have begun so before.
    const first = lasts.findIndex(result => result !== null)
    return { isWell: good === 1, sinceMs: first > 0 ? hourAt(first) : null }
  }
  // The hour in which it changed has results of both kinds.
  const isChange = lasts[other] !== null && lasts[other] !== undefined && lasts[other] >= 1 === (good === 1)
  return { isWell: good === 1, sinceMs: hourAt(isChange ? other : other + 1) }
}
