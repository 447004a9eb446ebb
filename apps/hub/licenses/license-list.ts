// Licences as people see them (document 1 "Licenses"; decision G-21).
import { desc, eq, type SQL, sql } from 'drizzle-orm'
import { type LicenseStatus, licenseStatus, licenseStatuses } from '../../../core/lifecycle/license.ts'
import { licenses, servers } from '../platform/db/schema.ts'
import { users } from '../platform/db/schema-identity.ts'
import { collection, equals, filter, ofCompany, search } from '../platform/http/collection.ts'
import { oneOf, uuid } from '../platform/http/request-schema.ts'
import { licenseResponse } from './license-response.ts'

const ms = (date: Date | null): number | null => (date === null ? null : date.getTime())

export const statusOf = (license: typeof licenses.$inferSelect, nowMs: number): LicenseStatus =>
  licenseStatus(
    {
      revokedAtMs: ms(license.revokedAt),
      supersededAtMs: ms(license.supersededAt),
      expiresAtMs: ms(license.expiresAt),
      usedCount: license.usedCount,
      maxUses: license.maxUses,
    },
    nowMs,
  )

/** The status as SQL, in the order of `licenseStatus`. */
const LICENSE_STATUS: SQL = sql`case when ${licenses.revokedAt} is not null then 'revoked'
  when ${licenses.supersededAt} is not null then 'superseded'
  when ${licenses.expiresAt} is not null and ${licenses.expiresAt} <= now() then 'expired'
  when ${licenses.usedCount} >= ${licenses.maxUses} then 'exhausted' else 'active' end`

export const licenseCollection = collection({
  table: licenses,
  scope: ofCompany(licenses.companyId),
  filters: {
    status: filter(oneOf(licenseStatuses), status => sql`${LICENSE_STATUS} = ${status}`),
    server_id: equals(licenses.serverId, uuid()),
    search: search(licenses.name),
  },
  select: db =>
    db
      .select({
        license: licenses,
        server: { id: servers.id, name: servers.name, hostname: servers.hostname },
        creator: { id: users.id, name: users.name },
      })
      .from(licenses)
      .leftJoin(servers, eq(servers.id, licenses.serverId))
      .leftJoin(users, eq(users.id, licenses.createdBy)),
  order: [desc(licenses.createdAt), desc(licenses.id)],
  response: licenseResponse,
  // The token and its hash are never in it.
  present: ({ license, server, creator }, { hub }) => ({
    id: license.id,
    name: license.name,
    company_id: license.companyId,
    token_hint: license.tokenHint,
    status: statusOf(license, hub.now()),
    max_uses: license.maxUses,
    used_count: license.usedCount,
    server,
    server_id: license.serverId,
    collector_id: license.collectorId,
    expires_at: license.expiresAt,
    last_used_at: license.lastUsedAt,
    revoked_at: license.revokedAt,
    supersedes: license.supersedes,
    superseded_by: license.supersededBy,
    migrate_until: license.migrateUntil,
    created_by: creator,
    created_at: license.createdAt,
  }),
})

export const findLicense = licenseCollection.find
export type LicenseRow = Awaited<ReturnType<typeof findLicense>>
