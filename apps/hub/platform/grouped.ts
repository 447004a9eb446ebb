// Group commit: what callers ask for at once of the same thing is done together, as long as the work before it lasts.
// One that comes alone begins when the event loop has handled what came with it; after a group it may be the first of
// those that were answered together and come back one after the other, and begins when no more come.

type Waiting<Ask, Result> = {
  readonly ask: Ask
  readonly done: (result: Result) => void
  readonly failed: (error: unknown) => void
}

/** What waits for a key, and what is called when one more does. */
type Queue<Ask, Result> = { readonly asks: Waiting<Ask, Result>[]; arrived: () => void }

/** How long the first of those that come back is waited for, and then each of the others. */
type Gaps = { readonly firstMs: number; readonly nextMs: number }

export class Grouped<Ask, Result> {
  /** What waits, by key; a key stands here while its work goes on. */
  private readonly waiting = new Map<string, Queue<Ask, Result>>()

  /**
   * `work` returns a result for each ask, in their order; when it throws, all of them fail. `take` says how many of
   * those that wait, one at least, are done together. With `gaps` the next group begins when as many wait as were done
   * together before, or when nobody came for so long.
   */
  constructor(
    private readonly work: (asks: readonly Ask[]) => Promise<readonly Result[]>,
    private readonly take: (waiting: readonly Ask[]) => number,
    private readonly gaps: Gaps | null = null,
  ) {}

  /** The result of one ask. Those of a key go one after the other, in the order in which they came. */
  run(key: string, ask: Ask): Promise<Result> {
    return new Promise((done, failed) => {
      const known = this.waiting.get(key)
      if (known) {
        known.asks.push({ ask, done, failed })
        known.arrived()
      } else {
        const queue = { asks: [{ ask, done, failed }], arrived: () => {} }
        this.waiting.set(key, queue)
        // Callers that were answered together come back together: the first of them would begin alone.
        setImmediate(() => void this.workOff(key, queue))
      }
    })
  }

  private async workOff(key: string, queue: Queue<Ask, Result>): Promise<void> {
    for (let before = 0; ; ) {
      if (this.gaps !== null && before > 1) await comeBack(queue, before, this.gaps)
      if (queue.asks.length === 0) break
      const group = queue.asks.splice(0, Math.max(1, this.take(queue.asks.map(({ ask }) => ask))))
      try {
        const results = await this.work(group.map(({ ask }) => ask))
        for (const [at, { done }] of group.entries()) done(results[at]!)
      } catch (error) {
        for (const { failed } of group) failed(error)
      }
      before = group.length
    }
    this.waiting.delete(key)
  }
}

/** Waits until as many wait as before, or until nobody came for a while. */
async function comeBack<Ask, Result>(queue: Queue<Ask, Result>, before: number, gaps: Gaps): Promise<void> {
  // Who waits already came while the others were at work: those are only now being answered.
  for (let waitMs = gaps.firstMs; waitMs > 0 && queue.asks.length < before; ) {
    const { promise, resolve } = Promise.withResolvers<number>()
    const timer = setTimeout(() => resolve(0), waitMs)
    queue.arrived = () => resolve(gaps.nextMs)
    waitMs = await promise
    clearTimeout(timer)
  }
}
