// By which environments and tags of a resource approval workflows choose an item.
import type { Unchecked } from '../../../core/json-object.ts'

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.map(String) : typeof value === 'string' ? [value] : []

/**
 * The environments and tags that a resource has or will have, so that nobody evades an approval by taking away what
 * asks for it; of what has a scope, those of the scope.
 */
export function traitsOf(specs: readonly Unchecked[]): { environments: string[]; tags: string[] } {
  const all = specs.flatMap(spec => [spec, (spec.scope ?? {}) as Unchecked])
  return {
    environments: all.flatMap(each => [...textsOf(each.environment), ...textsOf(each.environments)]),
    tags: all.flatMap(each => textsOf(each.tags)),
  }
}
