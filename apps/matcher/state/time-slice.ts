// Long work on the thread that takes reports: every few milliseconds it lets them have their turn.
const SLICE_MS = 5

/** Counts the time of a piece of work since others last had their turn. */
export class TimeSlice {
  readonly #sliceMs: number
  #beganMs = performance.now()

  constructor(sliceMs = SLICE_MS) {
    this.#sliceMs = sliceMs
  }

  /** Lets others have their turn once the slice is used up; else goes on at once. */
  async yieldIfDue(): Promise<void> {
    if (performance.now() - this.#beganMs < this.#sliceMs) return
    await new Promise<void>(resolve => setImmediate(resolve))
    this.#beganMs = performance.now()
  }
}

/** Takes all steps, yielding between two of them when that is due, until they end or `isStopped` says so. */
export async function runSteps(steps: Generator<void>, isStopped: () => boolean): Promise<void> {
  const slice = new TimeSlice()
  while (!isStopped() && !steps.next().done) await slice.yieldIfDue()
}
