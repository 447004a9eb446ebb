// Which licences the start page names because they end soon: those with uses left that end within two weeks.
import { sql } from 'drizzle-orm'
import { DAY_MS } from '../../../../core/limits.ts'
import type { Hub } from '../../hub-context.ts'

const ENDING_DAYS = 14
const ENDING_SHOWN = 5

export type EndingLicense = { readonly id: string; readonly name: string; readonly expiresAtMs: number }

type Row = { id: string; name: string; expires_at: string }

/** The next one first. */
export async function endingLicenses({ database, now }: Hub, companyId: string): Promise<readonly EndingLicense[]> {
  const rows = await database.db.execute<Row>(sql`
    select id, name, expires_at from monitoring_licenses
    where company_id = ${companyId} and revoked_at is null and superseded_at is null and used_count < max_uses
      and expires_at > ${new Date(now()).toISOString()}
      and expires_at <= ${new Date(now() + ENDING_DAYS * DAY_MS).toISOString()}
    order by expires_at, id limit ${ENDING_SHOWN}`)
  return rows.map(({ id, name, expires_at }) => ({ id, name, expiresAtMs: new Date(expires_at).getTime() }))
}
