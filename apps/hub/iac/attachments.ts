// Files beside a run, for those who approve it (resources.md §6): files of the company, which stay when they are
// detached.
import { randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { createFile, filesToAttach } from '../files/files.ts'
import type { RunRow } from '../manifest-runs/run-list.ts'
import { iacAttachments, iacRuns } from '../platform/db/schema-iac.ts'
import { inTransaction, type Tx } from '../platform/db/transaction.ts'
import { invalidField, notFound } from '../platform/http/api-error.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import { hubWithin } from './act-as-applier.ts'

const ATTACHMENTS_MAX = 10
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

type AttachmentInput = {
  readonly file_id?: string | null | undefined
  readonly name?: string | null | undefined
  readonly content_base64?: string | null | undefined
}

type AttachedFile = Awaited<ReturnType<typeof filesToAttach>>[number]

/** The file that was named, locked so that none deletes it meanwhile, or a new one of what was sent. Throws 422. */
async function fileOf(context: RouteContext, tx: Tx, given: AttachmentInput): Promise<AttachedFile> {
  const { file_id: fileId, content_base64: text, name } = given
  if (fileId != null) {
    const [found] = await filesToAttach(tx, context.companyId, [fileId])
    if (!found) throw invalidField('file_id', 'unknown_reference')
    return found
  }
  if (text == null || text === '') throw invalidField('file', 'required')
  if (!BASE64.test(text)) throw invalidField('content_base64', 'base64')
  const content = Buffer.from(text, 'base64')
  const joined = { ...context, hub: hubWithin(context.hub, tx) }
  return (await createFile(joined, { name: name ?? 'attachment', content })).file
}

const subjectOf = (run: RunRow) => ({ type: 'iac_run', id: run.id, name: run.title })

/** Attaches what was sent. Throws 422 for a run that was applied, and over ten. */
export async function attach(context: RouteContext, run: RunRow, given: AttachmentInput) {
  const { hub, caller } = context
  return inTransaction(hub.database.db, async tx => {
    const [locked] = await tx.db
      .select({ status: iacRuns.status })
      .from(iacRuns)
      .where(eq(iacRuns.id, run.id))
      .for('update')
    if (locked?.status === 'applied') throw invalidField('status', 'state_refused', { state: 'applied' })
    const [counted] = await tx.db.execute<{ count: number }>(
      sql`select count(*)::int as count from iac_attachments where run_id = ${run.id}`,
    )
    if ((counted?.count ?? 0) >= ATTACHMENTS_MAX)
      throw invalidField('limit', 'attachments_max', { max: ATTACHMENTS_MAX })
    const file = await fileOf(context, tx, given)
    const { name, bytes: size, sha256 } = file
    const id = randomUUID()
    await tx.db
      .insert(iacAttachments)
      .values({ id, runId: run.id, fileId: file.id, name, size, sha256, createdBy: caller.user.id })
    const changes = { attachment: { old: null, new: name } }
    await auditRequest(tx, context, 'iac.attach', subjectOf(run), changes, run.companyId)
    return { id, file_id: file.id, name, size, sha256 }
  })
}

/** Throws 404 for an attachment that the run does not have. */
export async function detach(context: RouteContext, run: RunRow, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound()
  await inTransaction(context.hub.database.db, async tx => {
    const [gone] = await tx.db
      .delete(iacAttachments)
      .where(and(eq(iacAttachments.runId, run.id), eq(iacAttachments.id, id)))
      .returning({ name: iacAttachments.name })
    if (!gone) throw notFound()
    const changes = { attachment: { old: gone.name, new: null } }
    await auditRequest(tx, context, 'iac.detach', subjectOf(run), changes, run.companyId)
  })
}
