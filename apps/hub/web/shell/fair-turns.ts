// Runs slow work in turns between callers: a caller with a hundred tasks waits for them, and delays another caller by
// only one task.

type Waiting = { readonly begin: () => void; readonly refuse: () => void }

export class FairTurns {
  /** Waiting tasks by caller; the first caller has the next turn. */
  private readonly waiting = new Map<string, Waiting[]>()
  private readonly running = new Set<string>()
  private waitingCount = 0

  /**
   * `atOnce`: tasks that run in parallel, at most one for each caller. `waitingMax`: waiting tasks of all callers
   * together.
   */
  constructor(
    private readonly atOnce: number,
    private readonly waitingMax: number,
  ) {}

  /** Runs `work` when it is the caller's turn. Null: too many tasks wait. */
  async run<T>(caller: string, work: () => Promise<T>): Promise<T | null> {
    if (!(await this.turnOf(caller))) return null
    try {
      return await work()
    } finally {
      this.running.delete(caller)
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
      if (this.running.size >= this.atOnce) return
      if (this.running.has(caller)) continue
      const next = queue.shift()
      if (queue.length === 0) this.waiting.delete(caller)
      if (!next) continue
      this.waitingCount--
      this.running.add(caller)
      next.begin()
    }
  }
}
