// How a manifest differs from what exists (resources.md R-036): field by field, named with dots. What a manifest does
// not name is not compared, except what an earlier one named, which goes back to its default.
import { isObject, type Unchecked } from '../json-object.ts'

export type FieldDiff = { readonly field: string; readonly old: unknown; readonly new: unknown }

/**
 * Fields that a manifest gives whole, by name. A list with a key: its items are told apart by these members, and what
 * it lacks is deleted; one in an item of another has both names, `pools.members`. Without a key: one value, of which no
 * part is compared alone.
 */
export type WholeFields = Readonly<Record<string, readonly string[]>>

/** A text that is the same for values that are the same, whatever the order of their members. */
export function canonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`
  if (!isObject(value)) return JSON.stringify(value ?? null)
  const members = Object.keys(value)
    .sort()
    .filter(key => value[key] !== undefined)
    .map(key => `${JSON.stringify(key)}:${canonicalText(value[key])}`)
  return `{${members.join(',')}}`
}

const isSame = (one: unknown, other: unknown): boolean => canonicalText(one) === canonicalText(other)

/** The items of a whole list by their key; the last of two with one key counts. */
function byKey(list: unknown, key: readonly string[]): Map<string, Unchecked> {
  const items = Array.isArray(list) ? list.filter(isObject) : []
  return new Map(items.map(item => [key.map(name => String(item[name] ?? '')).join(' '), item]))
}

/** Where a list is, or what the names of members follow: with a dot at the end. */
type Place = {
  /** As people are told it, `pools.web.members`. */
  readonly told: string
  /** As `WholeFields` has it, `pools.members`. */
  readonly known: string
  readonly whole: WholeFields
}

function listDiff(
  { told: field, known, whole }: Place,
  current: unknown,
  desired: unknown,
  key: readonly string[],
  isMerged: boolean,
): FieldDiff[] {
  const [are, should] = [byKey(current, key), byKey(desired, key)]
  const kept = [...should].flatMap(([name, item]): FieldDiff[] => {
    const old = are.get(name)
    return old === undefined
      ? [{ field: `${field}.${name}`, old: null, new: item }]
      : memberDiffs({ told: `${field}.${name}.`, known: `${known}.`, whole }, old, item)
  })
  const gone = isMerged ? [] : [...are].filter(([name]) => !should.has(name))
  return [...kept, ...gone.map(([name, item]) => ({ field: `${field}.${name}`, old: item, new: null }))]
}

/** `records_mode: merge` beside the list `records`: what the list lacks stays. It is no field of the resource. */
const MODE = '_mode'
const modeOf = (field: string, whole: WholeFields): boolean =>
  field.endsWith(MODE) && (whole[field.slice(0, -MODE.length)]?.length ?? 0) > 0

function memberDiffs(place: Place, current: Unchecked, desired: Unchecked): FieldDiff[] {
  const { whole } = place
  return Object.entries(desired).flatMap(([name, value]): FieldDiff[] => {
    if (value === undefined) return []
    const [field, known] = [`${place.told}${name}`, `${place.known}${name}`]
    const old = current[name] ?? null
    const key = whole[known]
    if (modeOf(known, whole)) return []
    if (key !== undefined && key.length > 0)
      return listDiff({ told: field, known, whole }, old, value, key, desired[`${name}${MODE}`] === 'merge')
    if (key === undefined && isObject(value) && isObject(old))
      return memberDiffs({ told: `${field}.`, known: `${known}.`, whole }, old, value)
    return isSame(old, value) ? [] : [{ field, old, new: value }]
  })
}

/** The fields of `desired` whose value in `current` is another one, in the order of `desired`. */
export const specDiff = (current: Unchecked, desired: Unchecked, whole: WholeFields = {}): FieldDiff[] =>
  memberDiffs({ told: '', known: '', whole }, current, desired)

/**
 * What a manifest asks for, with the defaults of fields, and of members of them, that the one applied before it named
 * and it does not.
 */
export function withReturnedDefaults(desired: Unchecked, applied: Unchecked | null, defaults: Unchecked): Unchecked {
  const returned = Object.entries(applied ?? {}).flatMap(([name, before]): [string, unknown][] => {
    if (!Object.hasOwn(defaults, name)) return []
    const [now, usual] = [desired[name], defaults[name]]
    if (now === undefined) return [[name, usual]]
    return isObject(now) && isObject(before) && isObject(usual)
      ? [[name, withReturnedDefaults(now, before, usual)]]
      : []
  })
  return { ...desired, ...Object.fromEntries(returned) }
}

/** `current` with what `desired` names in place of it, at every depth; lists and whole fields are replaced. */
export function merged(current: Unchecked, desired: Unchecked, whole: WholeFields = {}): Unchecked {
  const entries = Object.entries(desired).map(([name, value]) => {
    const old = current[name]
    return [name, whole[name] === undefined && isObject(value) && isObject(old) ? merged(old, value) : value]
  })
  return { ...current, ...Object.fromEntries(entries) }
}
