// Asserts for bugs, not for expected outcomes. They are on in production.

/** Throws when `condition` is false: the program is wrong, and going on would make it worse. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}
