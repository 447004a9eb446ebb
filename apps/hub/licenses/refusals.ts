// Enrollments that were refused (decision G-180): kept a week, the newest thousand of a company, so that whoever adds
// servers reads why one did not join. Refusals whose licence is not known belong to nobody, and are not kept.
import { sql } from 'drizzle-orm'
import { limits } from '../../../core/limits.ts'
import type { Db } from '../platform/db/connect.ts'
import { listed, named, nullable, string, time, wordOf } from '../platform/http/response-schema.ts'

/** Why a server is not enrolled, by the code that its agent is answered. */
export const refusalReasons = [
  'invalid_token',
  'token_revoked',
  'token_expired',
  'token_used',
  'already_enrolled',
  'binding_failed',
  'quota_exceeded',
] as const
export type RefusalReason = (typeof refusalReasons)[number]

export const refusalResponse = named('EnrollmentRefusal', {
  reason: wordOf(refusalReasons),
  hostname: nullable(string()),
  ip_addresses: listed(string()),
  refused_at: time(),
})

type Refusal = {
  readonly companyId: string
  readonly licenseId: string
  readonly reason: RefusalReason
  readonly hostname: string | null
  readonly ipAddresses: readonly string[]
}

/** Writes a refusal down, and forgets what is beyond the newest of the company. */
export async function noteRefusal(db: Db, refusal: Refusal, nowMs: number): Promise<void> {
  const { companyId, licenseId, reason, hostname } = refusal
  const addresses = JSON.stringify(refusal.ipAddresses.slice(0, limits.refusalAddressesMax))
  await db.execute(sql`
    insert into monitoring_enrollment_refusals (company_id, license_id, reason, hostname, ip_addresses, refused_at)
    values (${companyId}, ${licenseId}, ${reason}, ${hostname},
      array(select jsonb_array_elements_text(${addresses}::jsonb)), ${new Date(nowMs).toISOString()})`)
  await db.execute(sql`
    delete from monitoring_enrollment_refusals where company_id = ${companyId} and id <= (
      select id from monitoring_enrollment_refusals where company_id = ${companyId}
      order by id desc offset ${limits.refusalsPerCompany} limit 1)`)
}

const SINCE = sql`now() - make_interval(days => ${limits.refusalDays})`

/** What was refused with a licence, newest first. */
export async function refusalsOf(db: Db, companyId: string, licenseId: string) {
  const rows = await db.execute<{
    reason: RefusalReason
    hostname: string | null
    ip_addresses: readonly string[]
    refused_at: string
  }>(sql`
    select reason, hostname, ip_addresses, refused_at from monitoring_enrollment_refusals
    where company_id = ${companyId} and license_id = ${licenseId} and refused_at > ${SINCE}
    order by id desc limit ${limits.refusalsPerCompany}`)
  return rows.map(row => ({ ...row, refused_at: new Date(row.refused_at) }))
}

export const forgetOldRefusals = (db: Db) =>
  db.execute(sql`delete from monitoring_enrollment_refusals where refused_at < ${SINCE}`)
