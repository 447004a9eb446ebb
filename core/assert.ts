// Asserts for bugs, not for expected outcomes. They are on in production.

/** Throws when `condition` is false: the program is wrong, and going on would make it worse. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}

/** For the default branch of an exhaustive switch: it does not type-check while a case is missing. */
export function unreachable(value: never): never {
  throw new Error(`assertion failed: unexpected value ${String(value)}`)
}
