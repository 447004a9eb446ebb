// Long work on a thread that answers others meanwhile: it is broken off every few milliseconds.
const SLICE_MS = 5

/** Lets others have their turn after some time of work. */
export class Slice {
  private beganMs = performance.now()

  async over(): Promise<void> {
    if (performance.now() - this.beganMs < SLICE_MS) return
    await new Promise<void>(resolve => setImmediate(resolve))
    this.beganMs = performance.now()
  }
}

/** Does all steps; returns what the last one gives. */
export async function inSlices<T>(steps: Generator<void, T>): Promise<T> {
  const slice = new Slice()
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    await slice.over()
  }
}
