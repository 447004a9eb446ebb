// What a manifest would do to a resource (resources.md R-036), at planning and again when it is applied.
import { createHash } from 'node:crypto'
import type { ItemAction } from '../../../core/iac/run-status.ts'
import { canonicalText, type FieldDiff, merged, specDiff, withReturnedDefaults } from '../../../core/iac/spec-diff.ts'
import type { Unchecked } from '../../../core/json-object.ts'
import type { Existing, ManifestKind, NameFinder } from './kinds/manifest-kind.ts'
import { nameOfSpec } from './kinds/spec-fields.ts'

type Wanted = {
  readonly slug: string
  /** Null: it is to be absent. */
  readonly spec: Unchecked | null
  /** The spec that was applied last under this slug. */
  readonly applied: Unchecked | null
}

export type Compared = {
  readonly action: ItemAction
  readonly diff: readonly FieldDiff[]
  /** The same for the same change of the same resource: what tickets and stale plans compare. */
  readonly hash: string
  /** The spec as it will be. */
  readonly whole: Unchecked
}

/** The display name that a manifest gives. */
export const desiredName = (spec: Unchecked, slug: string): string => nameOfSpec(spec, slug)

const hasName = (kind: ManifestKind): boolean => Object.hasOwn(kind.spec.properties, 'name')

function changeOf(kind: ManifestKind, wanted: Wanted, existing: Existing | null, find: NameFinder) {
  const { slug, spec, applied } = wanted
  const own = hasName(kind) ? { name: slug } : {}
  if (spec === null) {
    if (existing === null) return { action: 'none' as const, diff: [], whole: {} }
    const diff = Object.entries(existing.spec).map(([field, old]) => ({ field, old, new: null }))
    return { action: 'delete' as const, diff: diff.filter(({ old }) => old !== null), whole: existing.spec }
  }
  const given = Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== undefined))
  if (existing === null) {
    const named = hasName(kind) ? { ...given, name: desiredName(given, slug) } : given
    const desired = kind.normal(named, find)
    return { action: 'create' as const, diff: specDiff({}, desired, kind.whole), whole: desired }
  }
  const defaults = { ...kind.defaults, ...kind.usual?.(existing.spec), ...own }
  const desired = withReturnedDefaults(kind.normal(given, find), applied, defaults)
  const diff = specDiff(existing.spec, desired, kind.whole)
  const action = diff.length > 0 ? ('update' as const) : ('none' as const)
  return { action, diff, whole: merged(existing.spec, desired, kind.whole) }
}

/** What applying a manifest would do now. */
export function compareItem(kind: ManifestKind, wanted: Wanted, existing: Existing | null, find: NameFinder): Compared {
  const change = changeOf(kind, wanted, existing, find)
  // The database keeps no order of members.
  const sorted = [...change.diff].sort((a, b) => (a.field < b.field ? -1 : 1))
  const text = canonicalText([kind.kind, wanted.slug, change.action, sorted])
  return { ...change, hash: createHash('sha256').update(text).digest('hex') }
}
