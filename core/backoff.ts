// The wait before the next try after failures: doubled each time, up to a ceiling. When many clients failed at once,
// each should wait a random share of it, so that they do not all return together ("full jitter", M. Brooker,
// "Exponential Backoff And Jitter").
import { assert } from './assert.ts'

type Backoff = { readonly startMs: number; readonly capMs: number }

/** The wait after the nth failure in a row (n >= 1), ms. */
export function backoffMs({ startMs, capMs }: Backoff, failures: number): number {
  assert(failures >= 1, 'a backoff follows a failure')
  return Math.min(capMs, startMs * 2 ** Math.min(failures - 1, 30))
}
