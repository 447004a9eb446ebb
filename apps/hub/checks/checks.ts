// Active checks: what agents probe, per company and scope, with the rules that come with them (decisions G-92, G-119,
// G-120).
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { and, eq, type SQL, sql } from 'drizzle-orm'
import type { RuleScope } from '../../../core/alerting/rules/rule.ts'
import { limits } from '../../../core/limits.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { reloadCollectors } from '../collectors/collector-jobs.ts'
import { checkCompanyLimit } from '../plans/company-limits.ts'
import { type CheckType, checks, rules } from '../platform/db/schema.ts'
import { inTransaction, lockCompany, type Tx, uuidList } from '../platform/db/transaction.ts'
import { invalid, invalidField } from '../platform/http/api-error.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { type Editor, editorOf } from '../resources/editor.ts'
import { NO_SCOPE, resolvedIds, type ScopeInput, validScope } from '../scopes/scope.ts'
import { type CheckRow, findCheck, type ManagedBy, presentCheck } from './check-list.ts'
import { isSameSeries, parseTarget, type Target, targetMatchers } from './check-target.ts'
import { createRules } from './rule-of-new-check.ts'

/** Refuses a save after which more than 50 enabled checks would apply to one server, naming the first (G-120). */
async function checkServerLimit(tx: Tx, companyId: string): Promise<void> {
  const [over] = await tx.db.execute<{ name: string }>(sql`
    with general as (select count(*)::int as count from monitoring_checks
      where company_id = ${companyId} and deleted_at is null and enabled and (scope->>'all')::boolean),
    own as (select server_id, count(*)::int as count from monitoring_checks c, unnest(c.resolved_server_ids) server_id
      where c.company_id = ${companyId} and c.deleted_at is null and c.enabled and not (c.scope->>'all')::boolean
      group by server_id)
    select s.name from servers s cross join general left join own on own.server_id = s.id
    where s.company_id = ${companyId} and s.deleted_at is null
      and general.count + coalesce(own.count, 0) > ${limits.checksPerServerMax}
    order by lower(s.name) limit 1`)
  if (over) throw invalidField('scope', 'checks_per_machine', { max: limits.checksPerServerMax, server: over.name })
}

/**
 * Two checks of one type whose targets give the same labels would write one series: an address, whatever status is
 * expected of it, and addresses that are cut to the same label (G-63). Needs the company's lock. `among` is which of
 * its checks count.
 */
async function refuseSharedSeries(
  tx: Tx,
  companyId: string,
  { id, type, target }: { readonly id: string; readonly type: CheckType; readonly target: Target },
  among: SQL = sql`true`,
): Promise<void> {
  const others = await tx.db
    .select({ target: checks.target })
    .from(checks)
    .where(
      and(
        eq(checks.companyId, companyId),
        eq(checks.type, type),
        sql`${checks.deletedAt} is null`,
        sql`${checks.id} <> ${id}`,
        among,
      ),
    )
  if (others.some(other => isSameSeries(type, other.target, target))) throw invalidField('target', 'check_exists')
}

type CheckInput = {
  readonly name?: string | undefined
  readonly scope?: ScopeInput | undefined
  readonly type?: CheckType | undefined
  readonly target?: Readonly<Record<string, unknown>> | undefined
  readonly interval_seconds?: number | null | undefined
  readonly timeout_seconds?: number | null | undefined
  readonly enabled?: boolean | null | undefined
}

function validTarget(type: CheckType, raw: Readonly<Record<string, unknown>>): Target {
  const parsed = parseTarget(type, raw)
  if ('target' in parsed) return parsed.target
  throw invalid({ [parsed.field]: parsed.text })
}

const subjectOf = (row: CheckRow) => ({ type: 'check', id: row.check.id, name: row.check.name })

type NewCheck = CheckInput & {
  readonly name: string
  readonly scope: ScopeInput
  readonly type: CheckType
  readonly target: Readonly<Record<string, unknown>>
}
/** A copy is disabled; a managed check belongs to a resource, through which alone it is changed. */
type NewCheckOptions = { readonly isCopy?: boolean; readonly managedBy?: ManagedBy }

/**
 * The checks whose series a check must not share: those that people made, wherever they apply, and those on a server of
 * its own. Managed ones share a target when each is on another server: many servers need one database.
 */
async function seriesRivals(tx: Tx, companyId: string, scope: RuleScope, isManaged: boolean): Promise<SQL> {
  const ids = await resolvedIds(tx.db, companyId, scope)
  const onSameServer = scope.all
    ? sql`true`
    : sql`((${checks.scope}->>'all')::boolean or ${checks.resolvedServerIds} && ${uuidList(ids)}::uuid[])`
  return isManaged ? onSameServer : sql`(${checks.managedByKind} is null or ${onSameServer})`
}

/** Creates a check with its rules, in a transaction that holds the company's lock. Throws 422. */
export async function insertCheck(
  tx: Tx,
  editor: Editor,
  input: NewCheck,
  { isCopy = false, managedBy }: NewCheckOptions = {},
): Promise<CheckRow> {
  const { hub, companyId } = editor
  const target = validTarget(input.type, input.target)
  const scope = await validScope(tx.db, companyId, input.scope)
  const id = randomUUID()
  // A copy, which is disabled, may share its original's series until one of the two is to be enabled.
  const rivals = await seriesRivals(tx, companyId, scope, managedBy !== undefined)
  if (!isCopy) await refuseSharedSeries(tx, companyId, { id, type: input.type, target }, rivals)
  await tx.db.insert(checks).values({
    id,
    companyId,
    name: input.name,
    scope,
    resolvedServerIds: await resolvedIds(tx.db, companyId, scope),
    type: input.type,
    target,
    intervalSeconds: input.interval_seconds ?? 60,
    timeoutSeconds: input.timeout_seconds ?? limits.checkTimeoutSecondsDefault,
    enabled: input.enabled ?? true,
    managedByKind: managedBy?.kind ?? null,
    managedById: managedBy?.id ?? null,
    createdBy: editor.userId,
  })
  await checkCompanyLimit(hub, tx, companyId, 'checks')
  if (input.enabled ?? true) await checkServerLimit(tx, companyId)
  const made = await findCheck(tx.db, companyId, id)
  if (made.check.serverIdCount > 0) await checkCompanyLimit(hub, tx, companyId, 'scope_ids')
  await createRules(editor, tx, made.check)
  tx.touch('checks', [id])
  await reloadCollectors(hub, tx, 'checks')
  await editor.record(tx, 'check.create', subjectOf(made))
  return findCheck(tx.db, companyId, id)
}

export function createCheck(context: RouteContext, input: NewCheck, isCopy = false): Promise<CheckRow> {
  return inTransaction(context.hub.database.db, async tx => {
    await lockCompany(tx, context.companyId)
    return insertCheck(tx, editorOf(context), input, { isCopy })
  })
}

/** Throws 422 for a check that belongs to a resource: it is changed through that. */
function refuseManagedCheck({ check }: CheckRow): void {
  if (check.managedByKind !== null)
    throw invalidField('managed_by', 'managed_by_resource', { kind: check.managedByKind })
}

/** Its rules follow the check's scope and target, and are disabled and deleted with it (decision G-92). */
async function followRules({ hub }: Editor, tx: Tx, row: CheckRow, wasEnabled: boolean): Promise<void> {
  const { check } = row
  const linked = await tx.db
    .select({ id: rules.id, version: rules.version, enabled: rules.enabled })
    .from(rules)
    .where(and(eq(rules.checkId, check.id), sql`${rules.deletedAt} is null`))
  for (const rule of linked)
    await tx.db
      .update(rules)
      .set({
        scope: check.scope,
        resolvedServerIds: check.resolvedServerIds,
        matchers: targetMatchers(check.type, check.target),
        enabled: wasEnabled === check.enabled ? rule.enabled : check.enabled,
        version: rule.version + 1,
        updatedAt: new Date(hub.now()),
      })
      .where(eq(rules.id, rule.id))
  if (linked.length === 0) return
  tx.touch(
    'rules',
    linked.map(rule => rule.id),
  )
  await reloadCollectors(hub, tx, 'rules')
}

/** Changes a check in a transaction that holds the company's lock. Throws 404, 422. */
export async function changeCheck(
  tx: Tx,
  editor: Editor,
  id: string,
  patch: CheckInput,
  action = 'check.update',
): Promise<CheckRow> {
  const { hub, companyId } = editor
  const before = await findCheck(tx.db, companyId, id)
  const { check } = before
  if (patch.type !== undefined && patch.type !== check.type) throw invalidField('type', 'immutable')
  const scope = patch.scope ? await validScope(tx.db, companyId, patch.scope, check.scope) : check.scope
  const target = patch.target ? validTarget(check.type, patch.target) : check.target
  const enabled = patch.enabled ?? check.enabled
  const changed = { id, type: check.type, target }
  const rivals = await seriesRivals(tx, companyId, scope, check.managedByKind !== null)
  // One that shares a series from a time when that was allowed may stay as it is.
  const isOther = !check.enabled || !isDeepStrictEqual(check.target, target)
  if (!isSameSeries(check.type, check.target, target)) await refuseSharedSeries(tx, companyId, changed, rivals)
  else if (enabled && isOther)
    await refuseSharedSeries(tx, companyId, changed, sql`${eq(checks.enabled, true)} and ${rivals}`)
  await tx.db
    .update(checks)
    .set({
      name: patch.name ?? check.name,
      scope,
      resolvedServerIds: await resolvedIds(tx.db, companyId, scope),
      target,
      intervalSeconds: patch.interval_seconds ?? check.intervalSeconds,
      timeoutSeconds: patch.timeout_seconds ?? check.timeoutSeconds,
      enabled,
      updatedAt: new Date(hub.now()),
    })
    .where(eq(checks.id, id))
  if (enabled) await checkServerLimit(tx, companyId)
  const after = await findCheck(tx.db, companyId, id)
  await followRules(editor, tx, after, check.enabled)
  if (after.check.serverIdCount > check.serverIdCount) await checkCompanyLimit(hub, tx, companyId, 'scope_ids')
  tx.touch('checks', [id])
  await reloadCollectors(hub, tx, 'checks')
  await editor.record(tx, action, subjectOf(after), changesBetween(presentCheck(before), presentCheck(after)))
  return after
}

export function updateCheck(context: RouteContext, id: string, patch: CheckInput, action?: string): Promise<CheckRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    refuseManagedCheck(await findCheck(tx.db, companyId, id))
    return changeCheck(tx, editorOf(context), id, patch, action)
  })
}

/** Deletes a check with its rules, in a transaction that holds the company's lock; leaves a tombstone in the feed. */
export async function removeCheck(tx: Tx, editor: Editor, id: string): Promise<void> {
  const { hub, companyId } = editor
  const before = await findCheck(tx.db, companyId, id)
  const now = new Date(hub.now())
  await tx.db
    .update(checks)
    .set({ ...NO_SCOPE, deletedAt: now })
    .where(eq(checks.id, id))
  tx.touch('checks', [id])
  const gone = await tx.db
    .update(rules)
    .set({ ...NO_SCOPE, deletedAt: now, enabled: false, version: sql`${rules.version} + 1` })
    .where(and(eq(rules.checkId, id), sql`${rules.deletedAt} is null`))
    .returning({ id: rules.id })
  tx.touch(
    'rules',
    gone.map(rule => rule.id),
  )
  await reloadCollectors(hub, tx, 'checks')
  if (gone.length > 0) await reloadCollectors(hub, tx, 'rules')
  await editor.record(tx, 'check.delete', subjectOf(before))
}

export async function deleteCheck(context: RouteContext, id: string): Promise<void> {
  const { hub, companyId } = context
  await inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    refuseManagedCheck(await findCheck(tx.db, companyId, id))
    await removeCheck(tx, editorOf(context), id)
  })
}

export async function setCheckEnabled(context: RouteContext, row: CheckRow, enabled: boolean): Promise<CheckRow> {
  refuseManagedCheck(row)
  if (row.check.enabled === enabled) return row
  return updateCheck(context, row.check.id, { enabled }, enabled ? 'check.enable' : 'check.disable')
}

/** A copy, disabled: one without a target of its own can be enabled once it has one. */
export function duplicateCheck(
  context: RouteContext,
  { check }: CheckRow,
  own: { readonly target?: CheckInput['target'] | null | undefined; readonly name?: string | null | undefined },
): Promise<CheckRow> {
  const copy = {
    name: own.name ?? `${check.name.slice(0, 248)} (copy)`,
    scope: check.scope,
    type: check.type,
    target: own.target ?? check.target,
    interval_seconds: check.intervalSeconds,
    timeout_seconds: check.timeoutSeconds,
    enabled: false,
  }
  return createCheck(context, copy, !own.target)
}
