// Group commit: what callers ask for at once of the same thing is done together, as long as the work before it lasts.
// One that comes alone begins when the event loop has handled what came with it.

type Waiting<Ask, Result> = {
  readonly ask: Ask
  readonly done: (result: Result) => void
  readonly failed: (error: unknown) => void
}

export class Grouped<Ask, Result> {
  /** What waits, by key; a key stands here while its work goes on. */
  private readonly waiting = new Map<string, Waiting<Ask, Result>[]>()

  /**
   * `work` returns a result for each ask, in their order; when it throws, all of them fail. `take` says how many of
   * those that wait, one at least, are done together.
   */
  constructor(
    private readonly work: (asks: readonly Ask[]) => Promise<readonly Result[]>,
    private readonly take: (waiting: readonly Ask[]) => number,
  ) {}

  /** The result of one ask. Those of a key go one after the other, in the order in which they came. */
  run(key: string, ask: Ask): Promise<Result> {
    return new Promise((done, failed) => {
      const known = this.waiting.get(key)
      if (known) known.push({ ask, done, failed })
      else {
        const queue = [{ ask, done, failed }]
        this.waiting.set(key, queue)
        // Callers that were answered together come back together: the first of them would begin alone.
        setImmediate(() => void this.workOff(key, queue))
      }
    })
  }

  private async workOff(key: string, queue: Waiting<Ask, Result>[]): Promise<void> {
    while (queue.length > 0) {
      const group = queue.splice(0, Math.max(1, this.take(queue.map(({ ask }) => ask))))
      try {
        const results = await this.work(group.map(({ ask }) => ask))
        for (const [at, { done }] of group.entries()) done(results[at]!)
      } catch (error) {
        for (const { failed } of group) failed(error)
      }
    }
    this.waiting.delete(key)
  }
}
