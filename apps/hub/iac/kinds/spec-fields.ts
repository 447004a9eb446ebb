// Fields that the specs of many kinds have.
import type { Unchecked } from '../../../../core/json-object.ts'

/** The display name that a manifest asks for: spec.name, else the slug. */
export const nameOfSpec = (spec: Unchecked, slug: string): string =>
  typeof spec.name === 'string' && spec.name !== '' ? spec.name : slug

/** Lists of tags as they are stored: sorted, each once; none is an empty list. */
export const sortedTags = (spec: Unchecked): Unchecked =>
  spec.tags === undefined
    ? spec
    : { ...spec, tags: Array.isArray(spec.tags) ? [...new Set(spec.tags.map(String))].sort() : [] }
