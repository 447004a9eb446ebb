// A scan shares the thread that samples (MAT-003): it works in slices, and lets everything else run between them.
import { setImmediate } from 'node:timers/promises'

/** Half of what a slice may take, since a step that began within it is ended. */
const SLICE_MS = 10

export class Slices {
  readonly #now: () => number
  #startedAtMs: number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#startedAtMs = now()
  }

  /** Between two steps of a few milliseconds at most: waits its turn when the slice is used up. */
  async breathe(): Promise<void> {
    if (this.#now() - this.#startedAtMs < SLICE_MS) return
    await setImmediate()
    this.#startedAtMs = this.#now()
  }

  /** Runs what is made in steps to its end, slice by slice. */
  async run<T>(steps: Generator<void, T>): Promise<T> {
    for (;;) {
      const step = steps.next()
      if (step.done) return step.value
      await this.breathe()
    }
  }
}
