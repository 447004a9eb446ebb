// Requests to accept findings or to call them false, and what becomes of them: another person approves or rejects,
// anybody who may manage withdraws, and time ends them (decisions G-154, G-174, G-177).

import { randomUUID } from 'node:crypto'
import { eq, type SQL, sql } from 'drizzle-orm'
import { auditByHub, auditRequest } from '../../audit/audit.ts'
import type { Hub } from '../../hub-context.ts'
import { securityExceptions } from '../../platform/db/schema-security.ts'
import { allowLongStatements, inTransaction, type Tx, uuidList } from '../../platform/db/transaction.ts'
import { invalidField } from '../../platform/http/api-error.ts'
import type { RouteContext } from '../../platform/http/route.ts'
import { type FindingFilter, findingConditions } from '../findings/finding-filter.ts'
import { hiddenKinds } from '../findings/hidden-kinds.ts'
import { addNotice } from '../notices/notices.ts'
import { changeFindings } from './exception-findings.ts'
import { FINDINGS_MAX, refuseExpiry } from './exception-limits.ts'
import { type ExceptionRow, exceptionCollection } from './exception-list.ts'
import { type Decision, refuseDecision } from './reject-or-withdraw.ts'

type ExceptionRequest = {
  readonly type: 'accepted' | 'false_positive'
  readonly reason: string
  readonly expires_at?: string | null | undefined
  readonly finding_ids?: readonly string[] | null | undefined
  readonly filter?: FindingFilter | null | undefined
}

const subjectOf = ({ exception }: ExceptionRow) => ({
  type: 'security_exception',
  id: exception.id,
  name: exception.reason.slice(0, 100),
})

/** The findings that a request names, as a condition. Findings that are resolved need no exception. */
function chosen(context: RouteContext, { finding_ids, filter }: ExceptionRequest): SQL {
  if ((finding_ids == null) === (filter == null)) throw invalidField('finding_ids', 'ids_or_filter')
  const hidden_kinds = hiddenKinds(context.caller)
  const asked = findingConditions(context.companyId, { ...filter, hidden_kinds })
  if (finding_ids != null) return sql`${asked} and id = any(${uuidList(finding_ids)}::uuid[])`
  return sql`${asked} and status <> 'resolved'`
}

async function checkIds(tx: Tx, where: SQL, ids: readonly string[]): Promise<void> {
  const rows = await tx.db.execute<{ id: string; status: string }>(
    sql`select id, status from security_findings where ${where}`,
  )
  const known = new Set(rows.map(row => row.id))
  const index = ids.findIndex(id => !known.has(id.toLowerCase()))
  if (index >= 0) throw invalidField(`finding_ids.${index}`, 'unknown_reference')
  const over = rows.find(row => row.status === 'resolved')
  if (over) throw invalidField('finding_ids', 'state_refused', { state: over.status })
}

export async function requestException(context: RouteContext, input: ExceptionRequest): Promise<ExceptionRow> {
  const { hub, companyId } = context
  refuseExpiry(input, hub.now())
  const where = chosen(context, input)
  return inTransaction(hub.database.db, async tx => {
    const id = randomUUID()
    await allowLongStatements(tx)
    if (input.finding_ids != null) await checkIds(tx, where, input.finding_ids)
    await tx.db.insert(securityExceptions).values({
      id,
      companyId,
      type: input.type,
      reason: input.reason,
      expiresAt: input.expires_at ? new Date(input.expires_at) : null,
      requestedBy: context.caller.user.id,
      requestedAt: new Date(hub.now()),
    })
    const named = await tx.db.execute(sql`
      insert into security_exception_findings (exception_id, finding_id)
      select ${id}::uuid, id from security_findings where ${where} limit ${FINDINGS_MAX + 1}`)
    if (named.count === 0) throw invalidField('filter', 'finds_nothing')
    if (named.count > FINDINGS_MAX) throw invalidField('filter', 'list_max', { max: FINDINGS_MAX })
    await tx.db.update(securityExceptions).set({ findingCount: named.count }).where(eq(securityExceptions.id, id))
    const row = await exceptionCollection.find(tx.db, companyId, id)
    await addNotice(hub, tx, { companyId, type: 'security.exception.requested', exceptionId: id })
    await auditRequest(tx, context, 'security.exception.request', subjectOf(row))
    return row
  })
}

const DECIDED = { approve: 'approved', reject: 'rejected', withdraw: 'withdrawn' } as const

async function decide(context: RouteContext, { exception }: ExceptionRow, decision: Decision): Promise<ExceptionRow> {
  const { hub, companyId, caller } = context
  return inTransaction(hub.database.db, async tx => {
    const before = await exceptionCollection.lock(tx, companyId, exception.id)
    refuseDecision(before, decision, caller.user.id, hub.now())
    const now = new Date(hub.now())
    const { id, status } = before.exception
    await tx.db
      .update(securityExceptions)
      .set({
        status: DECIDED[decision],
        ...(decision === 'withdraw' ? { endedAt: now } : { decidedBy: caller.user.id, decidedAt: now }),
      })
      .where(eq(securityExceptions.id, id))
    if (decision === 'approve') await changeFindings(hub, tx, id, 'begin')
    if (decision === 'withdraw' && status === 'approved') await changeFindings(hub, tx, id, 'end')
    if (decision !== 'withdraw')
      await addNotice(hub, tx, { companyId, type: 'security.exception.decided', exceptionId: id })
    const after = await exceptionCollection.find(tx.db, companyId, id)
    await auditRequest(tx, context, `security.exception.${decision}`, subjectOf(after), {
      status: { old: status, new: DECIDED[decision] },
    })
    return after
  })
}

export const approveException = (context: RouteContext, row: ExceptionRow) => decide(context, row, 'approve')
export const rejectException = (context: RouteContext, row: ExceptionRow) => decide(context, row, 'reject')
export async function withdrawException(context: RouteContext, row: ExceptionRow): Promise<void> {
  await decide(context, row, 'withdraw')
}

/** Ends an exception whose time is over; false when somebody else was first. */
async function expire(hub: Hub, id: string): Promise<void> {
  await inTransaction(hub.database.db, async tx => {
    const now = new Date(hub.now()).toISOString()
    const [ended] = await tx.db.execute<{ company_id: string; reason: string; was_approved: boolean }>(sql`
      update security_exceptions e set status = 'expired', ended_at = ${now}::timestamptz
      from (select id, status from security_exceptions where id = ${id} for update) before
      where e.id = before.id and before.status in ('pending', 'approved') and e.expires_at <= ${now}::timestamptz
      returning e.company_id, e.reason, before.status = 'approved' as was_approved`)
    if (!ended) return
    if (ended.was_approved) await changeFindings(hub, tx, id, 'end')
    await addNotice(hub, tx, { companyId: ended.company_id, type: 'security.exception.expired', exceptionId: id })
    const subject = { type: 'security_exception', id, name: ended.reason.slice(0, 100) }
    await auditByHub(tx, ended.company_id, 'security.exception.expire', subject)
  })
}

/** Ends exceptions whose time is over. */
export async function endExceptions(hub: Hub): Promise<void> {
  const due = await hub.database.db.execute<{ id: string }>(sql`
    select id from security_exceptions where status in ('pending', 'approved') and expires_at is not null
      and expires_at <= ${new Date(hub.now()).toISOString()}::timestamptz`)
  for (const { id } of due) await expire(hub, id)
}
