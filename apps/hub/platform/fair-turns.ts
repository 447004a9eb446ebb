// Runs slow work in turns between callers: a caller with a hundred tasks waits for them, and delays another caller by
// only one task. No caller holds more than its share of what runs, however much of it stands idle.

type Waiting = { readonly begin: () => void; readonly refuse: () => void }

export class FairTurns {
  /** Waiting tasks by caller; the first caller has the next turn. */
  private readonly waiting = new Map<string, Waiting[]>()
  /** Tasks that run, by caller; a caller without one is missing. */
  private readonly running = new Map<string, number>()
  private runningCount = 0
  private waitingCount = 0

  /**
   * `atOnce`: tasks that run in parallel, at most `eachAtOnce` for each caller. `waitingMax`: waiting tasks of all
   * callers together.
   */
  constructor(
    private readonly atOnce: number,
    private readonly waitingMax: number,
    private readonly eachAtOnce = 1,
  ) {}

  /** Runs `work` when it is the caller's turn. Null: too many tasks wait. */
  async run<T>(caller: string, work: () => Promise<T>): Promise<T | null> {
    if (!(await this.turnOf(caller))) return null
    try {
      return await work()
    } finally {
      const left = (this.running.get(caller) ?? 0) - 1
      if (left > 0) this.running.set(caller, left)
      else this.running.delete(caller)
      this.runningCount--
      const mine = this.waiting.get(caller)
      this.waiting.delete(caller)
      // Moved to the end, so that all other callers come first.
      if (mine) this.waiting.set(caller, mine)
      this.beginNext()
    }
  }

  private turnOf(caller: string): Promise<boolean> {
    if (this.waitingCount >= this.waitingMax && !this.makeRoomFor(caller)) return Promise.resolve(false)
    return new Promise(resolve => {
      const mine = this.waiting.get(caller) ?? []
      mine.push({ begin: () => resolve(true), refuse: () => resolve(false) })
      this.waiting.set(caller, mine)
      this.waitingCount++
      this.beginNext()
    })
  }

  /** When all places are taken, the caller with the most waiting tasks loses its last one to a caller with fewer. */
  private makeRoomFor(caller: string): boolean {
    let longest: Waiting[] = []
    for (const queue of this.waiting.values()) if (queue.length > longest.length) longest = queue
    if (longest.length <= (this.waiting.get(caller)?.length ?? 0) + 1) return false
    longest.pop()?.refuse()
    this.waitingCount--
    return true
  }

  private beginNext(): void {
    for (const [caller, queue] of this.waiting) {
      if (this.runningCount >= this.atOnce) return
      const own = this.running.get(caller) ?? 0
      if (own >= this.eachAtOnce) continue
      const next = queue.shift()
      if (queue.length === 0) this.waiting.delete(caller)
      if (!next) continue
      this.waitingCount--
      this.running.set(caller, own + 1)
      this.runningCount++
      next.begin()
    }
  }
}
