// The checks by which agents look at a certificate where it is served: one of type cert for each endpoint, with
// the scope of `monitor`. They belong to the certificate, and come and go with it.
import { isDeepStrictEqual } from 'node:util'
import { sql } from 'drizzle-orm'
import type { Unchecked } from '../../../core/json-object.ts'
import { changeCheck, insertCheck, removeCheck } from '../checks/checks.ts'
import type { Executor } from '../platform/db/connect.ts'
import { lockCompany, type Tx, uuidList } from '../platform/db/transaction.ts'
import { ApiError, invalid } from '../platform/http/api-error.ts'
import type { Editor } from '../resources/editor.ts'
import { isScope } from '../scopes/scope.ts'
import { deploymentsOf, placeOf } from './deployments.ts'

const NAME_MAX = 255

type Monitored = {
  readonly id: string
  readonly name: string
  readonly status: string
  readonly monitor: { readonly enabled: boolean; readonly scope: Unchecked | null }
}
type OwnCheck = { id: string; target: string; scope: Unchecked }

const isWatched = ({ status, monitor }: Monitored): boolean =>
  monitor.enabled && status !== 'planned' && status !== 'retired'

/** The endpoints that want a check. Null: the certificate is gone. */
async function wantedTargets(tx: Tx, companyId: string, certificate: Monitored | null): Promise<Set<string>> {
  if (certificate === null || !isWatched(certificate)) return new Set()
  const deployments = await deploymentsOf(tx.db, companyId, [certificate.id])
  return new Set(deployments.filter(({ kind }) => kind === 'endpoint').map(placeOf))
}

/** Those of the targets that somebody made a check for by hand: it is enough. */
async function checkedByHand(tx: Tx, companyId: string, targets: ReadonlySet<string>): Promise<Set<string>> {
  const rows = await tx.db.execute<{ target: string }>(sql`
    select target->>'target' as target from monitoring_checks where company_id = ${companyId} and deleted_at is null
      and type = 'cert' and managed_by_kind is null
      and target->>'target' in (select jsonb_array_elements_text(${JSON.stringify([...targets])}::jsonb))`)
  return new Set(rows.map(row => row.target))
}

/** What the rules of checks refuse is the fault of `monitor`. */
async function asMonitorFault<T>(act: Promise<T>): Promise<T> {
  try {
    return await act
  } catch (error) {
    const [fault] = error instanceof ApiError ? Object.values(error.more.errors ?? {}).flat() : []
    throw fault ? invalid({ monitor: fault }) : error
  }
}

/** Makes the checks of a certificate what they should be now. Throws 422 on `monitor`. */
export async function keepMonitorChecks(
  tx: Tx,
  editor: Editor,
  id: string,
  certificate: Monitored | null,
): Promise<void> {
  const { companyId } = editor
  const wanted = await wantedTargets(tx, companyId, certificate)
  const own = await tx.db.execute<OwnCheck>(sql`
    select id, target->>'target' as target, scope from monitoring_checks where company_id = ${companyId}
      and deleted_at is null and managed_by_kind = 'certificate' and managed_by_id = ${id}`)
  if (wanted.size === 0 && own.length === 0) return
  await lockCompany(tx, companyId)
  const scope = certificate?.monitor.scope ?? {}
  for (const check of own)
    if (!wanted.has(check.target)) await removeCheck(tx, editor, check.id)
    else if (isScope(scope) && !isDeepStrictEqual(check.scope, scope))
      await asMonitorFault(changeCheck(tx, editor, check.id, { scope }))
  const known = new Set([...own.map(check => check.target), ...(await checkedByHand(tx, companyId, wanted))])
  for (const target of wanted) {
    if (known.has(target) || !isScope(scope)) continue
    const name = `${certificate?.name ?? ''} at ${target}`.slice(0, NAME_MAX)
    const made = { name, type: 'cert' as const, target: { target }, scope }
    await asMonitorFault(insertCheck(tx, editor, made, { managedBy: { kind: 'certificate', id } }))
  }
}

/** The checks of certificates, by the id of each. */
export async function monitorCheckIds(db: Executor, companyId: string, ids: readonly string[]) {
  const rows = await db.execute<{ certificate_id: string; check_ids: string[] }>(sql`
    select managed_by_id as certificate_id, array_agg(id::text order by created_at, id) as check_ids
    from monitoring_checks where company_id = ${companyId} and deleted_at is null and managed_by_kind = 'certificate'
      and managed_by_id = any(${uuidList(ids)}::uuid[]) group by managed_by_id`)
  return new Map(rows.map(row => [row.certificate_id, row.check_ids]))
}
