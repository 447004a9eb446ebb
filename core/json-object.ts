// JSON from outside that has not been validated yet.

export type Unchecked = Readonly<Record<string, unknown>>

/** A JSON object: neither null nor a list. */
export const isObject = (value: unknown): value is Unchecked =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The object that a text is in JSON; null where it is anything else. */
export function objectIn(text: string): Unchecked | null {
  try {
    const parsed: unknown = JSON.parse(text)
    return isObject(parsed) ? parsed : null
  } catch {
    return null
  }
}
