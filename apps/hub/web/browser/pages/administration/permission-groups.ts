// Keys of permissions as they are shown.

/** Every key that can be given, as the API writes it. */
export const EVERYTHING = '*'

/** Keys by what they are of: `dns.view` and `dns.manage` stand together. */
export function groupsOf(keys: readonly string[]): readonly (readonly [group: string, keys: readonly string[]])[] {
  const groups = new Map<string, string[]>()
  for (const key of keys) {
    const group = key.slice(0, key.indexOf('.')) || EVERYTHING
    groups.set(group, [...(groups.get(group) ?? []), key])
  }
  return [...groups]
}
