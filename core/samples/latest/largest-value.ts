// Of each server of a company the largest of the newest values of its series: what a map of servers or a column of a
// table shows of a metric that a server may have several series of.
import type { NewestValue } from './newest-values.ts'

/** Takes values of series in any order; of two of one series the later one counts. */
export class LargestValue {
  private readonly newest = new Map<string, NewestValue>()

  take(key: string, value: number, tsMs: number): void {
    if (!Number.isFinite(value)) return
    const known = this.newest.get(key)
    if (!known || tsMs >= known.tsMs) this.newest.set(key, { key, value, tsMs })
  }

  /** The largest that is not older than `sinceMs`; of two that are equal the one whose key comes first. */
  since(sinceMs: number): NewestValue | null {
    let largest: NewestValue | null = null
    for (const each of this.newest.values()) {
      if (each.tsMs < sinceMs) continue
      if (!largest || each.value > largest.value || (each.value === largest.value && each.key < largest.key))
        largest = each
    }
    return largest
  }
}
