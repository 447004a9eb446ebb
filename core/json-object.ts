// JSON from outside that has not been validated yet.

export type Unchecked = Readonly<Record<string, unknown>>

/** A JSON object: neither null nor a list. */
export const isObject = (value: unknown): value is Unchecked =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
