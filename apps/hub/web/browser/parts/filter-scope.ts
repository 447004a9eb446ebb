// The scope of a silence of what a filter names: by tag, environment, role or data centre it holds for servers that
// come later, too.
import { parseFilter } from '../../address/filter.ts'
import type { SilenceStart } from './silence-start.ts'

type Scope = NonNullable<SilenceStart['scope']>

const members = { tag: 'tags', env: 'environments', role: 'roles', dc: 'datacenters' } as const
const isMember = (key: string | null): key is keyof typeof members => key !== null && Object.hasOwn(members, key)

/**
 * Null where a scope cannot say it: what a scope names is one of several, and a filter wants all of its keys; nor does
 * a scope exclude, or search. A comma separates values in the form of a silence.
 */
export function scopeOfFilter(text: string): Scope | null {
  const terms = parseFilter(text)
  const key = terms[0]?.key ?? null
  const isPlain = terms.every(
    term => term.key === key && !term.isExcluded && term.operator === '=' && !term.value.includes(','),
  )
  if (!isPlain || !isMember(key)) return null
  const nothing: Scope = { all: false, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] }
  return { ...nothing, [members[key]]: terms.map(({ value }) => value) }
}
