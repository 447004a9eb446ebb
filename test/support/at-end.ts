// What the test files of a process share is ended after the last of them.

const ends: (() => Promise<void>)[] = []

/** Calls `end` after the last test of this process. */
export function atEnd(end: () => Promise<void>): void {
  ends.push(end)
}

export async function endShared(): Promise<void> {
  for (const end of ends) await end()
}
