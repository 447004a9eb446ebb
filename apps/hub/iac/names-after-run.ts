// What things are called once a run is applied (resources.md R-035): it makes resources and parts, and renames others.
// A plan compares with these names, so that it says what applying will find after what comes before.
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import type { Existing, ManifestKind, Reading } from './kinds/manifest-kind.ts'
import { partName } from './kinds/names-by-id.ts'
import { desiredName } from './manifest-effect.ts'
import type { Matched } from './match-existing.ts'
import { madeKey, nameAfter, type Renames } from './resolve-names.ts'

type Made = ReadonlyMap<string, { readonly id: string | null; readonly name: string; readonly path: string }>
/** Of one company. */
export type RunNames = { readonly made: Made; readonly renames: Renames }

/** The display name that a resource has afterwards: only a manifest that names it, or did so before, changes it. */
function finalName({ manifest: { spec, slug }, existing, applied }: Matched): string {
  const isNamed = (given: Unchecked | null): boolean => typeof given?.name === 'string' && given.name !== ''
  return existing !== null && !isNamed(spec) && !isNamed(applied) ? existing.name : desiredName(spec, slug)
}

/** What a run makes in a company, by slug and display name, with the path of the manifest, and what it renames. */
export function runNames(matched: readonly Matched[], companyId: string): RunNames {
  const made = new Map<string, { id: string | null; name: string; path: string }>()
  const renames = new Map<string, string>()
  for (const each of matched) {
    const { manifest, existing } = each
    if (manifest.companyId !== companyId || manifest.isAbsent) continue
    const { kind, slug, spec, path } = manifest
    const hasName = Object.hasOwn(kind.spec.properties, 'name')
    const name = existing !== null && !hasName ? existing.name : finalName(each)
    for (const called of new Set([kind.kind, kind.resourceKind])) {
      for (const key of [slug, desiredName(spec, slug)])
        made.set(madeKey(called, key), { id: existing?.id ?? null, name, path })
      if (existing !== null && existing.name !== name) renames.set(madeKey(called, existing.name), name)
    }
    for (const part of kind.partsOf?.(spec) ?? []) {
      const whole = partName(name, part.name)
      for (const key of [whole, partName(slug, part.name), part.name])
        made.set(madeKey(part.kind, key), { id: null, name: whole, path })
    }
  }
  return { made, renames }
}

/** A value with another one at a place; a list of names stays sorted. */
function replaced(value: unknown, [step, ...rest]: readonly (string | number)[], name: string): unknown {
  if (step === undefined) return name
  if (Array.isArray(value)) {
    const list = value.with(Number(step), replaced(value[Number(step)], rest, name))
    return rest.length === 0 ? list.sort() : list
  }
  return isObject(value) ? { ...value, [step]: replaced(value[step], rest, name) } : value
}

/** A resource whose spec has the names that what it refers to has afterwards. */
export function withNewNames(reading: Reading, kind: ManifestKind, existing: Existing, renames: Renames): Existing {
  if (renames.size === 0) return existing
  const spec = kind.referencesOf(existing.spec).reduce<unknown>((sum, { kind: named, name, at }) => {
    const after = nameAfter(reading, renames, named, name)
    return after === name ? sum : replaced(sum, at, after)
  }, existing.spec)
  return { ...existing, spec: isObject(spec) ? spec : existing.spec }
}
