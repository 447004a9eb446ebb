// What lies over the page: the command palette, the list of keys, saved views, or the
// choice of columns. Loaded when it is first asked for.
import { signal } from '@preact/signals'

export const overlay = signal<'palette' | 'keys' | 'views' | 'columns' | null>(null)
