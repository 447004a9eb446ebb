// How long whoever failed waits before the next try: doubled each time, up to a ceiling. Outages of many at once end
// softly where each also waits a random share of that ("full jitter", M. Brooker, "Exponential Backoff And Jitter").
import { assert } from './assert.ts'

export type Backoff = { readonly startMs: number; readonly capMs: number }

/** The wait after the nth failure in a row (n >= 1), ms. */
export function backoffMs({ startMs, capMs }: Backoff, failures: number): number {
  assert(failures >= 1, 'a backoff follows a failure')
  return Math.min(capMs, startMs * 2 ** Math.min(failures - 1, 30))
}
