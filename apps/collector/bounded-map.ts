// A map of at most so many entries: where it is full, the entry that was set longest ago goes. For maxima that are
// large and rarely reached: `lru-cache` would take the memory for all entries at the start, 7 MB for 250,000, in every
// thread, and keeps the order of use, which costs a write at each read of the hot path. An entry that goes is looked up
// again.

export class BoundedMap<K, V> {
  private readonly entries = new Map<K, V>()
  /**
   * Stands before the oldest entry: a map iterates in the order of insertion, and an entry that is set anew goes to the
   * end. Kept from one eviction to the next: a new one would pass over all that was removed before, which is slow.
   */
  private oldest: Iterator<K> | null = null

  constructor(private readonly countMax: number) {}

  get size(): number {
    return this.entries.size
  }

  get(key: K): V | undefined {
    return this.entries.get(key)
  }

  set(key: K, value: V): void {
    this.entries.delete(key)
    if (this.entries.size >= this.countMax) this.evict()
    this.entries.set(key, value)
  }

  delete(key: K): void {
    this.entries.delete(key)
  }

  private evict(): void {
    this.oldest ??= this.entries.keys()
    const { value, done } = this.oldest.next()
    // Behind it is nothing: what it passed was removed.
    if (!done) this.entries.delete(value)
  }
}
