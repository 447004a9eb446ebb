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

/**
 * How long the first of those that come back is waited for once they were answered, then each of the others, and the
 * last ones when as many wait as before.
 */
type Gaps = { readonly firstMs: number; readonly nextMs: number; readonly lastMs: number }

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

/**
 * Waits until as many wait as before, or until nobody came for a while after those before were answered. Who came while
 * they were at work is no sign that they are back: where some did, the last ones of those that come back are only just
 * missing, and would wait for a whole group each time.
 */
function comeBack<Ask, Result>(
  queue: Queue<Ask, Result>,
  before: number,
  { firstMs, nextMs, lastMs }: Gaps,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const all = before + queue.asks.length
  let timer: ReturnType<typeof setTimeout> | undefined
  let state: 'answering' | 'coming' | 'last' | 'over' = 'answering'
  const end = (): void => {
    state = 'over'
    clearTimeout(timer)
    queue.arrived = () => {}
    resolve()
  }
  const waitFor = (ms: number): void => {
    clearTimeout(timer)
    const known = queue.asks.length
    // The time may be over because the hub was busy: what came meanwhile is read first.
    const look = () => {
      if (state !== 'over' && (state === 'last' || queue.asks.length === known)) end()
    }
    timer = setTimeout(() => setImmediate(look), ms)
  }
  const look = (): void => {
    const came = queue.asks.length
    if (came >= all) end()
    else if (came >= before) {
      if (state !== 'last') waitFor(lastMs)
      state = 'last'
    } else if (state === 'coming') waitFor(nextMs)
  }
  const begin = (): void => {
    if (state !== 'answering') return
    state = 'coming'
    waitFor(queue.asks.length > all - before ? nextMs : firstMs)
  }
  queue.arrived = look
  look()
  // By then the answers are made that need nothing else.
  setImmediate(begin)
  return promise
}
