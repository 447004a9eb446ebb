// Fixed windows, counted in memory: of 60 seconds for requests (decision G-10), of other lengths for enrollments
// (G-30).
import { LRUCache } from 'lru-cache'

type Window = { readonly startedAtMs: number; count: number }

type Taken = {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  /** Whole seconds until the window ends, 1 at least. */
  readonly retryAfterSeconds: number
}

const KEYS_MAX = 100_000

export class FixedWindows {
  /**
   * With too many keys the least recently used one is dropped. A client that invents keys can drop an active counter
   * only by outnumbering all keys that are used meanwhile.
   */
  private readonly windows = new LRUCache<string, Window>({ max: KEYS_MAX })

  constructor(
    private readonly lengthMs: number,
    private readonly now: () => number,
  ) {}

  private windowOf(key: string): Window {
    const nowMs = this.now()
    const known = this.windows.get(key)
    // Where the clock was set back a window would else last until its time comes again.
    if (known && nowMs >= known.startedAtMs && nowMs - known.startedAtMs < this.lengthMs) return known
    const fresh = { startedAtMs: nowMs, count: 0 }
    this.windows.set(key, fresh)
    return fresh
  }

  private result(window: Window, limit: number, allowed: boolean): Taken {
    const leftMs = window.startedAtMs + this.lengthMs - this.now()
    return {
      allowed,
      limit,
      remaining: Math.max(0, limit - window.count),
      retryAfterSeconds: Math.max(1, Math.ceil(leftMs / 1000)),
    }
  }

  /** Counts one use against the key's window. */
  take(key: string, limit: number): Taken {
    const window = this.windowOf(key)
    const allowed = window.count < limit
    if (allowed) window.count++
    return this.result(window, limit, allowed)
  }

  /** Tells whether the key has a use left, without counting one. */
  peek(key: string, limit: number): Taken {
    const window = this.windowOf(key)
    return this.result(window, limit, window.count < limit)
  }
}
