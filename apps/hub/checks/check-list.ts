// Active checks as people see them (decision G-119).
import { desc, isNull, type SQL, sql } from 'drizzle-orm'
import { checks } from '../platform/db/schema.ts'
import { collection, equals, filter, isOn, ofCompany, search } from '../platform/http/collection.ts'
import { oneOf, uuid } from '../platform/http/request-schema.ts'
import { checkResponse } from './check-response.ts'
import { checkTypes } from './check-target.ts'

// The table is named in full: a column of the only table of a select is rendered bare, which here would mean the
// rule's.
const RULE_IDS: SQL<string[]> = sql`array(select r.id::text from monitoring_rules r
  where r.check_id = monitoring_checks.id and r.deleted_at is null order by r.created_at, r.id)`

/** The resource that a check belongs to, through which alone it is changed. */
export type ManagedBy = { readonly kind: string; readonly id: string }

type Row = { readonly check: typeof checks.$inferSelect; readonly ruleIds: string[] }

const managedBy = ({ managedByKind: kind, managedById: id }: Row['check']): ManagedBy | null =>
  kind === null || id === null ? null : { kind, id }

export const presentCheck = ({ check, ruleIds }: Row) => ({
  id: check.id,
  company_id: check.companyId,
  name: check.name,
  scope: check.scope,
  resolved_server_count: check.scope.all ? null : check.resolvedServerIds.length,
  type: check.type,
  target: check.target,
  interval_seconds: check.intervalSeconds,
  timeout_seconds: check.timeoutSeconds,
  enabled: check.enabled,
  rule_ids: ruleIds,
  managed_by: managedBy(check),
  created_at: check.createdAt,
  updated_at: check.updatedAt,
})

export const checkCollection = collection({
  table: checks,
  scope: ofCompany(checks.companyId, isNull(checks.deletedAt)),
  filters: {
    type: equals(checks.type, oneOf(checkTypes)),
    enabled: isOn(checks.enabled),
    search: search(checks.name),
  },
  within: {
    // The checks that apply to a server.
    server_id: filter(
      uuid(),
      serverId => sql`((${checks.scope}->>'all')::boolean or ${serverId} = any(${checks.resolvedServerIds}))`,
    ),
  },
  select: db => db.select({ check: checks, ruleIds: RULE_IDS }).from(checks),
  order: [desc(checks.createdAt), desc(checks.id)],
  response: checkResponse,
  present: presentCheck,
})

export const findCheck = checkCollection.find
export type CheckRow = Awaited<ReturnType<typeof findCheck>>
