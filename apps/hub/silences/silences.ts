// Silences: windows in which events of a scope are stored but not told (document 1 "Silence"; decision G-121).
import { randomUUID } from 'node:crypto'
import { eq, sql } from 'drizzle-orm'
import type { RuleScope, Severity } from '../../../core/alerting/rules/rule.ts'
import { DAY_MS } from '../../../core/limits.ts'
import { alertsByIds, presentAlerts } from '../alerts/alert-list.ts'
import { auditRequest, changesBetween } from '../audit/audit.ts'
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
import {
  NO_SCOPE,
  resolvedIds,
  resolveScope,
  type ScopeInput,
  scopeFaults,
  toScope,
  validScope,
} from '../scopes/scope.ts'
import { findSilence, type SilenceRow, silenceCollection, statusOf } from './silence-list.ts'

const { present } = silenceCollection
const DAYS_MAX = 366
const PREVIEW_SHOWN = 15

type SilenceInput = {
  readonly scope?: ScopeInput | undefined
  readonly starts_at?: string | null | undefined
  readonly ends_at?: string | undefined
  readonly reason?: string | undefined
}

type Window = { readonly scope: RuleScope; readonly startsAt: Date; readonly endsAt: Date; readonly reason: string }

/** Throws 422 for a scope that names nothing or foreign servers, and for a window that is none. */
async function checkSilence(db: Executor, companyId: string, silence: Window, nowMs: number): Promise<void> {
  const faults: Map<string, Words> = await scopeFaults(db, companyId, silence.scope)
  const [startMs, endMs] = [silence.startsAt.getTime(), silence.endsAt.getTime()]
  if (endMs <= startMs) faults.set('ends_at', words('after_start'))
  else if (endMs <= nowMs) faults.set('ends_at', words('future'))
  else if (endMs - startMs > DAYS_MAX * DAY_MS) faults.set('ends_at', words('at_most_days', { days: DAYS_MAX }))
  if (faults.size > 0) throw faultsError(faults, 'invalid_request')
}

/** Whatever changed: a new place in the feed, and the collectors are told after the commit. */
async function announce(context: RouteContext, tx: Tx, id: string): Promise<void> {
  tx.touch('silences', [id])
  await reloadCollectors(context.hub, tx, 'silences')
}

type Covered = { id: string; severity: Severity; total: number; by_severity: number; rank: number }

/** How many servers and open alerts a scope would cover, with the first servers and the newest alerts. */
export async function previewSilence(db: Executor, companyId: string, input: ScopeInput) {
  const asked = await validScope(db, companyId, input)
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
        and server_id = any(${list}::uuid[])) x
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

export async function createSilence(
  context: RouteContext,
  input: SilenceInput & { readonly scope: ScopeInput; readonly ends_at: string; readonly reason: string },
): Promise<SilenceRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const silence: Window = {
      scope: toScope(input.scope),
      startsAt: input.starts_at ? new Date(input.starts_at) : new Date(hub.now()),
      endsAt: new Date(input.ends_at),
      reason: input.reason,
    }
    await checkSilence(tx.db, companyId, silence, hub.now())
    const id = randomUUID()
    const resolvedServerIds = await resolvedIds(tx.db, companyId, silence.scope)
    const createdBy = context.caller.user.id
    await tx.db.insert(silences).values({ id, companyId, ...silence, resolvedServerIds, createdBy })
    await checkCompanyLimit(hub, tx, companyId, 'silences')
    if (resolvedServerIds.length > 0) await checkCompanyLimit(hub, tx, companyId, 'scope_ids')
    await announce(context, tx, id)
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
    const fresh: Window = {
      scope: patch.scope ? toScope(patch.scope) : silence.scope,
      startsAt: patch.starts_at ? new Date(patch.starts_at) : silence.startsAt,
      endsAt: patch.ends_at ? new Date(patch.ends_at) : silence.endsAt,
      reason: patch.reason ?? silence.reason,
    }
    await checkSilence(tx.db, companyId, fresh, hub.now())
    const resolvedServerIds = await resolvedIds(tx.db, companyId, fresh.scope)
    await tx.db
      .update(silences)
      .set({ ...fresh, resolvedServerIds })
      .where(eq(silences.id, id))
    await announce(context, tx, id)
    const after = await findSilence(tx.db, companyId, id)
    if (after.silence.serverIdCount > silence.serverIdCount) await checkCompanyLimit(hub, tx, companyId, 'scope_ids')
    const changes = changesBetween(present(before, context), present(after, context))
    await auditRequest(tx, context, 'silence.update', subjectOf(after), changes)
    return after
  })
}

/** Ends a silence now: it is cancelled, and leaves the feed as a tombstone. */
export async function endSilence(context: RouteContext, id: string): Promise<SilenceRow> {
  const { hub, companyId } = context
  return inTransaction(hub.database.db, async tx => {
    await lockCompany(tx, companyId)
    const before = await findSilence(tx.db, companyId, id)
    refuseOver(before, hub.now())
    const now = new Date(hub.now())
    await tx.db.update(silences).set({ cancelledAt: now, endsAt: now }).where(eq(silences.id, id))
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
      .set({ ...NO_SCOPE, deletedAt: new Date(hub.now()) })
      .where(eq(silences.id, id))
    await announce(context, tx, id)
    await auditRequest(tx, context, 'silence.delete', subjectOf(before))
  })
}
