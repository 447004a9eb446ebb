// A scope in manifests: servers by name instead of by id (decision G-126).
import { Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import type { RuleScope } from '../../../../core/alerting/rules/rule.ts'
import { isObject, type Unchecked } from '../../../../core/json-object.ts'
import { limits } from '../../../../core/limits.ts'
import type { Executor } from '../../platform/db/connect.ts'
import { uuidList } from '../../platform/db/transaction.ts'
import { boolean, listOf, text } from '../../platform/http/request-schema.ts'
import type { ScopeInput } from '../../scopes/scope.ts'
import type { NameFinder, Reference } from './manifest-kind.ts'

const names = () => Type.Optional(listOf(text(limits.scopeNameCharsMax), limits.scopeNamesMax))

const serverNames = () => Type.Optional(listOf(text(255), limits.scopeServerIdsMax))

/** `server_ids`, as the API calls the member, is taken for `servers`: names in either. */
export const namedScope = () =>
  Type.Object({
    all: Type.Optional(boolean()),
    servers: serverNames(),
    server_ids: serverNames(),
    tags: names(),
    environments: names(),
    roles: names(),
    datacenters: names(),
  })

const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter(item => typeof item === 'string') : []
const sorted = (list: readonly string[]): string[] => [...new Set(list)].sort()

/** The servers that the scope of a spec names. */
export function scopeReferences(spec: Unchecked): Reference[] {
  const scope = isObject(spec.scope) ? spec.scope : {}
  return ['servers', 'server_ids'].flatMap(member =>
    textsOf(scope[member]).map((name, index) => ({ kind: 'server', name, at: ['scope', member, index] })),
  )
}

/** Every member there, and servers by their display names. */
export function normalScope(scope: unknown, find: NameFinder): Unchecked {
  const given = isObject(scope) ? scope : {}
  return {
    all: given.all === true,
    servers: sorted(
      [...textsOf(given.servers), ...textsOf(given.server_ids)].map(name => find('server', name)?.name ?? name),
    ),
    tags: sorted(textsOf(given.tags)),
    environments: sorted(textsOf(given.environments)),
    roles: sorted(textsOf(given.roles)),
    datacenters: sorted(textsOf(given.datacenters)),
  }
}

/** The scope that the API takes; servers that are not there yet are left out. */
export function scopeInput(scope: unknown, find: NameFinder): ScopeInput {
  const given = normalScope(scope, find)
  return {
    all: given.all === true,
    server_ids: textsOf(given.servers).flatMap(name => find('server', name)?.id ?? []),
    tags: textsOf(given.tags),
    environments: textsOf(given.environments),
    roles: textsOf(given.roles),
    datacenters: textsOf(given.datacenters),
  }
}

/** Stored scopes with the names of their servers. */
export async function withServerNames(
  db: Executor,
  companyId: string,
  scopes: readonly RuleScope[],
): Promise<(scope: RuleScope) => Unchecked> {
  const ids = new Set(scopes.flatMap(scope => scope.server_ids))
  const rows =
    ids.size === 0
      ? []
      : await db.execute<{ id: string; name: string }>(sql`
          select id, name from servers where company_id = ${companyId} and id = any(${uuidList(ids)}::uuid[])`)
  const nameOf = new Map(rows.map(row => [row.id, row.name]))
  return ({ server_ids, ...scope }) => ({ ...scope, servers: sorted(server_ids.map(id => nameOf.get(id) ?? id)) })
}
