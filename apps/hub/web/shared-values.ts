// Values that many viewers share: made at most once in a while, and the last one is at hand while the next is on its way.

type Entry<T> = { value: T | null; madeAtMs: number; running: Promise<void> | null }

export class RecentValues<T> {
  private readonly entries = new Map<string, Entry<T>>()

  constructor(
    private readonly maxAgeMs: number,
    private readonly countMax: number,
    private readonly now: () => number,
  ) {}

  private entryOf(key: string): Entry<T> {
    const known = this.entries.get(key)
    if (known) return known
    if (this.entries.size >= this.countMax) this.dropOldest()
    const fresh: Entry<T> = { value: null, madeAtMs: Number.NEGATIVE_INFINITY, running: null }
    this.entries.set(key, fresh)
    return fresh
  }

  private dropOldest(): void {
    const byAge = [...this.entries].sort(([, a], [, b]) => a.madeAtMs - b.madeAtMs)
    for (const [key] of byAge.slice(0, Math.ceil(this.countMax / 4))) this.entries.delete(key)
  }

  /** Resolves once the value is young enough; makes it when it is not. Rejects as `make` does. */
  async refresh(key: string, make: () => Promise<T>): Promise<void> {
    const entry = this.entryOf(key)
    if (this.now() - entry.madeAtMs < this.maxAgeMs) return
    entry.running ??= make()
      .then(value => {
        entry.value = value
        entry.madeAtMs = this.now()
      })
      .finally(() => {
        entry.running = null
      })
    await entry.running
  }

  /** The last value, unless it is older than `usableMs`; null when there is none. */
  last(key: string, usableMs: number): T | null {
    const entry = this.entries.get(key)
    return entry && this.now() - entry.madeAtMs <= usableMs ? entry.value : null
  }

  /** The value, young enough. Rejects as `make` does. */
  async get(key: string, make: () => Promise<T>): Promise<T> {
    await this.refresh(key, make)
    return this.entryOf(key).value ?? make()
  }
}
