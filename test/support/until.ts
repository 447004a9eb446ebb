// Waiting for a condition instead of sleeping: asks again until it holds or the deadline passes.

/**
 * Between two samples of a load, which is to go on for long and leave the server to what is tried. No test waits for
 * anything with it.
 */
export const pause = (ms: number): Promise<void> => Bun.sleep(ms)

/** Resolves to the first value of `ask` that is neither undefined, null nor false. Rejects after `deadlineMs`. */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  deadlineMs = 30_000,
): Promise<Exclude<T, undefined | null | false>> {
  const endsAt = performance.now() + deadlineMs
  for (;;) {
    const value = await ask()
    if (value !== undefined && value !== null && value !== false) return value as Exclude<T, undefined | null | false>
    if (performance.now() > endsAt) throw new Error(`waited ${deadlineMs} ms in vain: ${what}`)
    await Bun.sleep(20)
  }
}
