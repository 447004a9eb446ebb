// Codes by which scan hosts enroll: shown once, kept as a hash, good for 24 hours (document 3; decisions G-175, G-192).
import { randomUUID } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { auditRequest } from '../../audit/audit.ts'
import { newScanCode, tokenHash } from '../../identity/token-forms.ts'
import { scanEnrollmentCodes } from '../../platform/db/schema-security.ts'
import { inTransaction, type Tx } from '../../platform/db/transaction.ts'
import { invalidField } from '../../platform/http/api-error.ts'
import { integer, optional, uuid } from '../../platform/http/request-schema.ts'
import type { RouteContext } from '../../platform/http/route.ts'

export const CODE_VALID_MS = 24 * 3_600_000
const USES_MAX = 10_000

export const codeBody = Type.Object({ server_id: optional(uuid()), max_uses: optional(integer(1, USES_MAX)) })

type NewCode = {
  readonly companyId: string
  /** The server that a host of this code is attached to; null: none yet. */
  readonly serverId: string | null
  readonly maxUses: number
  readonly createdBy: string
}

/** A code that is good from now on; only its hash is kept. */
export async function insertCode(tx: Tx, { serverId, ...given }: NewCode, nowMs: number) {
  const code = newScanCode()
  const id = randomUUID()
  const expiresAt = new Date(nowMs + CODE_VALID_MS)
  const times = { createdAt: new Date(nowMs), expiresAt }
  await tx.db.insert(scanEnrollmentCodes).values({ id, codeHash: tokenHash(code), serverId, ...given, ...times })
  return { id, code, expiresAt }
}

export async function createCode(
  context: RouteContext,
  body: Static<typeof codeBody>,
): Promise<{ code: string; expires_at: Date }> {
  const { hub, companyId } = context
  const serverId = body.server_id ?? null
  const maxUses = body.max_uses ?? 1
  const createdBy = context.caller.user.id
  return inTransaction(hub.database.db, async tx => {
    if (serverId !== null) {
      const known = await tx.db.execute(sql`
        select 1 from servers where company_id = ${companyId} and id = ${serverId} and deleted_at is null for key share`)
      if (known.length === 0) throw invalidField('server_id', 'unknown_reference')
    }
    const { id, code, expiresAt } = await insertCode(tx, { companyId, serverId, maxUses, createdBy }, hub.now())
    await auditRequest(
      tx,
      context,
      'scan_code.create',
      { type: 'scan_code', id, name: null },
      {
        server_id: { old: null, new: serverId },
        max_uses: { old: null, new: maxUses },
      },
    )
    return { code, expires_at: expiresAt }
  })
}
