// The threads of a process that write one SQLite file do so in turns. SQLite lets a thread that waits look again at
// intervals of up to 100 ms: one that commits again and again, as a replay on a slow disk does, is hardly ever found
// between two commits, and the others give up in the end (SQLITE_BUSY). Here whoever comes first writes first.

const NEXT = 0
const SERVING = 1
/** A turn that is not over by then is not waited for: SQLite's own lock still keeps the two apart. */
const WAIT_MS = 10_000

/** Tickets begin anew after 2^31. */
const isAtLeast = (ticket: number, other: number): boolean => ((ticket - other) | 0) >= 0

export const newTurns = (): SharedArrayBuffer => new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT)

export class WriteTurns {
  private readonly tickets: Int32Array<SharedArrayBuffer>

  /** `shared` goes to every thread that writes the file. */
  constructor(
    shared: SharedArrayBuffer,
    private readonly waitMs = WAIT_MS,
  ) {
    this.tickets = new Int32Array(shared)
  }

  /** Runs `write` once all that came before are done. Not to be nested. */
  run<T>(write: () => T): T {
    const { tickets } = this
    const ticket = Atomics.add(tickets, NEXT, 1)
    for (;;) {
      const serving = Atomics.load(tickets, SERVING)
      if (isAtLeast(serving, ticket)) break
      if (Atomics.wait(tickets, SERVING, serving, this.waitMs) === 'timed-out') break
    }
    try {
      return write()
    } finally {
      this.serve(ticket + 1)
    }
  }

  /** Whose turn it is next. A thread that ended in the middle of its turn is passed over by the one behind it. */
  private serve(next: number): void {
    const { tickets } = this
    for (;;) {
      const serving = Atomics.load(tickets, SERVING)
      if (isAtLeast(serving, next)) return
      if (Atomics.compareExchange(tickets, SERVING, serving, next) === serving) break
    }
    Atomics.notify(tickets, SERVING)
  }
}
