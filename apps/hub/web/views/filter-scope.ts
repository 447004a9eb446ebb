// The scope of a silence of what a filter names: by tag, environment, role or data centre it holds for servers that
// come later, too. A filter makes nothing of case and a scope does: values are as servers spell them.
import type { RuleScope } from '../../../../core/alerting/rules/rule.ts'
import { parseFilter } from '../address/filter-language.ts'

type Server = {
  readonly tags: readonly string[]
  readonly environment: string | null
  readonly role: string | null
  readonly datacenter: string | null
}

const members = { tag: 'tags', env: 'environments', role: 'roles', dc: 'datacenters' } as const
const isMember = (key: string | null): key is keyof typeof members => key !== null && Object.hasOwn(members, key)

const valuesOf: Readonly<Record<keyof typeof members, (server: Server) => readonly (string | null)[]>> = {
  tag: server => server.tags,
  env: server => [server.environment],
  role: server => [server.role],
  dc: server => [server.datacenter],
}

/**
 * Of a filter and the servers that it finds. Null where a scope cannot say it: what a scope names is one of several,
 * and a filter wants all of its keys; nor does a scope exclude, or search. A comma separates values in the form of a
 * silence.
 */
export function scopeOfFilter(filter: string, servers: readonly Server[]): RuleScope | null {
  const terms = parseFilter(filter)
  const key = terms[0]?.key ?? null
  const isPlain = terms.every(term => term.key === key && !term.isExcluded && term.operator === '=')
  if (!isPlain || !isMember(key)) return null
  const known = new Set(servers.flatMap(server => valuesOf[key](server).flatMap(each => each ?? [])))
  const named = terms.flatMap(({ value }) => {
    const spelled = [...known].filter(each => each.toLowerCase() === value.toLowerCase())
    // What no server is called yet is what was typed.
    return spelled.length > 0 ? spelled : [value]
  })
  if (named.some(each => each.includes(','))) return null
  const nothing: RuleScope = { all: false, server_ids: [], tags: [], environments: [], roles: [], datacenters: [] }
  return { ...nothing, [members[key]]: [...new Set(named)] }
}
