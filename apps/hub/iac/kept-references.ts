// References to what was deleted since: a resource keeps them, such as a connection whose server is gone, so its
// manifest may go on saying them while it leaves their field as it is. What was exported plans to nothing (RES-127).
import type { FieldDiff } from '../../../core/iac/spec-diff.ts'
import type { Existing, ManifestKind, Reference } from './kinds/manifest-kind.ts'
import { madeKey } from './resolve-names.ts'

/** Those that the resource does not have already. */
export function addedReferences(
  kind: Pick<ManifestKind, 'referencesOf'>,
  references: readonly Reference[],
  existing: Existing | null,
): readonly Reference[] {
  if (references.length === 0 || existing === null) return references
  const kept = new Set(kind.referencesOf(existing.spec).map(each => madeKey(each.kind, each.name)))
  return references.filter(each => !kept.has(madeKey(each.kind, each.name)))
}

/** Those in fields that will be written. */
export function changedReferences(references: readonly Reference[], diff: readonly FieldDiff[]): readonly Reference[] {
  const changed = new Set(diff.map(({ field }) => field.split('.')[0]))
  return references.filter(({ at }) => changed.has(String(at[0])))
}
