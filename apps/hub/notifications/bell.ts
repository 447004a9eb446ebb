// The realtime bell inside one process: whoever listens for a user is told when a notification was written for it.

export type BellMessage = Readonly<Record<string, unknown>>
type Listener = (message: BellMessage) => void

export class Bell {
  private readonly listeners = new Map<string, Set<Listener>>()
  private readonly closers = new Set<() => void>()

  /** Returns the function that ends the listening. */
  listen(userId: string, listener: Listener): () => void {
    const known = this.listeners.get(userId) ?? new Set<Listener>()
    known.add(listener)
    this.listeners.set(userId, known)
    return () => {
      known.delete(listener)
      if (known.size === 0) this.listeners.delete(userId)
    }
  }

  /** Calls `listener` when the hub stops. Returns the function that forgets it. */
  onClose(listener: () => void): () => void {
    this.closers.add(listener)
    return () => this.closers.delete(listener)
  }

  /** Ends every stream. */
  close(): void {
    for (const closer of [...this.closers]) closer()
    this.closers.clear()
    this.listeners.clear()
  }

  ring(userId: string, message: BellMessage): void {
    for (const listener of this.listeners.get(userId) ?? []) listener(message)
  }
}
