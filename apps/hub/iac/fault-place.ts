// Where in a manifest a fault is: the API names fields and items of what will be written, people look for the key and
// the line that they wrote.
import { canonicalText } from '../../../core/iac/spec-diff.ts'
import { isObject, type Unchecked } from '../../../core/json-object.ts'
import type { RunError } from '../platform/db/schema-iac.ts'
import type { ManifestKind } from './kinds/manifest-kind.ts'
import type { ManifestText } from './read-manifest-yaml.ts'

type Place = readonly (string | number)[]
/** What of a manifest tells the place of its faults. */
type Source = {
  readonly path: string
  readonly kind: ManifestKind
  readonly slug: string
  readonly spec: Unchecked
  readonly lineOf: ManifestText['lineOf']
}

/** Nobody reads more of one file, and each is looked up. */
export const FAULTS_MAX = 50
/** Longer lists, such as the records of a zone, are kept in the order in which they were written. */
const SORTED_MAX = 1_000

/** A fault at a place of the spec. */
export const specFault = ({ path, lineOf }: Source, at: Place, message: string): RunError => ({
  path,
  line: lineOf(['spec', ...at]),
  message: `spec.${at.join('.')}: ${message}`,
})

/** Two manifests mean one resource: the second one's fault names both. */
export const sameResourceFault = ({ path, kind, slug }: Source, other: string): RunError => ({
  path,
  line: null,
  message: `${kind.kind} ${slug}: ${other} and ${path} are about the same resource`,
})

/** How many members two items have in common. */
const likeness = (written: unknown, whole: unknown): number =>
  isObject(written) && isObject(whole)
    ? Object.keys(written).filter(key => canonicalText(written[key]) === canonicalText(whole[key])).length
    : 0

/** The index in the manifest of an item whose list was sorted and completed; the same one where none is like it. */
function writtenIndex(written: readonly unknown[], whole: readonly unknown[], index: number): number {
  if (written.length > SORTED_MAX) return index
  const item = whole[index]
  const own = likeness(written[index], item)
  const likes = written.map(each => likeness(each, item))
  const most = Math.max(own, ...likes)
  return own === most ? index : likes.indexOf(most)
}

/** A place in the spec as it will be, as one in the spec that was written. */
function writtenPlace(written: unknown, whole: unknown, [step, ...rest]: readonly string[]): string[] {
  if (step === undefined) return []
  const isItem = Array.isArray(written) && Array.isArray(whole) && /^\d+$/.test(step)
  const at = isItem ? String(writtenIndex(written, whole, Number(step))) : step
  const inside = (value: unknown, key: string): unknown =>
    Array.isArray(value) ? value[Number(key)] : isObject(value) ? value[key] : undefined
  return [at, ...writtenPlace(inside(written, at), inside(whole, step), rest)]
}

/** A fault at a field as the API names it. `whole` is the spec as it will be. */
export function fieldFault(manifest: Source, whole: Unchecked, field: string, message: string): RunError {
  const { kind, spec, path, lineOf } = manifest
  const steps = (kind.specField?.(field) ?? field).split('.')
  // Such as a limit: it is about the resource and not about one of its fields.
  if (!Object.hasOwn(kind.spec.properties, steps[0] ?? ''))
    return { path, line: lineOf(['spec']), message: `${field}: ${message}` }
  const place = writtenPlace(spec, whole, steps)
  return specFault(manifest, kind.writtenPlace?.(place, spec) ?? place, message)
}
