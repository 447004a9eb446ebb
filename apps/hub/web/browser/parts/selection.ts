// Which rows of a list are selected: single ones by their key, or all that match the filter.
import { signal } from '@preact/signals'
import { useMemo } from 'preact/hooks'

export class Selection {
  private readonly keys = signal<ReadonlySet<string>>(new Set())
  private isWhole = false

  has(key: string): boolean {
    return this.keys.value.has(key)
  }

  get size(): number {
    return this.keys.value.size
  }

  get all(): readonly string[] {
    return [...this.keys.value]
  }

  /** Whether all that match were selected, and none was taken out since; keys may be of the shown ones only. */
  get isOfAll(): boolean {
    return this.isWhole && this.keys.value.size > 0
  }

  set(key: string, isSelected: boolean): void {
    this.setAll([key], isSelected)
  }

  setAll(keys: readonly string[], areSelected: boolean): void {
    const next = new Set(this.keys.value)
    for (const key of keys)
      if (areSelected) next.add(key)
      else next.delete(key)
    this.isWhole = false
    this.keys.value = next
  }

  /** Selects all that match, `keys` of them or as many as are shown. */
  setMatching(keys: readonly string[]): void {
    this.isWhole = true
    this.keys.value = new Set(keys)
  }

  clear(): void {
    if (this.keys.value.size > 0) this.keys.value = new Set()
  }
}

/** `of`: what the keys are of; where that changes nothing is selected any more. */
export const useSelection = (of = ''): Selection => useMemo(() => new Selection(), [of])
