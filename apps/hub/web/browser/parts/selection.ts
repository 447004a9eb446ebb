// Which rows of a list are selected: single ones by their key, or all that match the filter.
import { signal } from '@preact/signals'
import { useMemo } from 'preact/hooks'

export class Selection {
  private readonly keys = signal<ReadonlySet<string>>(new Set())

  has(key: string): boolean {
    return this.keys.value.has(key)
  }

  get size(): number {
    return this.keys.value.size
  }

  get all(): readonly string[] {
    return [...this.keys.value]
  }

  set(key: string, isSelected: boolean): void {
    this.setAll([key], isSelected)
  }

  setAll(keys: readonly string[], areSelected: boolean): void {
    const next = new Set(this.keys.value)
    for (const key of keys)
      if (areSelected) next.add(key)
      else next.delete(key)
    this.keys.value = next
  }

  clear(): void {
    if (this.keys.value.size > 0) this.keys.value = new Set()
  }
}

export const useSelection = (): Selection => useMemo(() => new Selection(), [])
