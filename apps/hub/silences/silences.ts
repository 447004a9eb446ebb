// Silences: windows in which events of a scope are stored but not told (document 1 "Silence"; decisions G-121, G-178,
// G-179).
import { randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import type { RuleScope, Severity } from '../../../core/alerting/rules/rule.ts'
import type { frequencies, Recurrence } from '../../../core/lifecycle/silence-windows.ts'
import { alertsByIds, presentAlerts } from '../alerts/alert-list.ts'
import { auditRequest } from '../audit/audit.ts'
import { changesBetween } from '../audit/masked-changes.ts'
import { reloadCollectors } from '../collectors/collector-jobs.ts'
import { checkCompanyLimit } from '../plans/company-limits.ts'
import type { Executor } from '../platform/db/connect.ts'
import { silences } from '../platform/db/schema.ts'
import { inTransaction, lockCompany, type Tx, uuidList } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { Words } from '../platform/http/api-texts.ts'
import { words } from '../platform/http/api-texts.ts'
import { faultsError } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { optionFaults } from '../resources/strict-options.ts'
import {
  NO_SCOPE,
  resolvedIds,
  resolveScope,
  type ScopeInput,
  scopeFaults,
  toScope,
  validScope,
} from '../scopes/scope.ts'
import { windowFaults } from './silence-limits.ts'
import { findSilence, type SilenceRow, silenceCollection, statusOf } from './silence-list.ts'
import { storeWindows } from './windows-ahead.ts'

const { present } = silenceCollection
const PREVIEW_SHOWN = 15

type RecurrenceInput = {
  readonly frequency: (typeof frequencies)[number]
  readonly weekdays?: readonly number[] | null | undefined
  readonly until?: string | null | undefined
  readonly time_zone?: string | null | undefined
}

type SilenceInput = {
  readonly scope?: ScopeInput | undefined
  readonly starts_at?: string | null | undefined
  readonly ends_at?: string | undefined
  readonly reason?: string | undefined
  readonly rule_ids?: readonly string[] | null | undefined
  readonly recurrence?: RecurrenceInput | null | undefined
}

type Silence = {
  readonly scope: RuleScope
  readonly startsAt: Date
  readonly endsAt: Date
  readonly reason: string
  readonly ruleIds: string[]
  readonly recurrence: Recurrence | null
}

const toRuleIds = (ids: readonly string[] | null): string[] => [...new Set((ids ?? []).map(id => id.toLowerCase()))]

const toRecurrence = (input: RecurrenceInput | null): Recurrence | null =>
  input && {
    frequency: input.frequency,
    weekdays: [...new Set(input.weekdays ?? [])].sort(),
    until: input.until ? new Date(input.until).toISOString() : null,
    time_zone: input.time_zone ?? 'UTC',
  }

/** The rules that the company does not have, of those that are named. */
async function areRulesUnknown(db: Executor, companyId: string, ruleIds: readonly string[]): Promise<boolean> {
  if (ruleIds.length === 0) return false
  const known = await db.execute(sql`select 1 from monitoring_rules
    where company_id = ${companyId} and deleted_at is null and id = any(${uuidList(ruleIds)}::uuid[])`)
  return known.length < ruleIds.length
}

/**
 * Throws 422 for a scope that names nothing or foreign servers, for foreign rules, and for a window that is none. Rules
 * that the silence has already may have been deleted since, and servers too.
 */
async function checkSilence(
  db: Executor,
  companyId: string,
  silence: Silence,
  givenRuleIds: readonly string[],
  nowMs: number,
  before: Silence | null = null,
): Promise<void> {
  const faults: Map<string, Words> = await scopeFaults(db, companyId, silence.scope, before?.scope)
  for (const [field, fault] of windowFaults(silence, nowMs)) faults.set(field, fault)
  if (await areRulesUnknown(db, companyId, givenRuleIds)) faults.set('rule_ids', words('unknown_reference'))
  if (faults.size > 0) throw faultsError(faults, 'invalid_request')
}

/** Whatever changed: a new place in the feed for each window, and the collectors are told after the commit. */
async function announce(context: RouteContext, tx: Tx, id: string): Promise<void> {
  tx.touch('silences', [id])
  const [stored] = await tx.db.select().from(silences).where(eq(silences.id, id))
  if (stored) await storeWindows(tx, stored, context.hub.now())
  await reloadCollectors(context.hub, tx, 'silences')
}

type Covered = { id: string; severity: Severity; total: number; by_severity: number; rank: number }

/**
 * How many servers and open alerts a silence would cover, with the first servers and the newest alerts. With rules: the
 * alerts of these alone.
 */
export async function previewSilence(
  db: Executor,
  companyId: string,
  input: { readonly scope: ScopeInput; readonly rule_ids?: readonly string[] | null | undefined },
) {
  const ruleIds = toRuleIds(input.rule_ids ?? null)
  if (await areRulesUnknown(db, companyId, ruleIds)) throw invalidField('rule_ids', 'unknown_reference')
  const asked = await validScope(db, companyId, input.scope)
  const ids = await resolveScope(db, companyId, asked)
  const list = uuidList(ids)
  const servers = await db.execute<{ id: string; name: string }>(sql`
    select id, name from servers where company_id = ${companyId} and id = any(${list}::uuid[])
    order by lower(name), id limit ${PREVIEW_SHOWN}`)
  const covered = await db.execute<Covered>(sql`
    select x.id, x.severity, x.total, x.by_severity, x.rank from (select id, severity, (count(*) over ())::int as total,
      (count(*) over (partition by severity))::int as by_severity,
      row_number() over (order by opened_at desc, id desc)::int as rank,
      row_number() over (partition by severity)::int as of_severity
      from monitoring_alerts where company_id = ${companyId} and state in ('open', 'acknowledged')
        and server_id = any(${list}::uuid[])
        and (${ruleIds.length === 0} or rule_id = any(${uuidList(ruleIds)}::uuid[]))) x
    where x.rank <= ${PREVIEW_SHOWN} or x.of_severity = 1 order by x.rank`)
  const newest = covered.filter(row => row.rank <= PREVIEW_SHOWN).map(row => row.id)
  const bySeverity = { info: 0, warning: 0, critical: 0 }
  for (const row of covered) bySeverity[row.severity] = row.by_severity
  return {
    matched_servers: ids.length,
    servers: [...servers],
    open_alerts: { total: covered[0]?.total ?? 0, by_severity: bySeverity },
    alerts: presentAlerts(await alertsByIds(db, companyId, newest)),
  }
}

const subjectOf = (row: SilenceRow) => ({ type: 'silence', id: row.silence.id, name: row.silence.reason.slice(0, 100) })

/** Throws 422 for a reason that the strict list of reasons does not have. */
async function refuseUnlisted(tx: Tx, companyId: string, before: Silence | null, next: Silence): Promise<void> {
  const faults = await optionFaults(tx, companyId, { reason: 'silence_reasons' }, before, next)
  if (faults.size > 0) throw faultsError(faults)
}

export async function createSilence(
  context: RouteContext,
  input: SilenceInput & { readonly scope: ScopeInput; readonly ends_at: string; readonly reason: string },
): Promise<SilenceRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const silence: Silence = {
      scope: toScope(input.scope),
      startsAt: input.starts_at ? new Date(input.starts_at) : new Date(hub.now()),
      endsAt: new Date(input.ends_at),
      reason: input.reason,
      ruleIds: toRuleIds(input.rule_ids ?? null),
      recurrence: toRecurrence(input.recurrence ?? null),
    }
    await checkSilence(tx.db, companyId, silence, silence.ruleIds, hub.now())
    await refuseUnlisted(tx, companyId, null, silence)
    const id = randomUUID()
    const resolvedServerIds = await resolvedIds(tx.db, companyId, silence.scope)
    const createdBy = context.caller.user.id
    await tx.db.insert(silences).values({ id, companyId, ...silence, resolvedServerIds, createdBy })
    await announce(context, tx, id)
    await checkCompanyLimit(hub, tx, companyId, 'silences')
    if (resolvedServerIds.length > 0) await checkCompanyLimit(hub, tx, companyId, 'scope_ids')
    const row = await findSilence(tx.db, companyId, id)
    await auditRequest(tx, context, 'silence.create', subjectOf(row))
    return row
  })
}

function refuseOver(row: SilenceRow, nowMs: number): void {
  const status = statusOf(row.silence, nowMs)
  if (status === 'expired' || status === 'cancelled') throw invalidField('status', 'state_refused', { state: status })
}

export async function updateSilence(context: RouteContext, id: string, patch: SilenceInput): Promise<SilenceRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findSilence(tx.db, companyId, id)
    refuseOver(before, hub.now())
    const { silence } = before
    const fresh: Silence = {
      scope: patch.scope ? toScope(patch.scope) : silence.scope,
      startsAt: patch.starts_at ? new Date(patch.starts_at) : silence.startsAt,
      endsAt: patch.ends_at ? new Date(patch.ends_at) : silence.endsAt,
      reason: patch.reason ?? silence.reason,
      ruleIds: patch.rule_ids === undefined ? silence.ruleIds : toRuleIds(patch.rule_ids),
      recurrence: patch.recurrence === undefined ? silence.recurrence : toRecurrence(patch.recurrence),
    }
    const namedRules = fresh.ruleIds.filter(ruleId => !silence.ruleIds.includes(ruleId))
    await checkSilence(tx.db, companyId, fresh, namedRules, hub.now(), silence)
    await refuseUnlisted(tx, companyId, silence, fresh)
    const resolvedServerIds = await resolvedIds(tx.db, companyId, fresh.scope)
    await tx.db
      .update(silences)
      .set({ ...fresh, resolvedServerIds })
      .where(eq(silences.id, id))
    await announce(context, tx, id)
    const after = await findSilence(tx.db, companyId, id)
    const isMore = after.silence.serverIdCount > silence.serverIdCount
    if (isMore || patch.recurrence) await checkCompanyLimit(hub, tx, companyId, 'scope_ids')
    if (patch.recurrence) await checkCompanyLimit(hub, tx, companyId, 'silences')
    const changes = changesBetween(present(before, context), present(after, context))
    await auditRequest(tx, context, 'silence.update', subjectOf(after), changes)
    return after
  })
}

/**
 * Ends a silence now, with all windows that it would still have: it is cancelled, and leaves the feed as a tombstone.
 */
export async function endSilence(context: RouteContext, id: string): Promise<SilenceRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findSilence(tx.db, companyId, id)
    refuseOver(before, hub.now())
    const now = new Date(hub.now())
    const endsAt = before.silence.endsAt < now ? before.silence.endsAt : now
    await tx.db.update(silences).set({ cancelledAt: now, endsAt }).where(eq(silences.id, id))
    await announce(context, tx, id)
    await auditRequest(tx, context, 'silence.end', subjectOf(before))
    return findSilence(tx.db, companyId, id)
  })
}

export async function deleteSilence(context: RouteContext, id: string): Promise<void> {
  const { hub, companyId } = context
  await inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findSilence(tx.db, companyId, id)
    await tx.db
      .update(silences)
      .set({ ...NO_SCOPE, recurrence: null, deletedAt: new Date(hub.now()) })
      .where(eq(silences.id, id))
    await announce(context, tx, id)
    await auditRequest(tx, context, 'silence.delete', subjectOf(before))
  })
}
