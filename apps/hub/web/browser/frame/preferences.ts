// What a person prefers in this browser: colours, density of rows, zone of times.
import { effect, type Signal, signal } from '@preact/signals'
import { isUtc } from '../format.ts'

type Theme = 'auto' | 'light' | 'dark'
type Shortcuts = 'on' | 'off'
type Density = 'comfortable' | 'compact'

function kept<T extends string>(name: string, known: readonly T[], otherwise: T): Signal<T> {
  let stored: string | null = null
  try {
    stored = localStorage.getItem(name)
  } catch {
    // Without storage a preference lasts as long as the tab.
  }
  return signal(known.find(value => value === stored) ?? otherwise)
}

function keep(name: string, value: string): void {
  try {
    localStorage.setItem(name, value)
  } catch {
    // See above.
  }
}

export const theme = kept<Theme>('theme', ['auto', 'light', 'dark'], 'auto')
export const density = kept<Density>('density', ['comfortable', 'compact'], 'comfortable')

/** Whether single keys act; Ctrl K always does. */
export const shortcuts = kept<Shortcuts>('shortcuts', ['on', 'off'], 'on')

export function startPreferences(): void {
  const { dataset } = document.documentElement
  effect(() => {
    dataset.theme = theme.value
    keep('theme', theme.value)
  })
  effect(() => {
    dataset.density = density.value
    keep('density', density.value)
  })
  effect(() => keep('shortcuts', shortcuts.value))
  effect(() => keep('times', isUtc.value ? 'utc' : 'local'))
}
