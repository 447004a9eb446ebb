// Asking for a renewal of a certificate, and calling it revoked.
import { sql } from 'drizzle-orm'
import type { Tx } from '../platform/db/transaction.ts'
import { invalidField } from '../platform/http/api-error.ts'
import type { Editor } from '../resources/editor.ts'
import { type Found, lockRow } from '../resources/resource-rows.ts'
import { lastRuns, startRun } from '../resources/runs.ts'
import { updateResource } from '../resources/write-resource.ts'
import { type Certificate, certificateKind } from './certificate.ts'
import { isOpen, type Renewal, usualDueAt } from './renewal.ts'
import { storeJudgement } from './store-judgement.ts'
import { type Revocation, revokeVersion } from './versions.ts'

type Asked = { readonly dueAt: Date | null; readonly note: string | null }

/** Opens a renewal, or answers the run of the one that is open (RES-112). */
export async function renewCertificate(tx: Tx, editor: Editor, id: string, { dueAt, note }: Asked) {
  const { hub, companyId } = editor
  const row = await lockRow(certificateKind, tx, companyId, id)
  if (isOpen(row.renewal)) {
    const runs = await lastRuns(tx.db, companyId, 'certificate', [id])
    const known = runs.get(id)?.find(run => run.action === 'renew')
    if (known) return known
  }
  const run = await startRun(tx, editor, certificateKind, row, 'renew')
  const renewal: Renewal = {
    state: 'requested',
    requested_at: new Date(hub.now()).toISOString(),
    due_at: (dueAt ?? usualDueAt(row.not_after))?.toISOString() ?? null,
    note,
    old_fingerprint: row.fingerprint_sha256,
  }
  await tx.db.execute(sql`
    update certificates set renewal = ${JSON.stringify(renewal)}::jsonb where company_id = ${companyId} and id = ${id}`)
  await storeJudgement(tx, hub, certificateKind.info, companyId, id)
  return run
}

/** Calls the current version revoked: what an operator says, no authority is asked (RES-113). Throws 422. */
export async function revokeCertificate(
  tx: Tx,
  editor: Editor,
  id: string,
  revocation: Revocation,
): Promise<Found<Certificate>> {
  const { hub, companyId } = editor
  const row = await lockRow(certificateKind, tx, companyId, id)
  const { fingerprint_sha256: fingerprint, revoked_at: before } = row
  if (fingerprint === null) throw invalidField('state', 'certificate_not_seen')
  const now = new Date(hub.now())
  await revokeVersion(tx, id, fingerprint, revocation, now)
  const { reason, note } = revocation
  return updateResource(
    tx,
    certificateKind,
    editor,
    id,
    {},
    {
      columns: { revoked_at: before ?? now },
      action: 'revoke',
      note: note === null ? reason : `${reason}: ${note}`,
    },
  )
}
