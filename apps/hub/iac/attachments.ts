// Files beside a run, for those who approve it (resources.md §6). The content lies with the run; it is never opened
// here.
import { createHash, randomUUID } from 'node:crypto'
import { and, eq, sql } from 'drizzle-orm'
import { auditRequest } from '../audit/audit.ts'
import { iacAttachments, iacRuns } from '../platform/db/schema-iac.ts'
import { inTransaction } from '../platform/db/transaction.ts'
import { ApiError, invalidField, notFound } from '../platform/http/api-error.ts'
import { words } from '../platform/http/api-texts.ts'
import { isUuid } from '../platform/http/request-schema.ts'
import type { RouteContext } from '../platform/http/route.ts'
import type { RunRow } from './run-list.ts'

const ATTACHMENTS_MAX = 10
export const ATTACHMENT_BYTES_MAX = 20 * 1024 * 1024
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

type AttachmentInput = {
  readonly file_id?: string | null | undefined
  readonly name?: string | null | undefined
  readonly content_base64?: string | null | undefined
}

/** The bytes of an attachment. Throws 422, and 413 for too many. */
function contentOf({ content_base64: text }: AttachmentInput): Buffer {
  if (text == null || text === '') throw invalidField('file', 'required')
  if (!BASE64.test(text)) throw invalidField('content_base64', 'base64')
  const content = Buffer.from(text, 'base64')
  if (content.byteLength > ATTACHMENT_BYTES_MAX)
    throw new ApiError(413, 'too_large', words('too_large', { limit: ATTACHMENT_BYTES_MAX }))
  if (content.byteLength === 0) throw invalidField('file', 'required')
  return content
}

const subjectOf = (run: RunRow) => ({ type: 'iac_run', id: run.id, name: run.title })

/** Attaches what was sent. Throws 422 for a run that was applied, and over ten. */
export async function attach(context: RouteContext, run: RunRow, given: AttachmentInput) {
  const { hub, caller } = context
  // There are no files of the company to refer to.
  if (given.file_id != null) throw invalidField('file_id', 'unknown_reference')
  const content = contentOf(given)
  const name = given.name ?? 'attachment'
  const row = {
    id: randomUUID(),
    runId: run.id,
    fileId: null,
    name,
    size: content.byteLength,
    sha256: createHash('sha256').update(content).digest('hex'),
    content: new Uint8Array(content),
    createdBy: caller.user.id,
    createdAt: new Date(hub.now()),
  }
  await inTransaction(hub.database.db, async tx => {
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
    await tx.db.insert(iacAttachments).values(row)
    const changes = { attachment: { old: null, new: name } }
    await auditRequest(tx, context, 'iac.attach', subjectOf(run), changes, run.companyId)
  })
  return { id: row.id, file_id: null, name, size: row.size, sha256: row.sha256 }
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
