// The licences of a company, newest first; of their keys no more than the hint.

import { desc, eq } from 'drizzle-orm'
import type { LicenseStatus } from '../../../../core/lifecycle/license.ts'
import { statusOf } from '../../licenses/license-list.ts'
import { quotaOf } from '../../licenses/licenses.ts'
import { licenses, servers } from '../../platform/db/schema.ts'
import { matchesFilter, parseFilter } from '../address/filter-language.ts'
import { sitePages } from '../address/site-map.ts'
import { askedOffset, type View } from './view.ts'

const WINDOW = 60
/** The newest of a company: older ones are found over the API. */
const READ_MAX = 5_000

export type LicenseRow = {
  readonly id: string
  readonly name: string
  readonly hint: string
  readonly status: LicenseStatus
  readonly usedCount: number
  readonly maxUses: number
  readonly serverName: string | null
  readonly expiresAtMs: number | null
  /** Agents of a replaced key move over until then. */
  readonly migrateUntilMs: number | null
  readonly createdAtMs: number
}

export type LicensesView = {
  readonly total: number
  readonly matching: number
  readonly offset: number
  readonly quotaLeft: number | null
  readonly rows: readonly LicenseRow[]
}

const ms = (at: Date | null): number | null => at?.getTime() ?? null

export const licensesView: View<LicensesView> = {
  permissions: ['monitoring.view'],
  params: sitePages.licenses.takes,
  async make({ hub, companyId, param }) {
    const { db } = hub.database
    const [stored, quota] = await Promise.all([
      db
        .select({ license: licenses, serverName: servers.name })
        .from(licenses)
        .leftJoin(servers, eq(servers.id, licenses.serverId))
        .where(eq(licenses.companyId, companyId))
        .orderBy(desc(licenses.createdAt), desc(licenses.id))
        .limit(READ_MAX),
      quotaOf(db, companyId),
    ])
    const all = stored.map(
      ({ license, serverName }): LicenseRow => ({
        ...{ id: license.id, name: license.name, hint: license.tokenHint, status: statusOf(license, hub.now()) },
        ...{ usedCount: license.usedCount, maxUses: license.maxUses, serverName },
        expiresAtMs: ms(license.expiresAt),
        migrateUntilMs: ms(license.migrateUntil),
        createdAtMs: license.createdAt.getTime(),
      }),
    )
    const terms = parseFilter(param('q'))
    const matching = all.filter(({ name, hint, serverName, status }) =>
      matchesFilter({ words: [name, hint, serverName], values: { status } }, terms),
    )
    const offset = Math.min(askedOffset(param('offset')), Math.max(0, matching.length - 1))
    return {
      total: all.length,
      matching: matching.length,
      offset,
      quotaLeft: quota.remaining,
      rows: matching.slice(offset, offset + WINDOW),
    }
  },
}
