// What becomes of the resources and scopes that use a value of an option list when it is renamed or replaced.
import { sql } from 'drizzle-orm'
import { auditMany } from '../audit/audit.ts'
import type { Tx } from '../platform/db/transaction.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { refreshScopes } from '../scopes/scope.ts'
import { raiseAgentsOf } from '../servers/change-many-servers.ts'
import { optionLists } from './option-lists.ts'

/** Whether it is one of the kinds of the registry, whose rows have a version. */
const isRow = (kind: string): boolean => kind !== 'server' && kind !== 'silence'

/** Rewrites a value wherever it is used, with the scopes that name it. Returns how many resources had it. */
export async function rewrite(context: RouteContext, tx: Tx, list: string, from: string, to: string): Promise<number> {
  const { hub, companyId } = context
  let count = 0
  const servers: string[] = []
  for (const { kind, field, table, column, isList } of optionLists[list]?.uses ?? []) {
    const name = sql.identifier(column)
    const [set, where] = isList
      ? [
          sql`array(select distinct x from unnest(array_replace(${name}, ${from}::text, ${to}::text)) x order by x)`,
          sql`${name} @> array[${from}]::text[]`,
        ]
      : [sql`${to}::text`, sql`${name} = ${from}`]
    const more = isRow(kind)
      ? sql`, version = version + 1, updated_at = now(), updated_by = ${context.caller.user.id}::uuid`
      : kind === 'server'
        ? sql`, updated_at = now()`
        : sql``
    const rows = await tx.db.execute<{ id: string; name: string; old: unknown; new: unknown }>(sql`
      with used as materialized (
        select id, ${name} as old from ${sql.identifier(table)}
        where company_id = ${companyId} and deleted_at is null and ${where} for update)
      update ${sql.identifier(table)} t set ${name} = ${set} ${more} from used where t.id = used.id
      returning t.id, ${sql.identifier(kind === 'silence' ? 'reason' : 'name')}::text as name,
        to_jsonb(used.old) as old, to_jsonb(t.${name}) as new`)
    count += rows.length
    const changed = rows.map(row => ({
      subject: { type: kind, id: row.id, name: row.name.slice(0, 100) },
      changes: { [field]: { old: row.old, new: row.new } },
    }))
    await auditMany(tx, context, `${kind}.update`, changed)
    if (kind === 'server') servers.push(...rows.map(row => row.id))
    if (kind === 'silence')
      tx.touch(
        'silences',
        rows.map(row => row.id),
      )
  }
  await rewriteScopes(tx, companyId, list, from, to)
  if (servers.length > 0) {
    tx.touch('servers', servers)
    await refreshScopes(hub, tx, companyId, servers)
    // Collectors have the datacenter of a server from its agent, and group incidents by it.
    if (list === 'datacenters') await raiseAgentsOf(hub, tx, servers)
  }
  return count
}

/** The member of scopes that holds values of a list. */
const SCOPE_MEMBERS: Readonly<Record<string, string>> = {
  environments: 'environments',
  roles: 'roles',
  datacenters: 'datacenters',
  resource_tags: 'tags',
}
const SCOPED = { monitoring_rules: 'rules', monitoring_silences: 'silences', monitoring_checks: 'checks' } as const

async function rewriteScopes(tx: Tx, companyId: string, list: string, from: string, to: string): Promise<void> {
  const member = SCOPE_MEMBERS[list]
  if (member === undefined) return
  for (const [table, feed] of Object.entries(SCOPED)) {
    const rows = await tx.db.execute<{ id: string }>(sql`
      update ${sql.identifier(table)} set scope = jsonb_set(scope, array[${member}], (
        select coalesce(jsonb_agg(distinct case when x = ${from} then ${to}::text else x end), '[]')
        from jsonb_array_elements_text(scope -> ${member}::text) x))
      where company_id = ${companyId} and deleted_at is null and scope -> ${member}::text @> to_jsonb(${from}::text)
      returning id`)
    tx.touch(
      feed as 'rules',
      rows.map(row => row.id),
    )
  }
}
