// Options of a state for tests: everything is taken, nothing is forgotten, the clock is the test's.
import type { StateOptions } from '../../../apps/matcher/state/state-types.ts'

export const stateOptions = (now: () => number): StateOptions => ({
  match: { centosAsRedhat: true, undetermined: false, rebuildsUnfixed: false },
  outboxBytesMax: 4 * 2 ** 30,
  forgetAfterMs: 90 * 24 * 3_600_000,
  now,
})
