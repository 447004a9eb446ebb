// What lies over the page: the command palette, or the list of keys. Loaded when it is first asked for.
import { signal } from '@preact/signals'

export const overlay = signal<'palette' | 'keys' | null>(null)
