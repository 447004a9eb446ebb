// A cache of bounded size in two generations: what was asked for lately stays, the rest is forgotten all at once, with
// no bookkeeping for each use.

export class RecentMap<K, V> {
  #young = new Map<K, V>()
  #old = new Map<K, V>()
  readonly #half: number

  constructor(max: number) {
    this.#half = Math.max(1, Math.floor(max / 2))
  }

  get(key: K): V | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: K, value: V): void {
    if (this.#young.size >= this.#half && !this.#young.has(key)) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }

  delete(key: K): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
  }
}

/** Numbers by a dense number, as the group of an instance; 0 where nothing was set. */
export class NumberColumn {
  #values = new Int32Array(1024)

  get(index: number): number {
    return this.#values[index] ?? 0
  }

  set(index: number, value: number): void {
    if (index >= this.#values.length) {
      const values = new Int32Array(Math.max(index + 1, this.#values.length * 2))
      values.set(this.#values)
      this.#values = values
    }
    this.#values[index] = value
  }

  clear(): void {
    this.#values.fill(0)
  }
}

/** A set of dense numbers, as groups: asked some hundred times a host. */
export class NumberSet {
  readonly #column = new NumberColumn()

  add(number: number): void {
    this.#column.set(number, 1)
  }

  has(number: number): boolean {
    return this.#column.get(number) !== 0
  }
}
