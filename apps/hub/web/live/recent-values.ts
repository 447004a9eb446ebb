// Values that many viewers share: each is computed at most once in an interval, and the last one can be shown while the
// next is computed. A failure is shared as well, since while the collector is down every open page asks for everything.
import { LRUCache } from 'lru-cache'

/**
 * What a question is content with. `now`: a value whose making begins after it; `recent`: one that is young enough;
 * `at_hand`: one that is a few seconds older, while the next is made. Pages begin with what is at hand, since the
 * stream brings them the next at once.
 */
export type Freshness = 'now' | 'recent' | 'at_hand'

const AT_HAND_MS = 6_000
/** The next value is begun when the answer with the one at hand has gone out: its reading would delay it. */
const NEXT_AFTER_MS = 50

/** How long a failure is returned to all before the next attempt. */
const FAILURE_AGE_MS = 2_000

type Made<T> = { readonly value: T; readonly atMs: number }
type Entry<T> = {
  made: Made<T> | null
  failure: { readonly error: unknown; readonly atMs: number } | null
  running: Promise<T> | null
  /** Begins once `running` has ended: for those who want nothing that was begun before they asked. */
  next: Promise<T> | null
}

export class RecentValues<T> {
  private readonly entries: LRUCache<string, Entry<T>>

  constructor(
    private readonly maxAgeMs: number,
    countMax: number,
    private readonly now: () => number,
  ) {
    this.entries = new LRUCache({ max: countMax })
  }

  private entryOf(key: string): Entry<T> {
    const known = this.entries.get(key)
    if (known) return known
    const fresh: Entry<T> = { made: null, failure: null, running: null, next: null }
    this.entries.set(key, fresh)
    return fresh
  }

  /** A value as fresh as is wanted. Rejects like `make`. */
  async of(key: string, wanted: Freshness, make: () => Promise<T>): Promise<T> {
    if (wanted === 'now') return this.getFresh(key, make)
    const known = wanted === 'at_hand' ? this.last(key, AT_HAND_MS) : null
    if (known === null) return this.get(key, make)
    // Whoever waits for the next value is told why there is none.
    const begin = (): void => void this.get(key, make).catch(() => {})
    setTimeout(begin, NEXT_AFTER_MS).unref()
    return known
  }

  /**
   * A value that is fresh enough; computed when there is none. Rejects like `make`, and for a while without calling it
   * again.
   */
  async get(key: string, make: () => Promise<T>): Promise<T> {
    const entry = this.entryOf(key)
    const nowMs = this.now()
    if (entry.made && nowMs - entry.made.atMs < this.maxAgeMs) return entry.made.value
    if (entry.failure && nowMs - entry.failure.atMs < FAILURE_AGE_MS) throw entry.failure.error
    entry.running ??= this.run(entry, make)
    return entry.running
  }

  /**
   * A value whose making begins after the question, as after a change that it must show. One is made at a time: whoever
   * asks meanwhile shares the next one. Rejects like `make`.
   */
  getFresh(key: string, make: () => Promise<T>): Promise<T> {
    const entry = this.entryOf(key)
    entry.next ??= (async () => {
      await entry.running?.catch(() => {})
      entry.next = null
      entry.running = this.run(entry, make)
      return entry.running
    })()
    return entry.next
  }

  private run(entry: Entry<T>, make: () => Promise<T>): Promise<T> {
    const running = make()
      .then(value => {
        entry.made = { value, atMs: this.now() }
        entry.failure = null
        return value
      })
      .catch(error => {
        entry.failure = { error, atMs: this.now() }
        throw error
      })
      .finally(() => {
        if (entry.running === running) entry.running = null
      })
    return running
  }

  /** The last value, unless it is older than `usableMs`; null when there is none. */
  last(key: string, usableMs: number): T | null {
    const made = this.entries.get(key)?.made
    return made && this.now() - made.atMs <= usableMs ? made.value : null
  }
}
