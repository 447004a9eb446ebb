// Loaded before the test files of a process (bunfig.toml): what they share is ended after the last of them.
import { afterAll } from 'bun:test'

const ends: (() => Promise<void>)[] = []

/** Calls `end` after the last test of this process. */
export function atEnd(end: () => Promise<void>): void {
  ends.push(end)
}

afterAll(async () => {
  for (const end of ends) await end()
}, 60_000)
