// The silence of what a filter names: by tag, environment, role or data centre it holds for servers that come later,
// too.

import { parseFilter } from '../../address/filter.ts'
import { shellWords } from '../../words/shell.ts'
import type { ApiFault } from '../api.ts'
import { textsOf } from '../session.ts'
import type { SilenceStart } from './silence-start.ts'

const t = textsOf(shellWords)

type Scope = NonNullable<SilenceStart['scope']>

/** The servers that a filter finds. */
type Found = {
  readonly serverIds: readonly string[]
  /** How many more there are than a scope lists. */
  readonly leftOut: number
  /** How they spell what the filter names. */
  readonly spelled: readonly string[]
}

const members = { tag: 'tags', env: 'environments', role: 'roles', dc: 'datacenters' } as const
const isMember = (key: string | null): key is keyof typeof members => key !== null && Object.hasOwn(members, key)

/** Whether a filter of alerts names servers by what they are: a silence of these hides what it finds, and no others. */
export const isOfServers = (text: string): boolean =>
  parseFilter(text).every(({ key }) => key === 'server' || isMember(key))

/**
 * Null where a scope cannot say it: what a scope names is one of several, and a filter wants all of its keys; nor does
 * a scope exclude, or search. A comma separates values in the form of a silence.
 */
function scopeOfFilter(text: string, spelled: readonly string[]): Scope | null {
  const terms = parseFilter(text)
  const key = terms[0]?.key ?? null
  const isPlain = terms.every(term => term.key === key && !term.isExcluded && term.operator === '=')
  if (!isPlain || !isMember(key)) return null
  // What no server is called yet is what was typed.
  const named = terms.flatMap(({ value }) => {
    const known = spelled.filter(each => each.toLowerCase() === value.toLowerCase())
    return known.length > 0 ? known : [value]
  })
  if (named.some(each => each.includes(','))) return null
  const nothing: Scope = { all: false, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] }
  return { ...nothing, [members[key]]: [...new Set(named)] }
}

/** What a silence of it begins with. Throws an ApiFault where these are more servers than it can name. */
export function silenceOfFilter(text: string, { serverIds, leftOut, spelled }: Found): SilenceStart {
  const scope = scopeOfFilter(text, spelled)
  if (scope !== null) return { scope }
  if (leftOut === 0) return { serverIds }
  const message = t('too_many_servers', { count: serverIds.length })
  const fault: ApiFault = { status: 422, message, errors: {}, requestId: null }
  throw fault
}
