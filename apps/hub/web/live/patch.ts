// What differs between two answers of a view, for a stream that sends changes only. Used by the hub, which makes it,
// and by the browser, which applies it.

/** `=`: take this instead; `o`: members that changed, and names that went; `a`: places of an array that changed. */
export type Patch =
  | readonly ['=', unknown]
  | readonly ['o', Readonly<Record<string, Patch>>, readonly string[]]
  | readonly ['a', readonly (readonly [number, Patch])[]]

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Null: nothing differs. Both are values of JSON. */
export function patchOf(before: unknown, after: unknown): Patch | null {
  if (Object.is(before, after)) return null
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    const places: [number, Patch][] = []
    for (let index = 0; index < after.length; index++) {
      const patch = patchOf(before[index], after[index])
      if (patch !== null) places.push([index, patch])
    }
    return places.length === 0 ? null : ['a', places]
  }
  if (isRecord(before) && isRecord(after)) {
    const changed: Record<string, Patch> = {}
    for (const [name, value] of Object.entries(after)) {
      const patch = Object.hasOwn(before, name) ? patchOf(before[name], value) : (['=', value] as const)
      if (patch !== null) changed[name] = patch
    }
    const gone = Object.keys(before).filter(name => !Object.hasOwn(after, name))
    return gone.length === 0 && Object.keys(changed).length === 0 ? null : ['o', changed, gone]
  }
  return ['=', after]
}

/** The value with the patch applied. What did not change stays the same object; the value itself is not touched. */
export function patched(value: unknown, patch: Patch): unknown {
  switch (patch[0]) {
    case '=':
      return patch[1]
    case 'a': {
      const items: unknown[] = Array.isArray(value) ? [...value] : []
      for (const [index, each] of patch[1]) items[index] = patched(items[index], each)
      return items
    }
    case 'o': {
      const members: Record<string, unknown> = isRecord(value) ? { ...value } : {}
      for (const name of patch[2]) delete members[name]
      for (const [name, each] of Object.entries(patch[1])) members[name] = patched(members[name], each)
      return members
    }
  }
}
