// The scope of rules, silences and checks: how it comes in, what it must be (decision G-68), and how tags,
// environments, roles and datacenters become resolved_server_ids, in the same transaction as whatever changes them
// (document 1).
import { type SQL, sql } from 'drizzle-orm'
import type { RuleScope } from '../../../core/alerting/rules/rule.ts'
import { limits } from '../../../core/limits.ts'
import { type ReloadKind, reloadCollectors } from '../collectors/collector-jobs.ts'
import type { Hub } from '../hub-context.ts'
import { checkCompanyLimit } from '../plans/company-limits.ts'
import type { Executor } from '../platform/db/connect.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import type { Words } from '../platform/http/api-texts.ts'
import { words } from '../platform/http/api-texts.ts'
import { faultsError, schemaFaults, scope as scopeForm } from '../platform/http/request-schema.ts'

type Listed = readonly string[] | null | undefined

export type ScopeInput = {
  readonly all?: boolean | null | undefined
  readonly server_ids?: Listed
  readonly tags?: Listed
  readonly environments?: Listed
  readonly roles?: Listed
  readonly datacenters?: Listed
}

const FORM = scopeForm()
export const isScope = (value: unknown): value is ScopeInput => schemaFaults(FORM, value).size === 0

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

/** What a deleted record has in place of its scope: nothing of it is kept or delivered. */
export const NO_SCOPE = {
  scope: toScope({}),
  resolvedServerIds: [],
}

/**
 * What is wrong with a scope, by field: it names nothing, or servers that the company does not have. Those that the
 * record has already (`before`) may have been deleted since, and are no hindrance to changing the rest of it.
 */
export async function scopeFaults(
  db: Executor,
  companyId: string,
  scope: RuleScope,
  before: RuleScope | null = null,
): Promise<Map<string, Words>> {
  const faults = new Map<string, Words>()
  const names = scope.server_ids.length + scope.tags.length + scope.environments.length
  if (!scope.all && names + scope.roles.length + scope.datacenters.length === 0)
    faults.set('scope', words('scope_empty'))
  if (scope.server_ids.length === 0) return faults
  const known = await db.execute<{ id: string }>(sql`
    select id from servers where company_id = ${companyId} and deleted_at is null
      and id = any(${uuidList(scope.server_ids)}::uuid[])`)
  const ids = new Set([...known.map(row => row.id), ...(before?.server_ids ?? [])])
  const position = scope.server_ids.findIndex(id => !ids.has(id))
  if (position >= 0) faults.set('scope.server_ids', words('unknown_reference'))
  return faults
}

/** The stored form of a scope that is fine; 422 on its fields otherwise. */
export async function validScope(
  db: Executor,
  companyId: string,
  input: ScopeInput,
  before: RuleScope | null = null,
): Promise<RuleScope> {
  const scope = toScope(input)
  const faults = await scopeFaults(db, companyId, scope, before)
  if (faults.size > 0) throw faultsError(faults)
  return scope
}

/** Whether server `s` is in the scope column of record `r`, which is not all. */
const IN_SCOPE: SQL = sql`s.company_id = r.company_id and s.deleted_at is null and (
  jsonb_exists(r.scope->'server_ids', s.id::text) or jsonb_exists_any(r.scope->'tags', s.tags)
  or jsonb_exists(r.scope->'environments', s.environment) or jsonb_exists(r.scope->'roles', s.role)
  or jsonb_exists(r.scope->'datacenters', s.datacenter))`

/** The servers that a scope covers now, sorted; for `all` every server of the company. */
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

/** Silences that are over silence nothing more, whichever servers they covered. */
const SCOPED: readonly {
  readonly feed: Exclude<ReloadKind, 'settings'>
  readonly table: string
  readonly also?: SQL
}[] = [
  { feed: 'rules', table: 'monitoring_rules' },
  {
    feed: 'silences',
    table: 'monitoring_silences',
    also: sql`and r.cancelled_at is null and (r.windows_until is not null
      or r.ends_at > now() - make_interval(secs => ${limits.silenceKeepMs / 1000}))`,
  },
  { feed: 'checks', table: 'monitoring_checks' },
]

/**
 * Which of the changed servers each set covers now: servers and scopes meet by the words that both have, so that ten
 * thousand servers and a thousand records cost what they have in common and not what they could have.
 */
const COVERED: SQL = sql`
  select r.n, s.id from sets r cross join lateral jsonb_array_elements_text(r.scope->'server_ids') w (word)
    join servers s on s.id::text = w.word
  union select r.n, s.id from sets r cross join lateral jsonb_array_elements_text(r.scope->'tags') w (word)
    join (select id, unnest(tags) as word from servers) s on s.word = w.word
  union select r.n, s.id from sets r cross join lateral jsonb_array_elements_text(r.scope->'environments') w (word)
    join servers s on s.environment = w.word
  union select r.n, s.id from sets r cross join lateral jsonb_array_elements_text(r.scope->'roles') w (word)
    join servers s on s.role = w.word
  union select r.n, s.id from sets r cross join lateral jsonb_array_elements_text(r.scope->'datacenters') w (word)
    join servers s on s.datacenter = w.word`

/**
 * Brings resolved_server_ids of a company's rules, silences and checks in step after the given servers were added,
 * removed or changed. Only records whose set changes get a new sync_version; their business version stays. Records of
 * the same scope are one set, worked out once. A server that comes with tags counts with those, which are stored later.
 */
export async function refreshScopes(
  hub: Hub,
  tx: Tx,
  companyId: string,
  changed: readonly (string | { readonly id: string; readonly tags: readonly string[] })[],
): Promise<void> {
  if (changed.length === 0) return
  const given = JSON.stringify(changed.map(each => (typeof each === 'string' ? { id: each } : each)))
  let grown = 0
  for (const { feed, table, also } of SCOPED) {
    const rows = await tx.db.execute<{ id: string; grown: number }>(sql`
      with given as materialized (select id, tags from jsonb_to_recordset(${given}::jsonb) as x (id uuid, tags text[])),
      servers as materialized (
        select s.id, coalesce(g.tags, s.tags) as tags, s.environment, s.role, s.datacenter from servers s join given g on g.id = s.id
        where s.company_id = ${companyId} and s.deleted_at is null),
      sets as materialized (
        select row_number() over () as n, r.scope, r.resolved_server_ids as ids, array_agg(r.id) as records
        from ${sql.identifier(table)} r
        where r.company_id = ${companyId} and r.deleted_at is null and not (r.scope->>'all')::boolean ${also ?? sql``}
        group by r.scope, r.resolved_server_ids),
      members as (
        (${COVERED}) union all
        select r.n, x.id from sets r cross join lateral unnest(r.ids) x (id)
        where not exists (select 1 from given g where g.id = x.id)),
      fresh as (select n, array_agg(id order by id) as ids from members group by n)
      update ${sql.identifier(table)} t set resolved_server_ids = coalesce(f.ids, '{}')
      from sets r left join fresh f on f.n = r.n
      where r.ids is distinct from coalesce(f.ids, '{}') and t.id = any(r.records)
      returning t.id, coalesce(cardinality(f.ids), 0) - cardinality(r.ids) as grown`)
    if (rows.length === 0) continue
    tx.touch(
      feed,
      rows.map(row => row.id),
    )
    await reloadCollectors(hub, tx, feed)
    for (const row of rows) grown += row.grown
  }
  if (grown > 0) await checkCompanyLimit(hub, tx, companyId, 'scope_ids')
}
