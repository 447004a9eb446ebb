// The leaves of a certificate: each that was uploaded or seen is a version, known by its fingerprint.
import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { Executor } from '../platform/db/connect.ts'
import { type Tx, uuidList } from '../platform/db/transaction.ts'
import { amount, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'
import type { Chain } from './chain.ts'

const VERSIONS_SHOWN = 10

type VersionSource = 'uploaded' | 'observed'

export const versionResponse = named('CertificateVersion', {
  number: amount(),
  source: wordOf(['uploaded', 'observed']),
  fingerprint_sha256: string(),
  serial: string(),
  issuer: string(),
  not_before: time(),
  not_after: time(),
  added_at: time(),
  revoked_at: nullable(time()),
  revoke_reason: nullable(string()),
})

type Added = {
  readonly companyId: string
  readonly certificateId: string
  readonly chain: Chain
  readonly source: VersionSource
  readonly userId: string | null
}

/** Stores a leaf as a version, or the chain of a version that is known. Needs the lock of the certificate's row. */
export async function storeVersion(
  tx: Tx,
  { companyId, certificateId, chain: { leaf, pem }, source, userId }: Added,
): Promise<void> {
  await tx.db.execute(sql`
    insert into certificate_versions as v (id, company_id, certificate_id, number, source, fingerprint_sha256, serial,
      issuer, not_before, not_after, pem, added_by)
    select ${randomUUID()}::uuid, ${companyId}::uuid, ${certificateId}::uuid, coalesce(max(number), 0) + 1,
      ${source}::text, ${leaf.fingerprint}::text, ${leaf.serial}::text, ${leaf.issuer}::text,
      ${leaf.notBefore.toISOString()}::timestamptz, ${leaf.notAfter.toISOString()}::timestamptz, ${pem}::text,
      ${userId}::uuid
    from certificate_versions where certificate_id = ${certificateId}
    on conflict (certificate_id, fingerprint_sha256) do update set pem = excluded.pem where v.pem <> excluded.pem`)
}

type VersionRow = {
  certificate_id: string
  number: number
  source: VersionSource
  fingerprint_sha256: string
  serial: string
  issuer: string
  not_before: Date | string
  not_after: Date | string
  added_at: Date | string
  revoked_at: Date | string | null
  revoke_reason: string | null
}

/** The last versions of certificates, the newest first. */
export async function lastVersions(db: Executor, ids: readonly string[]) {
  const rows = await db.execute<VersionRow>(sql`
    select certificate_id, number, source, fingerprint_sha256, serial, issuer, not_before, not_after, added_at,
      revoked_at, revoke_reason
    from (select v.certificate_id, v.number, v.source, v.fingerprint_sha256, v.serial, v.issuer, v.not_before,
        v.not_after, v.added_at, v.revoked_at, v.revoke_reason,
        row_number() over (partition by v.certificate_id order by v.number desc) as place
      from certificate_versions v where v.certificate_id = any(${uuidList(ids)}::uuid[])) n
    where place <= ${VERSIONS_SHOWN} order by number desc`)
  return Map.groupBy(
    rows.map(row => ({
      ...row,
      not_before: new Date(row.not_before),
      not_after: new Date(row.not_after),
      added_at: new Date(row.added_at),
      revoked_at: row.revoked_at === null ? null : new Date(row.revoked_at),
    })),
    row => row.certificate_id,
  )
}

/** The fingerprints of all versions, with when each was revoked. */
export async function revocationsOf(db: Executor, certificateId: string): Promise<ReadonlyMap<string, Date | null>> {
  const rows = await db.execute<{ fingerprint: string; revoked_at: Date | string | null }>(sql`
    select fingerprint_sha256 as fingerprint, revoked_at from certificate_versions
    where certificate_id = ${certificateId}`)
  return new Map(rows.map(row => [row.fingerprint, row.revoked_at === null ? null : new Date(row.revoked_at)]))
}

export const revocationReasons = ['key_compromise', 'superseded', 'cessation', 'other'] as const
export type Revocation = { readonly reason: (typeof revocationReasons)[number]; readonly note: string | null }

/** Notes that an operator calls a leaf revoked; one that is already stays as it is. */
export async function revokeVersion(
  tx: Tx,
  certificateId: string,
  fingerprint: string,
  { reason, note }: Revocation,
  now: Date,
): Promise<void> {
  await tx.db.execute(sql`
    update certificate_versions set revoked_at = ${now.toISOString()}::timestamptz, revoke_reason = ${reason},
      revoke_note = ${note}
    where certificate_id = ${certificateId} and fingerprint_sha256 = ${fingerprint} and revoked_at is null`)
}
