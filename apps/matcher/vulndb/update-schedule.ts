// When the vulnerability database is fetched again (MAT-061, MAT-064): after the interval of the configuration, spread
// over the matchers; after a failure sooner, and ever later while it goes on. At the first host of a distribution its
// source is fetched at once: updater.ts.

const RETRY_MS = 5 * 60_000
const RETRY_MS_MAX = 6 * 60 * 60_000
const JITTER = 0.1

/** The wait after `failures` updates in a row that did not take all; `random` in [0, 1). */
export function updateWaitMs(failures: number, intervalMs: number, random: number): number {
  const retryMs = Math.min(RETRY_MS * 2 ** (failures - 1), RETRY_MS_MAX)
  const waitMs = failures === 0 ? intervalMs : Math.min(retryMs, Math.max(intervalMs, RETRY_MS))
  return Math.round(waitMs * (1 - JITTER + 2 * JITTER * random))
}
