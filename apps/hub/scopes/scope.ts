// The scope of rules, silences and checks: how it comes in, what it must be (decision G-68), and how tags, environments,
// roles and datacenters become resolved_server_ids, in the same transaction as whatever changes them (document 1).
import { type SQL, sql } from 'drizzle-orm'
import type { RuleScope } from '../../../core/alerting/rule.ts'
import type { Executor } from '../db/connect.ts'
import { type Tx, uuidList } from '../db/transaction.ts'
import type { Words } from '../http/texts.ts'
import { words } from '../http/texts.ts'
import type { Hub } from '../hub-context.ts'
import { type ReloadKind, reloadCollectors } from '../jobs/collector-jobs.ts'

type Listed = readonly string[] | null | undefined

export type ScopeInput = {
  readonly all?: boolean | null | undefined
  readonly server_ids?: Listed
  readonly tags?: Listed
  readonly environments?: Listed
  readonly roles?: Listed
  readonly datacenters?: Listed
}

const unique = (list: Listed): string[] => [...new Set(list ?? [])].sort()

/** The stored form: every member there, lists sorted and without doubles. */
export const toScope = (input: ScopeInput): RuleScope => ({
  all: input.all === true,
  server_ids: unique(input.server_ids?.map(id => id.toLowerCase())),
  tags: unique(input.tags),
  environments: unique(input.environments),
  roles: unique(input.roles),
  datacenters: unique(input.datacenters),
})

/** What is wrong with a scope, by field: it names nothing, or machines that the company does not have. */
export async function scopeFaults(db: Executor, companyId: string, scope: RuleScope): Promise<Map<string, Words>> {
  const faults = new Map<string, Words>()
  const names = scope.server_ids.length + scope.tags.length + scope.environments.length
  if (!scope.all && names + scope.roles.length + scope.datacenters.length === 0)
    faults.set('scope', words('scope_empty'))
  if (scope.server_ids.length === 0) return faults
  const known = await db.execute<{ id: string }>(sql`
    select id from servers where company_id = ${companyId} and deleted_at is null
      and id = any(${uuidList(scope.server_ids)}::uuid[])`)
  const ids = new Set(known.map(row => row.id))
  const position = scope.server_ids.findIndex(id => !ids.has(id))
  if (position >= 0) faults.set('scope.server_ids', words('unknown_reference'))
  return faults
}

/** Whether machine `s` is in the scope column of record `r`, which is not all. */
const IN_SCOPE: SQL = sql`s.company_id = r.company_id and s.deleted_at is null and (
  jsonb_exists(r.scope->'server_ids', s.id::text) or jsonb_exists_any(r.scope->'tags', s.tags)
  or jsonb_exists(r.scope->'environments', s.environment) or jsonb_exists(r.scope->'roles', s.role)
  or jsonb_exists(r.scope->'datacenters', s.datacenter))`

/** The machines that a scope covers now, sorted; for `all` every machine of the company. */
export async function resolveScope(db: Executor, companyId: string, scope: RuleScope): Promise<string[]> {
  if (scope.all) {
    const rows = await db.execute<{ id: string }>(
      sql`select id from servers where company_id = ${companyId} and deleted_at is null order by id`,
    )
    return rows.map(row => row.id)
  }
  const rows = await db.execute<{ id: string }>(sql`
    select s.id from servers s, (select ${companyId}::uuid as company_id, ${JSON.stringify(scope)}::jsonb as scope) r
    where ${IN_SCOPE} order by s.id`)
  return rows.map(row => row.id)
}

/** What is stored and served as resolved_server_ids: nothing for `all`, which needs no list. */
export const resolvedIds = (db: Executor, companyId: string, scope: RuleScope): Promise<string[]> =>
  scope.all ? Promise.resolve([]) : resolveScope(db, companyId, scope)

const SCOPED = [
  { feed: 'rules', table: 'monitoring_rules' },
  { feed: 'silences', table: 'monitoring_silences' },
  { feed: 'checks', table: 'monitoring_checks' },
] as const satisfies readonly { feed: ReloadKind; table: string }[]

/**
 * Brings resolved_server_ids of a company's rules, silences and checks in step after the given machines were added,
 * removed or changed. Only records whose set changes get a new sync_version; their business version stays.
 */
export async function refreshScopes(hub: Hub, tx: Tx, companyId: string, serverIds: readonly string[]): Promise<void> {
  if (serverIds.length === 0) return
  const changed = uuidList(serverIds)
  for (const { feed, table } of SCOPED) {
    const rows = await tx.db.execute<{ id: string }>(sql`
      with fresh as (
        select r.id, array(
          select x from unnest(r.resolved_server_ids) x where not x = any(${changed}::uuid[])
          union select s.id from servers s where s.id = any(${changed}::uuid[]) and ${IN_SCOPE}
          order by 1) as ids
        from ${sql.identifier(table)} r
        where r.company_id = ${companyId} and r.deleted_at is null and not (r.scope->>'all')::boolean)
      update ${sql.identifier(table)} t set resolved_server_ids = fresh.ids from fresh
      where t.id = fresh.id and t.resolved_server_ids is distinct from fresh.ids returning t.id`)
    if (rows.length === 0) continue
    tx.touch(
      feed,
      rows.map(row => row.id),
    )
    await reloadCollectors(hub, tx, feed)
  }
}
