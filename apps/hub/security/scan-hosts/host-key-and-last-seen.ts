// What the matcher tells of a scan host: a new key, and when it was last seen (decisions G-159, G-175, G-193).
import { createPublicKey, verify } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { sql } from 'drizzle-orm'
import { rotationText } from '../../../../core/matching/scan-protocol.ts'
import { auditRequest } from '../../audit/audit.ts'
import { inTransaction, type Tx } from '../../platform/db/transaction.ts'
import { invalidField, notFound } from '../../platform/http/api-error.ts'
import { instant, isUuid, optional, text } from '../../platform/http/request-schema.ts'
import type { RouteContext } from '../../platform/http/route.ts'
import { checkPublicKey } from './enroll.ts'

export const rotateBody = Type.Object({ public_key: text(64), signature: text(128) })
export const seenBody = Type.Object({ last_seen_at: instant(), scanner_version: optional(text(128)) })

type HostRow = { host_id: string; company_id: string; hostname: string; public_key: string }

/** Locks an active host. Throws 404 for any other. */
async function lockHost(tx: Tx, context: RouteContext): Promise<HostRow> {
  const id = context.params.host_id ?? ''
  const [host] = isUuid(id)
    ? await tx.db.execute<HostRow>(sql`
        select h.host_id, h.company_id, h.hostname, h.public_key from scan_hosts h join companies c on c.id = h.company_id
        where h.host_id = ${id} and h.state = 'active' and c.deleted_at is null for no key update of h`)
    : []
  if (!host) throw notFound()
  return host
}

/** The DER header of an Ed25519 public key (RFC 8410), before its 32 bytes. */
const SPKI_HEADER = Buffer.from('302a300506032b6570032100', 'hex')

/** Whether the key, base64 of 32 bytes, made the signature of a text. */
function isSignedBy(publicKey: string, text: string, signature: string): boolean {
  try {
    const der = Buffer.concat([SPKI_HEADER, Buffer.from(publicKey, 'base64')])
    const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
    return verify(null, Buffer.from(text, 'utf8'), key, Buffer.from(signature, 'base64'))
  } catch {
    return false
  }
}

/** Replaces a host's key. Repeating a rotation whose answer was lost changes nothing. */
export async function rotateKey(
  context: RouteContext,
  body: Static<typeof rotateBody>,
): Promise<{ host_id: string; public_key: string }> {
  checkPublicKey(body.public_key)
  return inTransaction(context.hub.database.db, async tx => {
    const host = await lockHost(tx, context)
    const answer = { host_id: host.host_id, public_key: body.public_key }
    if (host.public_key === body.public_key) return answer
    if (!isSignedBy(host.public_key, rotationText(host.host_id, body.public_key), body.signature))
      throw invalidField('signature', 'signature')
    await tx.db.execute(sql`
      update scan_hosts set public_key = ${body.public_key}, rotated_at = ${new Date(context.hub.now()).toISOString()}
      where host_id = ${host.host_id}`)
    tx.touch('scan_hosts', [host.host_id])
    const subject = { type: 'scan_host', id: host.host_id, name: host.hostname }
    await auditRequest(tx, context, 'scan_host.rotate', subject, {}, host.company_id)
    return answer
  })
}

/** Raises last_seen_at, which never falls and is never in the future. */
export async function recordHostSeen(
  context: RouteContext,
  body: Static<typeof seenBody>,
): Promise<{ host_id: string; last_seen_at: string }> {
  return inTransaction(context.hub.database.db, async tx => {
    const { host_id } = await lockHost(tx, context)
    const [row] = await tx.db.execute<{ last_seen_at: string }>(sql`
      update scan_hosts set scanner_version = coalesce(${body.scanner_version ?? null}, scanner_version), last_seen_at =
        greatest(last_seen_at, least(${new Date(body.last_seen_at).toISOString()}::timestamptz,
          ${new Date(context.hub.now()).toISOString()}::timestamptz))
      where host_id = ${host_id} returning last_seen_at`)
    return { host_id, last_seen_at: new Date(row?.last_seen_at ?? body.last_seen_at).toISOString() }
  })
}
